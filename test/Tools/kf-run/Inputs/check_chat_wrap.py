"""Looks at where the lines of an answer end on a terminal.

check_chat_wrap.py KF_RUN FOLDER
"""
import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios

kf_run, folder = sys.argv[1:]
COLUMNS = 30


def chat(arguments):
    """What a terminal shows of an answer, line by line, and the answer."""
    saved = os.path.join(folder, "wrapped.json")
    if os.path.exists(saved):
        os.remove(saved)
    typed = [b"Once upon a time\r", b"/save " + saved.encode() + b"\r", b"/exit\r"]
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        os.environ["TERM"] = "xterm"
        os.execvp(kf_run, [kf_run, "chat", "-n", "80", "--seed", "3", *arguments])
    shown, fresh = b"", b""
    while True:
        assert select.select([terminal], [], [], 120)[0], shown
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
        fresh += data
        if typed and re.search(rb"(^|[\r\n])> (\x1b\[[0-9;?]*[A-Za-z])*$", fresh):
            os.write(terminal, typed.pop(0))
            fresh = b""
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, shown
    with open(saved) as file:
        answer = json.load(file)["messages"][-1]["content"]
    # Behind the line that was typed.
    text = shown.split(b"Once upon a time", 1)[1].split(b"\n", 1)[1]
    # Typed before the editor had the terminal, it is shown by both.
    if b"Once upon a time" in text.split(b"\n", 1)[0]:
        text = text.split(b"\n", 1)[1]
    return screen(text.decode()), answer


def screen(text):
    lines, column = [""], 0
    for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|[\b\r\n])", text):
        line = lines[-1]
        if part == "\n":
            lines.append("")
            column = 0
        elif part == "\r":
            column = 0
        elif part == "\b":
            column -= 1
        elif part == "\x1b[K":
            lines[-1] = line[:column]
        elif not part.startswith("\x1b"):
            lines[-1] = line[:column] + part + line[column + len(part) :]
            column += len(part)
    return lines


lines, answer = chat([])
assert len(answer) > 3 * COLUMNS, answer
words = answer.split()
shown = []
for line in lines:
    if len(shown) >= len(words):
        break
    assert len(line) < COLUMNS, line
    shown += line.split()
assert shown == words, (shown, words)

# The terminal's own lines, which break words.
lines, answer = chat(["--no-wrap"])
assert answer.split("\n")[0].rstrip() in [line.rstrip() for line in lines], lines
