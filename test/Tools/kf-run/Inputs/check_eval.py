"""Checks what `kf-run eval --kernels --json` wrote.

check_eval.py FILE ROWS DEPTHS
"""

import json
import sys

path, rows, depths = sys.argv[1:]
rows = {int(text) for text in rows.split(",")}
depths = {int(text) for text in depths.split(",")}
report = json.load(open(path))
assert report["version"] == 3 and report["fidelity"] is None
assert report["rates"]["read_bytes_per_second"] > 0
kernels = report["kernels"]
assert {kernel["rows"] for kernel in kernels} == rows
for kernel in kernels:
    assert kernel["complaint"] == "", kernel
    assert kernel["seconds"] > 0 and kernel["deviation"] >= 0, kernel
    assert kernel["runs"] == 3, kernel
    assert len(kernel["samples"]) == 3 and min(kernel["samples"]) <= 1, kernel
    assert len(kernel["code"]) == 32, kernel
    assert 0 <= kernel["mean_error"] <= kernel["max_error"] < 0.1, kernel
    assert kernel["cosine"] > 0.99, kernel
    assert kernel["bytes"] > 0, kernel
    assert kernel["ceiling_fraction"] > 0, kernel
attention = [kernel for kernel in kernels if "attention" in kernel["name"]]
assert {kernel["depth"] for kernel in attention} == depths
near = [kernel for kernel in attention if kernel["depth"] == min(depths)]
far = [kernel for kernel in attention if kernel["depth"] == max(depths)]
assert max(k["bytes"] for k in far) > max(k["bytes"] for k in near)
products = [kernel for kernel in kernels if "matmul" in kernel["name"]]
assert products and all(kernel["flops"] > 0 for kernel in products)
