"""check_serve_load.py SCRIPT: runs benchmarks/serve_load.py against `kf-run serve`."""

import json
import os
import re
import subprocess
import sys

SECONDS = 240


def load(*arguments, **environment):
    return subprocess.run(
        [sys.executable, sys.argv[1], *arguments], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, timeout=SECONDS, env={**os.environ, **environment})


process = subprocess.Popen(
    ["kf-run", "serve", "--port", "0", "--parallel", "2", "--queue", "1", "--api-key", "secret"],
    stdout=subprocess.PIPE, text=True)
try:
    url = re.fullmatch(r"listening on (\S+)\n", process.stdout.readline())[1]
    assert process.stdout.readline().startswith("serving ")
    small = ["--requests", "5", "--prompt", "20", "--generate", "6", "--api-key-env", "KEY"]
    done = load("a=" + url, url + "/v1", *small, "--clients", "1,4", "--ids", "10:1000",
                "--json", "all.json", KEY="secret")
    assert done.returncode == 0, done.stderr
    # A table of each server for each number of clients.
    lines = done.stdout.splitlines()
    assert lines[0].startswith("| clients | server | tok/s | first p50 "), lines
    assert [line.split("|")[1:3] for line in lines[2:]] == [
        [" 1 ", " a "], [" 1 ", f" {url[7:]} "], [" 4 ", " a "], [" 4 ", f" {url[7:]} "]], lines
    with open("all.json") as file:
        found = json.load(file)
    assert found["settings"]["clients"] == [1, 4] and "secret" not in json.dumps(found)
    for run in found["runs"]:
        assert run["requests"] == 5 and run["generated_tokens"] == 30, run
        # Token ids, and one that begins the text where the model has it.
        assert 100 <= run["prompt_tokens"] <= 105, run
        assert 0 < run["first_p50_ms"] <= run["first_p99_ms"] <= run["request_p99_ms"], run
        assert 0 <= run["between_p50_ms"] <= run["between_p99_ms"], run
        assert run["request_p99_ms"] <= 1e3 * run["seconds"], run
        assert abs(run["tokens_per_second"] * run["seconds"] - 30) < 1e-6, run
    # Words, and an answer that may end.
    done = load(url, *small, "--clients", "2", "--eos", "--model", "kf-stories", KEY="secret")
    assert done.returncode == 0 and done.stdout.count("\n") == 3, done
    # What goes wrong is one line.
    for arguments, text in (
            ([url, *small], "status 401"),
            ([url, *small, "--model", "another"], "status 404"),
            (["http://127.0.0.1:1"], "error: ")):
        done = load(*arguments, KEY="secret" if "--model" in arguments else "wrong")
        assert done.returncode == 1 and text in done.stderr, done
        assert done.stderr.count("\n") == 1, done.stderr
    assert load(url, "--clients", "none").returncode == 2
finally:
    process.terminate()
assert process.wait(SECONDS) == 0
