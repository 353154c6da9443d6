"""What embed.test has written, against one another; or whether two files say the same."""

import json
import math
import sys


def read(name):
    with open(name) as file:
        return [json.loads(line) for line in file]


def length(values):
    return math.sqrt(sum(value * value for value in values))


def near(a, b):
    assert len(a) == len(b), (len(a), len(b))
    assert max(abs(x - y) for x, y in zip(a, b)) < 1e-4, (a[:4], b[:4])


if len(sys.argv) > 1:
    for one, other in zip(read(sys.argv[1]), read(sys.argv[2]), strict=True):
        near(one["embedding"], other["embedding"])
    sys.exit()
lines = read("lines")
assert [line["index"] for line in lines] == [0, 1, 2]
assert all(set(line) == {"index", "tokens", "embedding"} for line in lines)
assert all(abs(length(line["embedding"]) - 1) < 1e-6 for line in lines)
assert lines[0]["tokens"] == lines[2]["tokens"] != lines[1]["tokens"]
near(lines[0]["embedding"], lines[2]["embedding"])
[one] = read("one")
near(one["embedding"], lines[0]["embedding"])
assert max(abs(x - y) for x, y in zip(one["embedding"], lines[1]["embedding"])) > 0.01

# Each token's row: the last one, and the mean.
[rows] = read("rows")
assert set(rows) == {"index", "tokens", "embeddings"}
rows = rows["embeddings"]
assert len(rows) == one["tokens"]
near([x / length(rows[-1]) for x in rows[-1]], one["embedding"])
mean = [sum(column) / len(rows) for column in zip(*rows)]
near(read("mean.jsonl")[0]["embedding"], mean)

few = read("few")
assert len(few) == 3
for short, line in zip(few, lines):
    first = line["embedding"][:8]
    near(short["embedding"], [x / length(first) for x in first])
