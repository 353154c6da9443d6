"""Looks at what kf-run bench wrote of the same tests as JSON, as CSV and as JSON
lines.

check_bench.py JSON CSV JSONL
"""
import csv
import json
import math
import statistics
import sys

with open(sys.argv[1]) as file:
    results = json.load(file)
with open(sys.argv[2], newline="") as file:
    rows = list(csv.DictReader(file))
with open(sys.argv[3]) as file:
    lines = [json.loads(line) for line in file]
assert [list(line) for line in lines] == [list(result) for result in results]
assert [line["test"] for line in lines] == [result["test"] for result in results]

assert [(r["n_threads"], r["test"]) for r in results] == [
    (1, "pp32"),
    (1, "tg4"),
    (2, "pp32"),
    (2, "tg4"),
]
for result, row in zip(results, rows, strict=True):
    lists = {"samples_ns", "samples_ts"}
    assert list(row) == [key for key in result if key not in lists], row.keys()
    for key in ("model_type", "n_threads", "n_prompt", "n_gen", "test", "weight_type"):
        assert row[key] == str(result[key]), key
    assert float(row["avg_ts"]) > 0

    assert result["model_type"] == "llama 6M q4_0", result["model_type"]
    assert result["model_n_params"] == 6280704
    assert 6280704 / 2 < result["model_size"] < 6280704
    tokens = result["n_prompt"] + result["n_gen"]
    assert (result["n_prompt"], result["n_gen"]) in ((32, 0), (0, 4))
    assert (result["n_sequences"], result["n_depth"]) == (1, 0)
    assert result["n_batch"] == result["n_ubatch"] >= 32, result
    assert result["device"] == result["backends"] == "cpu"

    # A rate of each run, and what the runs have in common.
    times, rates = result["samples_ns"], result["samples_ts"]
    assert len(times) == len(rates) == 3
    for time, rate in zip(times, rates):
        assert math.isclose(rate, tokens / time * 1e9, rel_tol=1e-4)
    assert math.isclose(result["avg_ts"], statistics.mean(rates), rel_tol=1e-6)
    assert math.isclose(result["stddev_ts"], statistics.stdev(rates), rel_tol=1e-6)
    assert abs(result["avg_ns"] - statistics.mean(times)) < 2
    assert abs(result["stddev_ns"] - statistics.stdev(times)) < 2

    # What it took to begin, and what it takes in memory, of the host alone.
    assert result["load_ns"] > 0 and result["compile_ns"] > 0
    assert 0 < result["first_token_ns"] <= result["avg_ns"] + 1, result
    if result["n_gen"]:
        # By how much says nothing: either may have waited for the processor.
        assert result["first_token_ns"] < result["avg_ns"], result
    assert result["weights_bytes"] > 0.9 * result["model_size"]
    for key in ("cache_bytes", "arenas_bytes", "io_bytes"):
        assert result[key] > 0, key
    assert result["peak_bytes"] > result["weights_bytes"]
    assert result["device_bytes"] is None

    assert result["ceiling"] > 0 and result["ceiling_fraction"] > 0
    # Which of them binds so small a model depends on the machine and the build.
    units = ("GB/s", "GOP/s", "GFLOP/s")
    assert result["ceiling_unit"] in units, result["ceiling_unit"]
    if result["n_gen"] and result["ceiling_unit"] == "GB/s":
        # Most of the model is read for a token.
        least = result["model_size"] * 0.8 / (result["ceiling"] * 1e9)
        most = result["model_size"] * 1.2 / (result["ceiling"] * 1e9)
        seconds = result["avg_ns"] / 1e9 / result["n_gen"]
        assert least <= result["ceiling_fraction"] * seconds <= most, result
