"""Checks the JSON report of `kf-run generate -p "Once upon a time" -n 5`."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    report = json.load(file)
with open(sys.argv[2], encoding="utf-8") as file:
    printed = file.read()

assert report["device"] == "cpu"
assert report["prompt"] == "Once upon a time"
assert report["prompt_ids"] == [1472, 655, 654, 256, 414]
assert len(report["ids"]) == 5
assert report["text"] + "\n" == printed
assert report["stop_reason"] == "token limit"

timings = report["timings"]
assert timings["prefill_tokens"] == 5 and timings["decode_tokens"] == 4
for part in ("load", "pack", "compile", "prefill", "first_token", "decode", "total"):
    assert 0 <= timings[part] <= timings["total"], (part, timings)

memory = report["memory"]
for part in ("weights", "cache", "arenas", "io"):
    assert memory[part] > 0, (part, memory)
assert memory["peak"] > memory["weights"]
