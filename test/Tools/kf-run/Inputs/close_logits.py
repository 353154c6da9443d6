#!/usr/bin/env python3
"""Fails unless two outputs of kf-run logits are of the same tokens, choose the
same, and differ by 1e-4 at most.

usage: close_logits.py A B
"""

import sys


def read(path):
    with open(path) as file:
        return [line.split() for line in file][1:]


rows, others = read(sys.argv[1]), read(sys.argv[2])
if not rows or len(rows) != len(others):
    sys.exit(f"{len(rows)} and {len(others)} positions")
for row, other in zip(rows, others):
    if row[:3] != other[:3] or abs(float(row[3]) - float(other[3])) > 1e-4:
        sys.exit(f"{row} and {other}")
