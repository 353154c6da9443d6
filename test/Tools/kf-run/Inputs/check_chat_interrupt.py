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

chat = subprocess.Popen(
    [sys.argv[1], "chat", *sys.argv[2:]],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
)
chat.stdin.write(b"Tell me a story.\n")
chat.stdin.flush()
# The answer has begun; the interrupt comes in the middle of it.
begun = os.read(chat.stdout.fileno(), 1)
assert begun, chat.stderr.read()
chat.send_signal(signal.SIGINT)
out, err = chat.communicate(b"/stats\n/exit\n", timeout=300)
assert chat.returncode == 0, (chat.returncode, out, err)
assert b"[cancelled]" in err, err
lines = out.decode().splitlines()
last = next(line for line in lines if line.startswith("last: "))
generated = int(last.split("generated ")[1].split(",")[0])
assert 0 < generated < 900, last

# A template that would go on for seconds ends, too.
with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
    template.write(
        "{% macro m(x) %}{% if x %}{{ m(x - 1) }}{{ m(x - 1) }}{% endif %}"
        "{% endmacro %}{{ m(100) if messages|length == 1 }}"
    )
    template.flush()
    chat = subprocess.Popen(
        [sys.argv[1], "chat", "--template", template.name, *sys.argv[2:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    chat.stdin.write(b"/help\nHello\n")
    chat.stdin.flush()
    while b"Ctrl-C stops" not in chat.stdout.readline():
        pass
    # Once it is past reading the line, its time goes by in the template.
    time.sleep(0.2)
    chat.send_signal(signal.SIGINT)
    out, err = chat.communicate(b"/exit\n", timeout=300)
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
chat = subprocess.Popen(
    [sys.argv[1], "chat", *sys.argv[2:]],
    stdin=subprocess.PIPE,
    stdout=writer,
    stderr=subprocess.PIPE,
)
os.close(writer)
chat.stdin.write(b"/help\n")
chat.stdin.flush()
unread = bytearray(b"\xff" * 4)
while any(unread):
    assert chat.poll() is None, (chat.returncode, chat.stderr.read())
    time.sleep(0.01)
    fcntl.ioctl(chat.stdin, termios.FIONREAD, unread)
time.sleep(0.5)  # It has read the line, and waits for room by then.
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
chat = subprocess.Popen(
    [sys.argv[1], "chat", *sys.argv[2:]],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
)
chat.stdin.write(b"/help\n")
chat.stdin.flush()
while b"Ctrl-C stops" not in chat.stdout.readline():
    pass
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
