"""Interrupts kf-run where it computes, and looks at how it ends.

check_interrupt.py KF_RUN TEXT_FILE
"""
import fcntl
import os
import signal
import subprocess
import sys
import time

kf_run, text_file = sys.argv[1:]
with open(text_file) as file:
    words = file.read().split()
text = " ".join(words[:600])
ids = ",".join(str(300 + i % 1000) for i in range(800))
with open("texts.txt", "w") as file:
    file.write(text)


def catches(pid):
    """Whether the process has a handler of its own for interrupts."""
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("SigCgt:"):
                return int(line.split()[1], 16) >> (signal.SIGINT - 1) & 1
    raise AssertionError("no SigCgt")


def wait(process, condition):
    deadline = time.monotonic() + 300
    while not condition():
        assert process.poll() is None, (process.returncode, process.stderr.read())
        assert time.monotonic() < deadline
        time.sleep(0.01)


def start(*arguments, stdout=subprocess.PIPE):
    process = subprocess.Popen(
        [kf_run, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )
    # From then on the model is open, and what remains takes long.
    wait(process, lambda: catches(process.pid))
    return process


def end(process):
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err.decode()


# Within the prompt, which the reference takes many seconds for, and while the
# compiler is at work.
for arguments in (["--device=reference"], ["--no-cache"]):
    # It may come before the prompt's tokens are known, or behind the end where
    # this process got no time: then once more.
    for attempt in range(20):
        process = start("generate", "--prompt", text, "-n", "5", *arguments)
        process.send_signal(signal.SIGINT)
        code, out, err = end(process)
        assert code in (0, 130), (code, err)
        if code == 130 and err != "error: interrupted; nothing was generated\n":
            break
    assert code == 130, (code, err)
    assert out == b"\n", out
    assert "prefill 0 tokens" in err and err.endswith(", cancelled\n"), err

for arguments, line in (
    (["logits", "--ids", ids], "error: interrupted; no scores are written\n"),
    (
        ["perplexity", "--file", "texts.txt"],
        "error: interrupted; the perplexity is not known\n",
    ),
):
    process = start(*arguments, "--device=reference")
    process.send_signal(signal.SIGINT)
    code, out, err = end(process)
    assert (code, out, err) == (130, b"", line), (code, out, err)

# The tokens of a text that takes seconds; all of them would be too many.
with open("long.txt", "w") as file:
    file.write("Once upon a time there was a dog. " * 2000000)
for command, undone in (
    ("generate", "nothing was generated"),
    ("perplexity", "the perplexity is not known"),
):
    process = start(command, "--file", "long.txt")
    process.send_signal(signal.SIGINT)
    code, out, err = end(process)
    assert (code, out) == (130, b""), (code, out, err)
    assert err == f"error: interrupted; {undone}\n", err
os.remove("long.txt")

def interrupt_held_up(interrupts):
    """Interrupts a text that a pipe without room holds up; how it ends."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETFL, os.O_NONBLOCK)
    try:
        while True:
            os.write(writer, b"." * 65536)
    except BlockingIOError:
        pass
    fcntl.fcntl(writer, fcntl.F_SETFL, 0)
    process = start("generate", "--prompt", "Once", "-n", "900", stdout=writer)
    os.close(writer)
    process.send_signal(signal.SIGINT)
    wait(process, lambda: not catches(process.pid))
    if interrupts == 2:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=300) == -signal.SIGINT, process.returncode
    else:
        while os.read(reader, 1 << 20):
            pass
    os.close(reader)
    return end(process)


# A pipe that nobody reads holds up the text. A second interrupt ends the process
# at once; one alone ends the text in good order once the pipe has room, or before
# the prompt's tokens are known: then once more.
interrupt_held_up(2)
for attempt in range(20):
    code, _, err = interrupt_held_up(1)
    assert code == 130, (code, err)
    if err != "error: interrupted; nothing was generated\n":
        break
assert err.endswith(", cancelled\n"), err
