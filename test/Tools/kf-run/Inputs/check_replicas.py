"""check_replicas.py HAPROXY: what docs/Server.md says of several servers works.

Its lines run in front of two `kf-run serve`, on ports that are free: a session
stays with its server, sessions are shared out, clients that go away are noticed,
and the sessions of a server that is gone are the other one's. Of the Python
standard library alone.
"""

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time

SECONDS = 240
SESSIONS = [f"session {i}" for i in range(24)]
docs = os.path.join(os.path.dirname(__file__), "../../../../docs/Server.md")
with open(docs) as file:
    (LINES,) = [block for block in file.read().split("```")[1::2]
                if block.startswith("\ndefaults")]


def configuration(port, servers):
    """The page's lines, but for addresses and how often servers are asked."""
    text = LINES

    def put(old, new, times=1):
        nonlocal text
        assert text.count(old) == times, (old, text)
        text = text.replace(old, new)

    put("bind :8000", f"bind 127.0.0.1:{port}")
    put("127.0.0.1:8080", servers[0])
    put("127.0.0.1:8081", servers[1])
    put("inter 2s", "inter 1s", times=2)
    return text


def start(running, command, **how):
    """A process that is gone when the stack `running` is left."""
    process = running.enter_context(subprocess.Popen(command, **how))
    running.callback(process.kill)
    return process


class Server:
    def __init__(self, running):
        self.process = start(running, ["kf-run", "serve", "--port", "0", "-t", "1"],
                             stdout=subprocess.PIPE, text=True)
        listens = re.fullmatch(r"listening on http://(\S+)\n", self.process.stdout.readline())
        self.address = listens[1]
        assert self.process.stdout.readline().startswith("serving ")

    def metric(self, name):
        connection = http.client.HTTPConnection(self.address, timeout=SECONDS)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        return sum(float(value) for value in
                   re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.M))

    def finished(self):
        return self.metric("vllm:request_success_total")

    def end(self):
        self.process.terminate()
        assert self.process.wait(SECONDS) == 0


def send(port, session, **fields):
    """An answer that is not read yet, and its connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    headers = {"Content-Type": "application/json"}
    if session:
        headers["X-Session-Id"] = session
    connection.request("POST", "/v1/completions",
                       json.dumps({"prompt": "Once", "max_tokens": 1, **fields}), headers)
    return connection


def ask(port, session):
    answer = send(port, session).getresponse()
    answer.read()
    return answer.status


def wait(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.02)


def servers_of(port, servers, sessions):
    """The number of the server that answers each session."""
    chosen = []
    for session in sessions:
        before = [server.finished() for server in servers]
        assert ask(port, session) == 200
        grown = [server.finished() - count for server, count in zip(servers, before)]
        assert sorted(grown) == [0] * (len(servers) - 1) + [1], grown
        chosen.append(grown.index(1))
    return chosen


def check(port, servers):
    chosen = servers_of(port, servers, SESSIONS)
    assert set(chosen) == {0, 1}, chosen
    assert servers_of(port, servers, SESSIONS) == chosen
    assert set(servers_of(port, servers, [None] * 40)) == {0, 1}
    # Who goes away waits for nothing, whether the answer streams or not.
    total = lambda name: sum(server.metric(name) for server in servers)
    running = lambda: total("vllm:num_requests_running")
    for stream in True, False:
        before = total("vllm:generation_tokens_total")
        connection = send(port, SESSIONS[0], n=64, max_tokens=900, ignore_eos=True,
                          stream=stream)
        wait(lambda: running() > 0)
        connection.close()
        wait(lambda: running() == 0)
        made = total("vllm:generation_tokens_total") - before
        assert made < 64 * 900 / 2, f"{made} tokens, stream {stream}, for somebody who is gone"
    # One ends, as it does for an update.
    servers[0].end()
    left = servers[1].finished()
    for session in SESSIONS:
        wait(lambda: ask(port, session) == 200)
    assert servers[1].finished() == left + len(SESSIONS)


with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
with contextlib.ExitStack() as running:
    servers = []
    for _ in range(2):
        servers.append(Server(running))
    with open("haproxy.cfg", "w") as file:
        file.write(configuration(port, [server.address for server in servers]))
    proxy = start(running, [sys.argv[1], "-db", "-f", "haproxy.cfg"],
                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_ready():
        assert proxy.poll() is None, "the proxy does not take its lines"
        with contextlib.suppress(ConnectionRefusedError):
            return ask(port, None) == 200
        return False

    wait(is_ready)
    check(port, servers)
    servers[1].end()
