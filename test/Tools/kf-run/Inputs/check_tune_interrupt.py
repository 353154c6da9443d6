"""Interrupts kf-run tune behind its first kernel.

check_tune_interrupt.py KF_RUN DATABASE
"""
import sys

from interrupt import interrupt_behind

# More than a busy machine needs for the first kernel.
code, out, err = interrupt_behind(
    b"default",
    [sys.argv[1], "tune", "--budget", "600s", "-t", "1", "--tuning-db", sys.argv[2]],
)
assert code == 130, (code, err)
assert err == b"error: interrupted; the same command goes on from here\n", err
assert b" tuned now, " in out, out
