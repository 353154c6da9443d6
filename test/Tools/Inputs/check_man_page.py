"""Looks whether a manual page of kf-run has all that its commands' help says.

check_man_page.py PAGE
"""
import re
import subprocess
import sys


def help_of(*command):
    return subprocess.run(
        ["kf-run", *command, "--help"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout


with open(sys.argv[1]) as file:
    page = file.read()
assert page.startswith('.TH "KF\\-RUN" 1\n'), page[:80]
for line in page.splitlines():
    assert line[:3] in (".TH", ".SH", ".nf", ".fi") or line[:1] not in (".", "'"), line
text = page.replace("\\&", "").replace("\\-", "-").replace("\\e", "\\")
commands = re.findall(r"^  ([a-z][a-z-]*) ", help_of(), re.M)
assert "generate" in commands and "emit-mlir" in commands, commands
for command in [()] + [(name,) for name in commands]:
    assert help_of(*command) in text, command
