#!/usr/bin/env python3
"""Runs the commands of README.md and docs/*.md, as they stand there.

  commands.py SOURCE FOLDER [DOCUMENT...]

SOURCE is the root of the checkout, FOLDER is made and has what the commands
name: MODEL, path/to/model, FILE.mlir ... are small ones. Commands are all lines
of `sh` blocks, and in blocks without a language those behind "$ ", whose output
follows. An mlir block behind a paragraph that begins with a file's name is that
file.

Each block is run, or has a comment in front of it that says why not:

  <!-- not run: it needs a GPU -->
  <!-- not run `quantize`: ... -->    of the block, commands with this word
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

SECONDS = 900  # that a command may take on a busy machine
FENCE = re.compile(r"^```(\w*)\s*$")
MARK = re.compile(r"^<!-- not run(?: `([^`]+)`)?: (.*\S) -->$")
FILE = re.compile(r"^`([\w.-]+\.mlir)`")
TOOL = re.compile(r"^(\./kf|kf-run|kf-opt|kf-exec)\b")

FUNCTION = """
func.func @f(%x: tensor<?x100xf32>) -> tensor<?x100xf32> {
  %0 = kf.softmax %x : tensor<?x100xf32>
  return %0 : tensor<?x100xf32>
}
"""
REQUESTS = """{"prompt": "Once upon a time", "n": 12}
{"messages": [{"role": "user", "content": "Tell me a story."}], "temp": 0.8}
"""
BATCH = """{"custom_id": "a", "method": "POST", "url": "/v1/completions", \
"body": {"prompt": "Once upon a time", "max_tokens": 5}}
"""
EXAMPLES = """{"text": "Ruby the fox lived in a hollow tree."}
{"prompt": "The fox was called", "completion": " Ruby."}
{"messages": [{"role": "user", "content": "Tell me a story."}, \
{"role": "assistant", "content": "Once there was a fox named Ruby."}]}
"""
KF = """#!/bin/sh
# In place of the script that builds first.
[ "$1" = run ] || exit 1
shift
exec kf-run "$@"
"""


class Block:
    def __init__(self, path, line, language, lines, marks, paragraph):
        self.path, self.line, self.language = path, line, language
        self.lines, self.marks, self.paragraph = lines, marks, paragraph

    def where(self):
        return f"{self.path}:{self.line}"

    def is_shell(self):
        return self.language == "sh" or (
            not self.language and any(l.startswith("$ ") for l in self.lines)
        )


def blocks_of(source, path):
    """The fenced blocks of a document, with what stands in front of them."""
    lines = (source / path).read_text().splitlines()
    marks, paragraph, at = [], [], 0
    while at < len(lines):
        line = lines[at]
        fence = FENCE.match(line)
        at += 1
        if fence:
            end = lines.index("```", at)
            yield Block(path, at, fence[1], lines[at:end], marks, paragraph)
            marks, paragraph, at = [], [], end + 1
        elif MARK.match(line):
            marks.append(MARK.match(line).groups())
        elif line.strip():
            # A paragraph ends with the blank line in front of the next one.
            paragraph = [] if not lines[at - 2].strip() else paragraph
            paragraph = paragraph + [line]
            marks = []


def is_complete(command):
    if command.endswith("\\") or command.rstrip().endswith("|"):
        return False
    return (
        subprocess.run(
            ["bash", "-n", "-c", command], stderr=subprocess.DEVNULL
        ).returncode
        == 0
    )


def commands_of(block):
    """The commands of a block, each with the number of its first line."""
    found, command, first = [], "", 0
    for number, line in enumerate(block.lines, block.line + 1):
        if not command:
            first = number
            if block.language != "sh":
                if not line.startswith("$ "):
                    continue
                line = line[2:]
            if not line.strip() or line.startswith("#"):
                continue
        command += line
        if is_complete(command):
            found.append((first, command))
            command = ""
        else:
            command += "\n"
    if command:
        found.append((first, command))  # bash says what is wrong
    return found


def write_npy(path, rows, columns):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    head = head.ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little"))
        file.write(head.encode() + b"\0\0\x80\x3f" * (rows * columns))


def prepare(source, folder, blocks):
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "path/to").mkdir(parents=True)
    stories = source / "models/kf-stories"
    for name, target in {
        "models": source / "models",
        "test": source / "test",
        "MODEL": stories,
        "path/to/model": stories,
        "model.gguf": source / "models/kf-stories-gguf/kf-stories-Q4_0.gguf",
    }.items():
        (folder / name).symlink_to(target)
    (folder / "FILE.mlir").write_text(FUNCTION)
    (folder / "prompt.txt").write_text("Once upon a time\n")
    (folder / "requests.jsonl").write_text(REQUESTS)
    (folder / "batch.jsonl").write_text(BATCH)
    (folder / "examples.jsonl").write_text(EXAMPLES)
    write_npy(folder / "x.npy", 4, 100)
    (folder / "kf").write_text(KF)
    (folder / "kf").chmod(0o755)
    for block in blocks:
        name = FILE.match(block.paragraph[0]) if block.paragraph else None
        if block.language == "mlir" and name:
            (folder / name[1]).write_text("\n".join(block.lines) + "\n")


def run(command, folder):
    """What went wrong, or None."""
    # A placeholder that stands for a word.
    command = command.replace("=PHASE", "=program")
    try:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"it took more than {SECONDS} seconds"
    if done.returncode == 0:
        return None
    tail = done.stdout.decode(errors="replace").strip().splitlines()[-3:]
    return f"exit status {done.returncode}: " + " | ".join(tail)


def main():
    source, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    documents = sys.argv[3:] or ["README.md"] + sorted(
        str(path.relative_to(source)) for path in (source / "docs").glob("*.md")
    )
    blocks = [b for path in documents for b in blocks_of(source, path)]
    prepare(source, folder, blocks)
    ran = skipped = 0
    problems = []
    for block in blocks:
        if not block.is_shell():
            if not block.language and any(TOOL.match(l) for l in block.lines):
                problems.append(f"{block.where()}: commands stand in `sh` "
                                "blocks, or behind '$ '")
            continue
        commands = commands_of(block)
        for word, _ in block.marks:
            if word and not any(word in text for _, text in commands):
                problems.append(f"{block.where()}: no command has '{word}', "
                                "of which a comment says why it is not run")
        for line, text in commands:
            if any(word is None or word in text for word, _ in block.marks):
                skipped += 1
                continue
            ran += 1
            wrong = run(text, folder)
            if wrong:
                problems.append(f"{block.path}:{line}: {text}\n    {wrong}")
    for problem in problems:
        print(problem)
    print(f"{ran} commands ran, {skipped} are marked as not run, "
          f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
