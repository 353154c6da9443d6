"""Interrupts kf-run bench behind its first result.

check_bench_interrupt.py KF_RUN
"""
import json
import sys

from interrupt import interrupt_behind

code, out, err = interrupt_behind(
    b"  }",
    [sys.argv[1], "bench", "-p", "8", "-pg", "8,500", "-n", "0", "-r", "40", "-o", "json"],
)
assert code == 130, (code, err)
assert err == b"error: interrupted; 1 of 2 tests were finished\n", err
results = json.loads(out)
assert [result["test"] for result in results] == ["pp8"], results
