"""check_cancellations.py MODEL COUNT: clients that go away leave nobody waiting.

COUNT requests, or as many as KF_RANK_DEATHS says, some at once, of a server of two
ranks: each client goes away at a random time. All of them end in the server, and
what is asked for in between and afterwards has the same answer. Of the Python
standard library alone.
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
serve = subprocess.Popen(["kf-run", "serve", model, "--port", "0", "-t", "2",
                          "--tensor-parallel", "2"], stdout=subprocess.PIPE, text=True)


def connect():
    return http.client.HTTPConnection(address, timeout=SECONDS)


def send(**fields):
    connection = connect()
    connection.request("POST", "/v1/completions", json.dumps({"prompt": "Once", **fields}),
                       {"Content-Type": "application/json"})
    return connection


def go_away(_):
    connection = send(n=random.randint(1, 4), max_tokens=900, ignore_eos=True, temperature=1,
                      stream=random.random() < 0.5)
    time.sleep(random.random() * 0.3)
    connection.close()


def greedy():
    answer = json.loads(send(max_tokens=12, temperature=0).getresponse().read())
    return answer["choices"][0]["text"]


def running():
    connection = connect()
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    return sum(float(value) for value in re.findall(
        r"^vllm:num_requests_(?:running|waiting)\S* (\S+)$", text, re.M))


try:
    address = re.fullmatch(r"listening on http://(\S+)\n", serve.stdout.readline())[1]
    assert serve.stdout.readline().startswith("serving ")
    expected = greedy()
    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        gone = [clients.submit(go_away, i) for i in range(count)]
        while not all(one.done() for one in gone):
            assert greedy() == expected
        for one in gone:
            one.result()
    end = time.monotonic() + SECONDS
    while running() > 0:
        assert time.monotonic() < end, "requests that nobody waits for go on"
        time.sleep(0.02)
    assert greedy() == expected
finally:
    serve.terminate()
assert serve.wait(SECONDS) == 0
