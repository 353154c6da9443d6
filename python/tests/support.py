"""What tests share: the model, kf-run, and programs of their own."""

import os
import pathlib
import subprocess
import sys
import textwrap
import unittest

import kernelforge

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MODELS = SOURCE / "models"
PROMPT = "Once upon a time"


def kf_run(*arguments, stdin=""):
    """What kf-run, the one of the same build, prints."""
    ran = subprocess.run(
        [os.environ["KF_RUN"], *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


def program(text):
    """The command of a program that imports what it needs first."""
    head = "import sys, time, kernelforge\n"
    return [sys.executable, "-c", head + textwrap.dedent(text)]


def run(text):
    return subprocess.run(program(text), capture_output=True, text=True, timeout=300)


class ModelTest(unittest.TestCase):
    """Tests of one model, which is kept open."""

    @classmethod
    def setUpClass(cls):
        cls.model = kernelforge.load()

    @classmethod
    def tearDownClass(cls):
        cls.model.close()
