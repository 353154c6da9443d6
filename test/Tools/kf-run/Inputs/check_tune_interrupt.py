"""Interrupts kf-run tune behind its first kernel, and before it.

check_tune_interrupt.py KF_RUN DATABASE
"""
import signal
import subprocess
import sys
import time

from interrupt import interrupt_behind


def check_end(code, err, *where):
    """Whether it ended as it does when it is interrupted: with one error, behind
    what it says where others had the cores meanwhile."""
    assert code == 130, (*where, code, err)
    *before, last = err.splitlines()
    assert last == b"error: interrupted; the same command goes on from here", err
    assert all(b.startswith(b"warning: other processes had cores") for b in before), err


# More than a busy machine needs for the first kernel, and less than all take.
code, out, err = interrupt_behind(
    b"default",
    [sys.argv[1], "tune", "--budget", "600s", "-t", "1", "--tuning-db", sys.argv[2]],
)
check_end(code, err)
assert b" tuned now, " in out, out

# At any time before: while it takes the model's kernels, too. Each time there are
# all of them to tune.
for tenths in range(1, 13):
    process = subprocess.Popen(
        [sys.argv[1], "tune", "--budget", "600s", "-t", "1"]
        + ["--tuning-db", f"{sys.argv[2]}.{tenths}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(tenths / 10)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    # Before the signal is caught it ends the process.
    if process.returncode != -signal.SIGINT:
        check_end(process.returncode, err, tenths)
