"""Interrupts kf-run tune behind its first kernel.

check_tune_interrupt.py KF_RUN DATABASE
"""
import signal
import subprocess
import sys

process = subprocess.Popen(
    [sys.argv[1], "tune", "--budget", "30s", "-t", "1", "--tuning-db", sys.argv[2]],
    stdin=subprocess.DEVNULL,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    bufsize=0,
)
out = b""
while b"default" not in out:
    part = process.stdout.read(4096)
    assert part, (out, process.stderr.read())
    out += part
process.send_signal(signal.SIGINT)
rest, err = process.communicate(timeout=300)
assert process.returncode == 130, (process.returncode, err)
assert err == b"error: interrupted; the same command goes on from here\n", err
assert b" tuned now, " in rest, rest
