"""Interrupts an answer of kf-run chat, and goes on talking.

check_chat_interrupt.py KF_RUN [arguments]
"""
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import termios
import time


def stat(pid):
    """What the system tells of a process, from its state on."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def state(pid):
    """That of the process's first thread: "S" where it sleeps."""
    return stat(pid)[0]


def cpu_seconds(pid):
    """The processor's time that a process has used, all its threads together."""
    fields = stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(*arguments, stdout=subprocess.PIPE):
    """A conversation, with the arguments of this script and others."""
    return subprocess.Popen(
        [sys.argv[1], "chat", *arguments, *sys.argv[2:]],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def read_help(chat):
    """Asks for help, and returns once it is there."""
    chat.stdin.write(b"/help\n")
    chat.stdin.flush()
    while b"Ctrl-C stops" not in chat.stdout.readline():
        pass


# The answer has begun; the interrupt comes in the middle of it, or once more
# where this process gets no time before its end.
for attempt in range(20):
    chat = start()
    chat.stdin.write(b"Tell me a story.\n")
    chat.stdin.flush()
    begun = os.read(chat.stdout.fileno(), 1)
    assert begun, chat.stderr.read()
    chat.send_signal(signal.SIGINT)
    out, err = chat.communicate(b"/stats\n/exit\n", timeout=300)
    assert chat.returncode == 0, (chat.returncode, out, err)
    if b"[cancelled]" in err:
        break
assert b"[cancelled]" in err, err
lines = out.decode().splitlines()
last = next(line for line in lines if line.startswith("last: "))
generated = int(last.split("generated ")[1].split(",")[0])
assert 0 < generated < 900, last

# A template that would go on for longer ends, too. Where this process gets no
# time at the right moment, the template is given up before: it is tried again.
with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
    template.write(
        "{% for i in range(10000 if messages|length == 1 else 0) %}"
        "{% for j in range(10000) %}{% set x = i %}{% endfor %}{% endfor %}"
    )
    template.flush()
    for attempt in range(20):
        chat = start("--template", template.name)
        read_help(chat)
        # Reading a line takes next to none of the processor's time: what is
        # used from here on is the template's.
        begun = cpu_seconds(chat.pid)
        chat.stdin.write(b"Hello\n")
        chat.stdin.flush()
        while cpu_seconds(chat.pid) < begun + 0.05:
            time.sleep(0.01)
        chat.send_signal(signal.SIGINT)
        out, err = chat.communicate(b"/exit\n", timeout=300)
        if b"does not end within" not in err:
            break
    assert chat.returncode == 0, (chat.returncode, out, err)
    assert b"[cancelled]" in err and b"error" not in err, err

# A pipe that nobody reads holds up the text: interrupts lose none of it.
reader, writer = os.pipe()
fcntl.fcntl(writer, fcntl.F_SETFL, os.O_NONBLOCK)
filled = 0
try:
    while True:
        filled += os.write(writer, b"." * 4096)
except BlockingIOError:
    pass
fcntl.fcntl(writer, fcntl.F_SETFL, 0)
chat = start(stdout=writer)
os.close(writer)
chat.stdin.write(b"/help\n")
chat.stdin.flush()
unread = bytearray(b"\xff" * 4)
while any(unread):
    assert chat.poll() is None, (chat.returncode, chat.stderr.read())
    time.sleep(0.01)
    fcntl.ioctl(chat.stdin, termios.FIONREAD, unread)
# It has read the line, and sleeps once it waits for room.
while state(chat.pid) != "S":
    assert chat.poll() is None, (chat.returncode, chat.stderr.read())
    time.sleep(0.01)
for interrupts in range(3):
    chat.send_signal(signal.SIGINT)
    time.sleep(0.1)
chat.stdin.write(b"/exit\n")
chat.stdin.close()
out = b""
while part := os.read(reader, 1 << 20):
    out += part
err = chat.stderr.read()
assert chat.wait(timeout=300) == 0 and b"error" not in err, (chat.returncode, err)
assert b"Ctrl-C stops" in out[filled:], out[filled:]

# At the prompt, the second one in a row ends the program.
chat = start()
read_help(chat)
# How far it is on its way back to the prompt is not known: ask until it is.
for attempt in range(100):
    chat.send_signal(signal.SIGINT)
    try:
        chat.wait(timeout=0.2)
        break
    except subprocess.TimeoutExpired:
        pass
assert chat.returncode == 130, chat.returncode
assert b"Ctrl-C once more" in chat.stderr.read()
