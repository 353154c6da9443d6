"""check_serve_load.py SCRIPT: runs benchmarks/serve_load.py against `kf-run serve`."""

import importlib.util
import json
import os
import re
import subprocess
import sys

SECONDS = 240
sys.dont_write_bytecode = True  # beside the script, when its functions are called


def check_figures():
    """The figures of requests whose times are known."""
    specification = importlib.util.spec_from_file_location("serve_load", sys.argv[1])
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    results = []
    for first in range(1, 101):
        results.append(script.Result())
        results[-1].first, results[-1].seconds = first / 1000, 2 * first / 1000
        results[-1].generated = 3
    server = script.Server("a=http://127.0.0.1:1")
    figures = script.summarize(server, 4, results, 10.0)
    # Nothing came after the first text of any.
    assert figures["between_p50_ms"] is None and figures["between_p99_ms"] is None, figures
    assert " - | - |" in script.row(figures)
    results[0].between, results[1].between = [0.004, 0.001], [0.002, 0.003]
    figures = script.summarize(server, 4, results, 10.0)
    for name, milliseconds in (("first", (50, 99)), ("request", (100, 198)), ("between", (2, 4))):
        for part, expected in zip((50, 99), milliseconds):
            found = figures[f"{name}_p{part}_ms"]
            assert abs(found - expected) < 1e-6, (name, part, found)
    assert figures["tokens_per_second"] == 30, figures


check_figures()

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
        # All of a short text may have come at once.
        if run["between_p50_ms"] is not None:
            assert 0 <= run["between_p50_ms"] <= run["between_p99_ms"], run
        assert run["request_p99_ms"] <= 1e3 * run["seconds"], run
        assert abs(run["tokens_per_second"] * run["seconds"] - 30) < 1e-6, run
    # Words, and an answer that may end.
    done = load(url, *small, "--clients", "2", "--eos", "--model", "kf-stories", KEY="secret")
    assert done.returncode == 0 and done.stdout.count("\n") == 3, done
    # Longer prompts beside, and all of them as requests of `kf-run batch`.
    done = load(url, *small, "--clients", "2", "--ids", "10:1000", "--arrivals", "50",
                "--arrival-prompt", "40", "--write-requests", "sent.jsonl", "--json", "all.json",
                KEY="secret")
    assert done.returncode == 0, done.stderr
    with open("all.json") as file:
        run_of_all = json.load(file)["runs"][0]
    beside = run_of_all["arrivals"]
    assert run_of_all["requests"] == 5 and 1 <= beside["requests"] <= 5, run_of_all
    assert beside["prompt_tokens"] >= 40 * beside["requests"], beside
    assert [line.split("|")[1].strip() for line in done.stdout.splitlines()[2:]] == ["2", "0"], done
    with open("sent.jsonl") as file:
        sent = [json.loads(line) for line in file]
    assert len(sent) == 5 + beside["requests"], run_of_all
    assert sorted({len(request["ids"]) for request in sent}) == [20, 40], sent
    assert all(request["n"] == 6 for request in sent), sent
    done = subprocess.run(["kf-run", "batch", "--file", "sent.jsonl", "--quiet"],
                          stdout=subprocess.PIPE, text=True, timeout=SECONDS)
    assert done.returncode == 0 and done.stdout.count("\n") == len(sent), done
    # What goes wrong is one line.
    for arguments, text in (
            ([url, *small], "status 401"),
            ([url, *small, "--model", "another"], "status 404"),
            # Of those beside alone: too long for the model.
            ([url, *small, "--model", "kf-stories", "--arrivals", "100", "--arrival-prompt",
              "2000"], "status 400"),
            (["http://127.0.0.1:1"], "error: ")):
        done = load(*arguments, KEY="secret" if "--model" in arguments else "wrong")
        assert done.returncode == 1 and text in done.stderr, done
        assert done.stderr.count("\n") == 1, done.stderr
    assert load(url, "--clients", "none").returncode == 2
    assert load(url, "--arrivals", "-1").returncode == 2
finally:
    process.terminate()
assert process.wait(SECONDS) == 0
