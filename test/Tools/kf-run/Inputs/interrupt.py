"""Running a command that is interrupted."""
import signal
import subprocess


def interrupt_behind(mark, command):
    """Sends SIGINT once stdout has `mark`; returns exit code, stdout, stderr."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    out = b""
    while mark not in out:
        part = process.stdout.read(4096)
        assert part, (out, process.stderr.read())
        out += part
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=300)
    return process.returncode, out + rest, err
