"""check_proxy.py nginx|caddy PROGRAM: what docs/Server.md says of that proxy works.

Its lines run in front of `kf-run serve`, but without TLS, on a port that is free:
streams come as they are made, pages have their own origin, and a client that goes
away is noticed. Of the Python standard library alone.
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

NAME = "models.example.org"
SECONDS = 240
kind, program = sys.argv[1:]
docs = os.path.join(os.path.dirname(__file__), "../../../../docs/Server.md")
with open(docs) as file:
    blocks = file.read().split("```")[1::2]


def lines(upstream, port):
    """The proxy's configuration, as the page has it but for addresses."""
    start = "\nserver {" if kind == "nginx" else f"\n{NAME} {{"
    (text,) = [block for block in blocks if block.startswith(start)]

    def put(old, new):
        nonlocal text
        assert text.count(old) == 1, (old, text)
        text = text.replace(old, new)

    put("127.0.0.1:8080", upstream)
    if kind == "caddy":
        put(f"{NAME} {{", f"http://{NAME}:{port} {{")
        return "{\n  admin off\n}\n" + text
    put("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    temporary = "".join(f"{name}_temp_path {os.getcwd()}/{name};\n" for name in (
        "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return (f"daemon off;\nmaster_process off;\npid {os.getcwd()}/pid;\nerror_log stderr;\n"
            "events {}\nhttp {\naccess_log off;\n" + temporary + text + "}\n")


def send(port, method, path, body=None, **headers):
    """An answer that is not read yet."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    connection.request(method, path, body and json.dumps(body), {
        "Host": f"{NAME}:{port}", "Content-Type": "application/json", **headers})
    return connection.getresponse()


def wait(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.01)


def check(port):
    """What clients see of the proxy."""
    assert send(port, "GET", "/v1/models").status == 200
    own = {"Origin": f"http://{NAME}:{port}"}
    assert send(port, "POST", "/tokenize", {"content": "a"}, **own).status == 200
    assert send(port, "POST", "/tokenize", {"content": "a"}, Origin="http://b").status == 403
    # Some events are there long before the last one.
    long = {"prompt": "Once", "n": 64, "max_tokens": 900, "ignore_eos": True, "stream": True}
    stream = send(port, "POST", "/v1/completions", long)
    assert stream.getheader("Content-Type") == "text/event-stream"
    assert stream.readline().startswith(b"data: {")

    def running():
        text = send(port, "GET", "/metrics").read().decode()
        return float(re.search(r"^vllm:num_requests_running\S* (\S+)$", text, re.M)[1])

    wait(lambda: running() > 0)
    stream.close()
    wait(lambda: running() == 0)


with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
serve = subprocess.Popen(["kf-run", "serve", "--port", "0", "--allow-host", NAME],
                         stdout=subprocess.PIPE, text=True)
try:
    address = re.fullmatch(r"listening on http://(\S+)\n", serve.stdout.readline())[1]
    assert serve.stdout.readline().startswith("serving ")
    with open("proxy.conf", "w") as file:
        file.write(lines(address, port))
    command = {"nginx": ["-p", os.getcwd(), "-c", os.path.abspath("proxy.conf")],
               "caddy": ["run", "--config", "proxy.conf", "--adapter", "caddyfile"]}[kind]
    proxy = subprocess.Popen([program, *command], stderr=subprocess.DEVNULL,
                             env={**os.environ, "HOME": os.getcwd()})
    try:
        def listens():
            assert proxy.poll() is None, "the proxy does not take its lines"
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=SECONDS).close()
                return True
            return False

        wait(listens)
        check(port)
    finally:
        proxy.terminate()
        proxy.wait(SECONDS)
finally:
    serve.terminate()
assert serve.wait(SECONDS) == 0
