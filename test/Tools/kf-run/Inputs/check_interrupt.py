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
    """Until the condition holds, or the process has ended."""
    deadline = time.monotonic() + 300
    while process.poll() is None and not condition():
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
    # It may come before the prompt's tokens are known, or behind the prompt where
    # this process got no time: then once more.
    for attempt in range(20):
        process = start("generate", "--prompt", text, "-n", "5", *arguments)
        process.send_signal(signal.SIGINT)
        code, out, err = end(process)
        assert code in (0, 130), (code, err)
        if code == 130 and "prefill 0 tokens" in err:
            break
    assert code == 130, (code, err)
    assert out == b"\n", out
    assert "prefill 0 tokens" in err and err.endswith(", cancelled\n"), err


def expect_error(line, *arguments, late=(0, "")):
    """Interrupts the command, which says that in one line; once more where this
    process got no time before its end, which is `late`: the code, and how stderr
    begins."""
    for attempt in range(20):
        process = start(*arguments)
        process.send_signal(signal.SIGINT)
        code, out, err = end(process)
        if code == 130:
            break
        assert code == late[0] and err.startswith(late[1]), (code, err)
    assert (code, out, err) == (130, b"", f"error: interrupted; {line}\n"), (code, err)


expect_error("no scores are written", "logits", "--ids", ids, "--device=reference")
expect_error(
    "the perplexity is not known",
    *("perplexity", "--file", "texts.txt", "--device=reference"),
)

# The tokens of a text that takes seconds; all of them would be too many.
with open("long.txt", "w") as file:
    file.write("Once upon a time there was a dog. " * 2000000)
expect_error(
    "nothing was generated",
    *("generate", "--file", "long.txt"),
    late=(1, "error: the prompt has "),
)
expect_error("the perplexity is not known", "perplexity", "--file", "long.txt")
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
        process.wait(timeout=300)
    else:
        while os.read(reader, 1 << 20):
            pass
    os.close(reader)
    return end(process)


# A pipe that nobody reads holds up the text. A second interrupt ends the process
# at once; one alone ends the text in good order once the pipe has room. Where the
# first one comes before the prompt's tokens are known, it ends the process, and the
# second one may come before that has its code: then once more.
for interrupts in (2, 1):
    for attempt in range(20):
        code, _, err = interrupt_held_up(interrupts)
        if err != "error: interrupted; nothing was generated\n":
            break
        assert code == 130 or (interrupts, code) == (2, -signal.SIGINT), code
    if interrupts == 2:
        assert code == -signal.SIGINT, (code, err)
    else:
        assert code == 130 and err.endswith(", cancelled\n"), (code, err)
