"""Checks results of kf-run batch.

REQUESTS RESULTS ALONE: the requests' results have the ids that they have alone;
with --some-failed, those that did not fail. --prefix N RESULTS: the first N ids
of the prompts were computed once."""

import json
import sys


def read(path):
    return [json.loads(line) for line in open(path)]


arguments = sys.argv[1:]
if arguments[0] == "--prefix":
    results = read(arguments[2])
    reused = [result["prompt_tokens_reused"] for result in results]
    assert len(results) == 16, len(results)
    assert reused[0] == 0, reused
    assert all(count >= int(arguments[1]) for count in reused[1:]), reused
    sys.exit()

some_failed = arguments[0] == "--some-failed"
requests, results, alone = map(read, arguments[some_failed:])
assert len(requests) == len(results) == len(alone) == 64
failed = 0
for request, result, single in zip(requests, results, alone):
    assert result["id"] == single["id"] == request["id"]
    if some_failed and result["finish_reason"] == "error":
        assert "KV cache is too small" in result["error"], result
        failed += 1
        continue
    for key in ("ids", "text", "finish_reason", "prompt_tokens"):
        assert result[key] == single[key], (request, result, single)
    assert len(result["ids"]) <= request["n"]
assert not some_failed or 0 < failed < 64, failed
