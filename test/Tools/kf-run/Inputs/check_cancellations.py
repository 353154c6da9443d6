"""check_cancellations.py MODEL COUNT OPTION...: clients that go away end what they asked for.

COUNT requests, or as many as KF_RANK_DEATHS says, some at once, of a server with the
options, which say what its two ranks share: each client goes away at a random time. All of them end in
the server, and what is asked for in between and afterwards has the same answer.
KF_RANK_SEED repeats the random choices of a run. Of the Python standard library
alone.
"""

import concurrent.futures
import http.client
import json
import os
import random
import re
import subprocess
import sys
import time

SECONDS = 240
model = sys.argv[1]
count = int(os.environ.get("KF_RANK_DEATHS", sys.argv[2]))
seed = int(os.environ.get("KF_RANK_SEED", random.randrange(2**32)))
choices = random.Random(seed)
serve = subprocess.Popen(["kf-run", "serve", model, "--port", "0", "-t", "2",
                          *sys.argv[3:]],
                         stdout=subprocess.PIPE, text=True)


def connect():
    return http.client.HTTPConnection(address, timeout=SECONDS)


def send(**fields):
    connection = connect()
    connection.request("POST", "/v1/completions", json.dumps({"prompt": "Once", **fields}),
                       {"Content-Type": "application/json"})
    return connection


def go_away(n, stream, seconds):
    connection = send(n=n, stream=stream, max_tokens=900, ignore_eos=True, temperature=1)
    time.sleep(seconds)
    connection.close()


def greedy():
    answer = json.loads(send(max_tokens=12, temperature=0).getresponse().read())
    return answer["choices"][0]["text"]


def metric(name):
    connection = connect()
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    values = re.findall(rf"^(?:{name})(?:{{.*}})? (\S+)$", text, re.M)
    assert values, name
    return sum(float(value) for value in values)


try:
    address = re.fullmatch(r"listening on http://(\S+)\n", serve.stdout.readline())[1]
    assert serve.stdout.readline().startswith("serving ")
    expected = greedy()
    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        gone = [clients.submit(go_away, choices.randint(1, 4), choices.random() < 0.5,
                               choices.random() * 0.3) for _ in range(count)]
        while not all(one.done() for one in gone):
            assert greedy() == expected
        for one in gone:
            one.result()
    end = time.monotonic() + SECONDS
    while metric("vllm:num_requests_(?:running|waiting)") > 0:
        assert time.monotonic() < end, "requests that nobody waits for go on"
        time.sleep(0.02)
    assert metric("kernelforge:requests_cancelled_total") > 0, "all texts went on to their ends"
    assert greedy() == expected
    serve.terminate()
    assert serve.wait(SECONDS) == 0
except BaseException:
    print(f"to repeat it: KF_RANK_SEED={seed}", file=sys.stderr)
    raise
finally:
    serve.kill()
    serve.wait()
