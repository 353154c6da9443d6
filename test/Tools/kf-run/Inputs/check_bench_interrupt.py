"""Interrupts kf-run bench behind its first result.

check_bench_interrupt.py KF_RUN
"""
import json
import signal
import subprocess
import sys

process = subprocess.Popen(
    [sys.argv[1], "bench", "-p", "8", "-pg", "8,500", "-n", "0", "-r", "40", "-o", "json"],
    stdin=subprocess.DEVNULL,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    bufsize=0,
)
out = b""
while b"  }" not in out:
    part = process.stdout.read(4096)
    assert part, (out, process.stderr.read())
    out += part
process.send_signal(signal.SIGINT)
rest, err = process.communicate(timeout=300)
assert process.returncode == 130, (process.returncode, err)
assert err == b"error: interrupted; 1 of 2 tests were finished\n", err
results = json.loads(out + rest)
assert [result["test"] for result in results] == ["pp8"], results
