"""Looks at what kf-run shows of long work on a terminal, and elsewhere.

check_progress.py KF_RUN MODEL TEXTS.json
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

kf_run, model, text_file = sys.argv[1:]
DRAWN = re.compile(rb"\r([^\r\n]*)\x1b\[K\r")


def run_on_terminal(arguments, term="xterm", columns=80, stderr=None, stop=None):
    """What a terminal got from a command, and the command's exit code. With
    `stop`, the command is interrupted once that was shown."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.environ["TERM"] = term
        if stderr:
            os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.execvp(kf_run, [kf_run, *arguments])
    shown = b""
    end = time.monotonic() + 300
    while True:
        assert select.select([terminal], [], [], end - time.monotonic())[0], shown
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
        if stop and re.search(stop, shown):
            os.kill(child, signal.SIGINT)
            stop = None
    return shown, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def screen(shown):
    """What is left to be read of it."""
    lines = []
    for line in shown.split(b"\n"):
        row, column = b"", 0
        for part in re.split(rb"(\r|\x1b\[K|\x1b\[\d+D)", line):
            if part == b"\r":
                column = 0
            elif part.startswith(b"\x1b") and part.endswith(b"D"):
                column -= int(part[2:-1])
            elif part == b"\x1b[K":
                row = row[:column]
            else:
                row = row[:column] + part + row[column + len(part) :]
                column += len(part)
        lines.append(row)
    return b"\n".join(lines)


with open(text_file) as file:
    texts = json.load(file)
scoring = ["perplexity", model, "--file", "texts.json", "--device", "reference"]


def run_until_shown(arguments, write, count, line, **terminal):
    """What run_on_terminal returns, and the seconds it took: of the first of
    count, 2 count, 4 count ... texts that take the command so long that it draws
    such a line, and comes to no end of its own before it is to stop, whatever the
    build and whatever else the machine does. Where none is, none is so long that
    it takes less than a minute."""
    while True:
        write(count)
        begun = time.monotonic()
        shown, code = run_on_terminal(arguments, **terminal)
        seconds = time.monotonic() - begun
        isShown = any(line.match(one) for one in DRAWN.findall(shown))
        if isShown and not (code == 0 and "stop" in terminal) or seconds > 60:
            return shown, code, seconds
        count *= 2


def write_texts(count):
    with open("texts.json", "w") as file:
        json.dump((texts * (count // len(texts) + 1))[:count], file)


def write_prompt(count):
    with open("prompt.txt", "w") as file:
        file.write("Once upon a time there was a dog. " * count)


SCORING = re.compile(rb"scoring: (\d+) %, perplexity \d+\.\d{4}$")
shown, code, seconds = run_until_shown(scoring, write_texts, 2, SCORING)

# The line is there from the second second on, and gone at the end.
assert code == 0, (code, shown)
drawn = DRAWN.findall(shown)
assert len(drawn) <= (seconds - 1) / 0.1 + 1, (seconds, len(drawn))
shares = [
    int(match[1])
    for match in map(SCORING.match, drawn)
    if match
]
assert shares and shares == sorted(shares) and shares[-1] <= 100, drawn
left = screen(shown)
assert re.fullmatch(rb"perplexity [0-9.]+ .*\(.* tokens\)\n", left), left

# It keeps within the terminal's width.
narrow, code, _ = run_until_shown(
    scoring, write_texts, 2, re.compile(b"scoring: "), columns=12
)
assert code == 0
lines = DRAWN.findall(narrow)
assert lines and all(len(line) < 12 for line in lines), lines
assert any(line.startswith(b"scoring: ") for line in lines), lines

# An error, and what an interrupt says, take its place.
shown, code, _ = run_until_shown(
    scoring, write_texts, 2, re.compile(b"scoring: "), stop=rb"scoring: \d+ %"
)
assert code == 130, (code, shown)
left = screen(shown)
assert left.endswith(b"error: interrupted; the perplexity is not known\n"), left
assert b"scoring" not in left, left

# Nothing of it where nobody would see it, or could not erase it.
shown, code = run_on_terminal(scoring, stderr="err.txt")
assert code == 0 and not DRAWN.findall(shown) and b"scoring" not in shown, shown
with open("err.txt", "rb") as file:
    assert file.read() == b""
shown, code = run_on_terminal(scoring, term="dumb")
assert code == 0 and b"scoring" not in shown, shown
result = subprocess.run([kf_run, *scoring], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
assert result.returncode == 0 and result.stderr == b"", result.stderr

# What is done within a second shows nothing.
for attempt in range(20):
    begun = time.monotonic()
    shown, code = run_on_terminal(["tokenize", model, "-p", "Once"])
    if time.monotonic() - begun < 1:
        assert code == 0 and not DRAWN.findall(shown), shown
        break

# Work without a number; an error takes its place, and --quiet leaves it out.
long_prompt = ["generate", model, "--file", "prompt.txt", "-n", "1"]
shown, code, _ = run_until_shown(
    long_prompt, write_prompt, 50000, re.compile(b"reading the prompt's tokens$")
)
assert code == 1 and b"reading the prompt's tokens" in DRAWN.findall(shown), shown
left = screen(shown)
assert left.startswith(b"error: the prompt has ") and left.count(b"\n") == 1, left
shown, code = run_on_terminal([*long_prompt, "--quiet"])
assert code == 1 and not DRAWN.findall(shown), shown


def run_in_slices(arguments, *shown_when):
    """What a terminal got from a command that is held up again and again, so that
    what it does takes long: until the first of `shown_when` was shown, and from
    the second to the third."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.environ["TERM"] = "xterm"
        os.execvp(kf_run, [kf_run, *arguments])
    shown = b""
    while True:
        first, second, third = (bool(one.search(shown)) for one in shown_when)
        held = not first or (second and not third)
        # A fast machine compiles a small program in 0.15 s.
        if select.select([terminal], [], [], 0.02 if held else None)[0]:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            if not data:
                break
            shown += data
        if held:
            os.kill(child, signal.SIGSTOP)
            time.sleep(0.25)
            os.kill(child, signal.SIGCONT)
    return shown, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# What is compiled when there is text already is shown behind that text.
text = ["generate", model, "-p", "Once upon a time", "-n", "3"]
expected = subprocess.run(
    [kf_run, *text, "--quiet"], stdout=subprocess.PIPE, check=True
).stdout.strip()
BEHIND = re.compile(rb" \[(compiling \w+)\]\x1b\[K\x1b\[(\d+)D")
# A terminal that reads late, on a busy machine, misses it.
for attempt in range(20):
    shown, code = run_in_slices(
        [*text, "--no-cache"],
        re.compile(b"compiling body_16"),
        re.compile(re.escape(expected[:1])),
        BEHIND,
    )
    if code or BEHIND.search(shown):
        break
assert code == 0, (code, shown)
assert b"compiling body_16" in DRAWN.findall(shown), shown
behind = BEHIND.findall(shown)
assert behind and all(
    name == b"compiling body_1" and int(back) == len(name) + 3 for name, back in behind
), (behind, shown)
left = screen(shown)
assert left.strip().startswith(expected + b"\n") and b"[compiling" not in left, left
