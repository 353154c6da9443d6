"""Runs a command on a terminal of its own and types lines into it.

terminal.py LINES COMMAND...

Each line of the file LINES is typed when the command prompts for one, and /exit
at the end. Prints what the terminal showed, without the control sequences of
line editing, and exits as the command did.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

PROMPT = re.compile(rb"(?:^|[\r\n])(?:> |\. |[^\r\n]*\[y/N\] )$")
SECONDS = 300

with open(sys.argv[1], "rb") as file:
    typed = [line.rstrip(b"\n") + b"\r" for line in file] + [b"/exit\r"]

child, terminal = pty.fork()
if child == 0:
    # Wide enough for any path in a line.
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 1000, 0, 0))
    os.environ["TERM"] = "dumb"
    os.execvp(sys.argv[2], sys.argv[2:])

shown = b""
fresh = b""  # since something was typed
end = time.monotonic() + SECONDS
while True:
    left = end - time.monotonic()
    if left <= 0 or not select.select([terminal], [], [], left)[0]:
        os.kill(child, signal.SIGKILL)
        sys.exit(f"no prompt and no end in {SECONDS} s after {shown!r}")
    try:
        data = os.read(terminal, 65536)
    except OSError:  # the command is gone
        data = b""
    if not data:
        break
    shown += data
    fresh += data
    if typed and PROMPT.search(fresh):
        os.write(terminal, typed.pop(0))
        fresh = b""

text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown).replace(b"\r", b"")
sys.stdout.buffer.write(text)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
