"""Requests for kf-run batch: 64 beginnings of the texts in a JSON file, of
different lengths, or 16 of ids that have their first N in common."""

import json
import random
import sys

rng = random.Random(3)
if sys.argv[1] == "--prefix":
    common = [rng.randrange(10, 1400) for _ in range(int(sys.argv[2]))]
    for i in range(16):
        own = [20 + i] + [rng.randrange(10, 1400) for _ in range(5 + i)]
        print(json.dumps({"ids": common + own, "n": 3}))
else:
    texts = json.load(open(sys.argv[1]))
    for i in range(64):
        text = texts[i % len(texts)][: rng.randrange(5, 600)]
        print(json.dumps({"prompt": text, "n": rng.randrange(5, 60), "id": i}))
