"""The package: its types, its documentation, and that it prints nothing."""

import ast
import contextlib
import importlib.resources
import inspect
import io
import logging
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import kernelforge
from kernelforge import _kernelforge
from support import MODELS, SOURCE, kf_run, run


class Types(unittest.TestCase):
    FOLDER = importlib.resources.files(kernelforge)

    def test_come_along(self):
        self.assertTrue((self.FOLDER / "py.typed").is_file())
        self.assertTrue((self.FOLDER / "_kernelforge.pyi").is_file())

    def test_of_the_module_are_complete(self):
        stub = ast.parse((self.FOLDER / "_kernelforge.pyi").read_text())
        names = {
            node.name: {
                item.name for item in getattr(node, "body", []) if hasattr(item, "name")
            }
            for node in stub.body
            if isinstance(node, (ast.ClassDef, ast.FunctionDef))
        }
        for name in ("Model", "Text", "Function"):
            have = {n for n in vars(getattr(_kernelforge, name)) if n[0] != "_"}
            self.assertEqual(names[name], have)
        self.assertTrue({"load", "compile"} <= names.keys())

    def test_of_everything_public(self):
        for name in kernelforge.__all__:
            thing = getattr(kernelforge, name)
            if not inspect.isclass(thing) and not inspect.isfunction(thing):
                continue
            with self.subTest(name):
                self.assertTrue(thing.__doc__)
            for member, value in vars(thing).items() if inspect.isclass(thing) else ():
                if member[0] == "_" or not inspect.isfunction(value):
                    continue
                with self.subTest(f"{name}.{member}"):
                    self.assertTrue(value.__doc__)
                    self.assertIn("return", value.__annotations__)

    def test_python_code_has_an_older_syntax(self):
        for path in self.FOLDER.iterdir():
            if path.name.endswith(".py"):
                ast.parse(path.read_text(), feature_version=(3, 10))


class Version(unittest.TestCase):
    def test_is_the_projects(self):
        text = (SOURCE / "CMakeLists.txt").read_text()
        version = re.search(r"project\(KernelForge VERSION (\S+)", text)[1]
        self.assertEqual(kernelforge.__version__, version)
        ran = subprocess.run(
            [sys.executable, "-m", "kernelforge", "--version"],
            capture_output=True,
            text=True,
        )
        self.assertEqual(ran.stdout, f"kernelforge {version}\n")


class Output(unittest.TestCase):
    def test_there_is_none(self):
        ran = run("""
            model = kernelforge.load()
            model.generate("a", max_tokens=2)
            try:
                kernelforge.load("/nowhere")
            except kernelforge.Error:
                pass
            for text in ("func", "func.func @f() { return }"):
                try:
                    kernelforge.compile(text)
                except kernelforge.Error:
                    pass
            try:
                kernelforge.load(device="vulkan:99")
            except kernelforge.Error:
                pass
            """)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))

    def test_warnings_go_to_the_log(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model"
            shutil.copytree(MODELS / "kf-stories", model)
            config = model / "generation_config.json"
            config.write_text('{"typical_p": 0.5}')
            with self.assertLogs("kernelforge", "WARNING") as logged:
                kernelforge.load(model).close()
        self.assertIn("typical_p", logged.output[0])
        with self.assertLogs("kernelforge", "DEBUG") as logged:
            kernelforge.load().close()
        self.assertIn("DEBUG:kernelforge:opening the model", logged.output)


class Pickle(unittest.TestCase):
    def test_of_what_is_plain(self):
        with kernelforge.load() as model:
            done = model.generate("The cat", max_tokens=3)
            self.assertEqual(pickle.loads(pickle.dumps(done)), done)
            with self.assertRaises(TypeError):
                pickle.dumps(model)
        error = kernelforge.InvalidError("text")
        self.assertEqual(str(pickle.loads(pickle.dumps(error))), "text")


class Docs(unittest.TestCase):
    """The examples of the documents run, each document's in one program."""

    EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

    def test_examples(self):
        for name in ("README.md", "docs/Python.md"):
            examples = self.EXAMPLE.findall((SOURCE / name).read_text())
            self.assertTrue(examples, name)
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                to = pathlib.Path(folder) / "path" / "to"
                to.mkdir(parents=True)
                (to / "model").symlink_to(MODELS / "kf-stories")
                kf_run(
                    "quantize",
                    MODELS / "kf-stories",
                    to / "model.gguf",
                    "--type",
                    "q8_0",
                )
                text = to / "text.txt"
                text.write_text("Once upon a time there was a fox.")
                kf_run(
                    *("train", MODELS / "kf-stories", "--data", text),
                    *("--lora", "2", "--steps", "1", "--output", to / "adapter"),
                )
                before = os.getcwd()
                os.chdir(folder)
                values = {}
                try:
                    with contextlib.redirect_stdout(io.StringIO()):
                        for number, example in enumerate(examples, 1):
                            code = compile(example, f"{name}, example {number}", "exec")
                            exec(code, values)
                finally:
                    os.chdir(before)

    def test_names_are_there(self):
        """What docs/Python.md calls by its name is in the package."""
        text = (SOURCE / "docs/Python.md").read_text()
        for name in re.findall(r"`kernelforge\.(\w+)", text):
            self.assertTrue(hasattr(kernelforge, name), name)
        for name in kernelforge.Options.__annotations__:
            self.assertIn(f"`{name}`", text)


logging.getLogger("kernelforge").addHandler(logging.NullHandler())

if __name__ == "__main__":
    unittest.main()
