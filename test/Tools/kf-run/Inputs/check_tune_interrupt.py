"""Interrupts kf-run tune behind its first kernel, and before it.

check_tune_interrupt.py KF_RUN DATABASE
"""
import signal
import subprocess
import sys
import time

from interrupt import interrupt_behind

# More than a busy machine needs for the first kernel.
code, out, err = interrupt_behind(
    b"default",
    [sys.argv[1], "tune", "--budget", "600s", "-t", "1", "--tuning-db", sys.argv[2]],
)
assert code == 130, (code, err)
assert err == b"error: interrupted; the same command goes on from here\n", err
assert b" tuned now, " in out, out

# At any time before: while it takes the model's kernels, too.
for tenths in range(1, 13):
    process = subprocess.Popen(
        [sys.argv[1], "tune", "-t", "1", "--tuning-db", sys.argv[2]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(tenths / 10)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    # Before the signal is caught it ends the process.
    if process.returncode != -signal.SIGINT:
        assert process.returncode == 130, (tenths, process.returncode, err)
        assert err == b"error: interrupted; the same command goes on from here\n", err
