"""check_compare.py PART: runs `kf-run compare` beside servers and checks what it
makes of them.

Of the Python standard library alone. PART is the name of one of the functions
below that check something.
"""

import contextlib
import http.server
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

SECONDS = 240
KEY = "sk-very-secret-0123456789"
REQUESTS = [
    {"prompt": "Once upon a time", "n": 12, "id": "first"},
    {"messages": [{"role": "user", "content": "Tell me a story."}], "n": 16},
    {
        "custom_id": "third",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {
            "model": "any",
            "max_completion_tokens": 8,
            "messages": [{"role": "user", "content": "A cat."}],
        },
    },
]


@contextlib.contextmanager
def serve():
    """The address of a server of the embedded model."""
    process = subprocess.Popen(
        ["kf-run", "serve", "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        url = process.stdout.readline().split()[-1]
        assert process.stdout.readline().startswith("serving ")
        yield url
    finally:
        process.kill()
        process.wait()


def write_requests(requests=REQUESTS):
    with open("requests.jsonl", "w") as file:
        file.writelines(json.dumps(request) + "\n" for request in requests)


def compare(*options, code=0, requests=REQUESTS, env={}):
    """What it prints, what it says beside, and its JSON."""
    write_requests(requests)
    with contextlib.suppress(FileNotFoundError):
        os.remove("out.json")
    clean = {
        name: value
        for name, value in os.environ.items()
        if name.lower() not in ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
        and name not in ("OPENAI_API_KEY", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
    }
    run = subprocess.run(
        ["kf-run", "compare", "--file", "requests.jsonl", "--json", "out.json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**clean, **env},
        timeout=SECONDS,
    )
    assert run.returncode == code, (run.returncode, run.stdout, run.stderr)
    report = None
    if os.path.exists("out.json"):
        text = open("out.json").read()
        assert text.isascii()
        report = json.loads(text)
    return run.stdout, run.stderr, report


def chunk(text=None, finish=None, **more):
    choice = {"index": 0, "delta": {"content": text} if text else {}}
    if text:
        choice["text"] = text
    if finish:
        choice["finish_reason"] = finish
    return "data: " + json.dumps({"choices": [choice], **more}) + "\n\n"


USAGE = (
    'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}\n\n'
    "data: [DONE]\n\n"
)
GOOD = chunk("one") + chunk(" two") + chunk(finish="stop") + USAGE


class Fake(http.server.BaseHTTPRequestHandler):
    """A server that misbehaves as the first part of the path says."""

    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

    def reply(self, status, body, kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body.encode() if isinstance(body, str) else body)

    def stream(self, body):
        # What chunk() makes is for chats and for completions.
        absent = '"text": ' if self.path.endswith("/chat/completions") else '"content": '
        self.reply(200, body.replace(absent, '"none": '), "text/event-stream")

    def handle_any(self):
        length = int(self.headers.get("Content-Length", 0))
        self.body = self.rfile.read(length)
        server = self.server
        with server.lock:
            server.requests.append((self.path, dict(self.headers), self.body))
            self.number = sum(1 for r in server.requests if r[0] == self.path)
        path = self.path.split("://model.test")[-1]
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if path.endswith("/models"):
                name = path.split("/")[1]
                models = getattr(self, "models_" + name, None)
                if models:
                    return models()
                return self.reply(200, json.dumps({"data": [{"id": "fake"}]}))
            getattr(self, "do_" + path.split("/")[1].replace("-", "_"))()

    do_GET = do_POST = handle_any

    def do_good(self):
        self.stream(GOOD)

    do_v1 = do_good

    def do_whole(self):  # does not stream
        body = {
            "choices": [{"message": {"content": "one two"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 2},
        }
        self.reply(200, json.dumps(body))

    def do_busy(self):
        if self.number == 1:
            return self.reply(429, '{"error":{"message":"slow down"}}', Retry_After="2")
        if self.number == 2:
            return self.reply(500, "<html>broken</html>", "text/html")
        self.stream(GOOD)

    def do_later(self):
        self.reply(429, '{"error":{"message":"quota"}}', Retry_After="86400")

    def do_cut(self):
        self.stream(chunk("one"))

    def do_json(self):
        self.stream('data: {"choices": [\n\n')

    def do_error(self):
        self.stream(chunk("one") + 'data: {"error":{"message":"out of \\u001b[31mluck"}}\n\n')

    def do_number(self):
        self.stream('data: {"choices":[{"delta":{"content":7}}]}\n\n')

    def do_line(self):
        self.stream("data: ")
        while True:
            self.wfile.write(b"x" * 65536)

    def do_forever(self):
        self.stream("")
        while True:
            self.wfile.write(b": ping\n\n")
            time.sleep(0.05)

    def do_tail(self):  # does not end behind its end
        self.stream(GOOD)
        while True:
            self.wfile.write(b"\n" * 4096)

    def do_head(self):
        self.send_response(200)
        self.flush_headers()
        while True:
            self.wfile.write(b"X-Many: " + b"y" * 4096 + b"\r\n")

    def do_slow(self):
        time.sleep(SECONDS)

    def do_missing(self):
        self.reply(404, '{"error":{"message":"there is no model \'fake\'"}}')

    def do_moved(self):
        self.reply(302, "", Location=f"http://127.0.0.1:{self.server.server_port}/good/v1")

    def do_echo(self):  # shows everybody the key
        key = self.headers["Authorization"]
        if self.number == 1:
            return self.reply(400, json.dumps({"error": {"message": "wrong: " + key}}))
        if self.number == 2:
            return self.reply(400, "no JSON: " + key, "text/plain")
        half = len(key) // 2
        self.stream(chunk(key[:half]) + chunk(key[half:], finish=key) + USAGE)

    def do_locked(self):
        self.reply(401, json.dumps({"error": {"message": self.headers["Authorization"]}}))

    def models_names(self):
        self.reply(200, json.dumps({"data": [{"id": "evil\x1b]0;name\x07"}]}))

    def models_none(self):
        self.reply(200, '{"data": []}')


@contextlib.contextmanager
def fake(context=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fake)
    server.daemon_threads = True
    server.requests, server.lock = [], threading.Lock()
    scheme = "http"
    if context:
        scheme = "https"
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.url = f"{scheme}://127.0.0.1:{server.server_port}/"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()


def own():
    """Beside a server of the same model, all is the same."""
    with serve() as url:
        prices = ("--price-input", "2", "--price-output", "10")
        out, err, report = compare("--against", f"{url},{url}/v1/", *prices)
    assert err == "", err
    model, *servers = report["runs"]
    assert model["server"] is None and model["model"] == "kf-stories"
    assert len(servers) == 2 and servers[0]["server"] == servers[1]["server"] == url + "/v1"
    for run in servers:
        assert run["model"] == "kf-stories", run
        assert run["agreement"] == {
            "compared": 3,
            "equal": 3,
            "common_characters": run["agreement"]["common_characters"],
            "common_share": 1.0,
        }
        assert run["agreement"]["common_characters"] > 10
    for run in report["runs"]:
        assert (run["answered"], run["failed"], run["retries"]) == (3, 0, 0), run
        assert run["output_tokens_counted_by"] == "server"
        assert run["output_tokens"] == 12 + 16 + 8, run
        assert run["first_token_ms"]["p50"] > 0
        # A server sends what there is when its reader is ready, on a busy machine
        # each answer in one piece.
        between = run["between_tokens_ms"]
        assert between is None or between["p99"] > 0
        assert [a.get("id") for a in run["answers"]] == ["first", None, "third"]
        assert [a["text"] for a in run["answers"]] == [a["text"] for a in model["answers"]]
    assert model["cost"] is None
    cost = (2 * servers[0]["prompt_tokens"] + 10 * 36) / 1e6
    assert abs(servers[0]["cost"] - cost) < 1e-12, servers[0]["cost"]
    assert out.count("100.0 %") == 4 and out.count("\n") == 5, out

    # What is drawn is not compared, and lines are objects.
    with serve() as url:
        out, _, report = compare(
            "--against",
            url,
            "-o",
            "jsonl",
            "--preset",
            "memory",
            "--parallel",
            "2",
            requests=[{"prompt": "Once", "n": 3, "temp": 0.9, "seed": 1}],
        )
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["answered"] for line in lines] == [1, 1]
    assert lines[1]["agreement"]["compared"] == 0
    assert lines[1]["agreement"]["common_share"] is None
    assert lines[0]["preset"]["name"] == "memory" == report["preset"]["name"]
    assert "parallel" not in lines[0]["preset"]["sets"]
    assert not report["runs"][0]["answers"][0]["greedy"]


def sent():
    """What servers are asked."""
    third = json.loads(json.dumps(REQUESTS[2]))
    third["body"]["response_format"] = {"properties": {"b": {}, "a": {}}}
    with fake() as server:
        compare(
            "--against",
            server.url + "good",
            "--remote-model",
            "m",
            "--temp",
            "0.5",
            code=1,  # the model does not know this format
            requests=REQUESTS[:2] + [third],
        )
    bodies = [json.loads(body) for _, _, body in server.requests]
    schemas = [b["response_format"] for b in bodies if "response_format" in b]
    assert list(schemas[0]["properties"]) == ["b", "a"], schemas
    paths = [path for path, _, _ in server.requests]
    assert sorted(paths) == ["/good/chat/completions"] * 2 + ["/good/completions"], paths
    for body in bodies:
        assert body["model"] == "m" and body["stream"] is True
        assert body["stream_options"] == {"include_usage": True}
        assert body["temperature"] == 0.5 and "id" not in body and "n" not in body
    assert sorted(b.get("max_tokens", 0) for b in bodies) == [0, 12, 16]
    assert all("Authorization" not in headers for _, headers, _ in server.requests)

    # Through a proxy, and by a list of models.
    with fake() as server:
        proxy = {"http_proxy": server.url}
        _, _, report = compare("--against", "http://model.test", env=proxy)
        assert report["runs"][1]["answered"] == 3 and report["runs"][1]["model"] == "fake"
    assert server.requests[0][0] == "http://model.test/v1/models", server.requests[0]

    # A server that does not stream, one that does not end, and one without
    # counts.
    with fake() as server:
        _, _, report = compare(
            "--against", f"{server.url}whole,{server.url}tail", "--remote-model", "m"
        )
    whole, tail = report["runs"][1:]
    assert whole["answered"] == tail["answered"] == 3
    assert whole["first_token_ms"] is None and whole["output_tokens"] == 6
    assert tail["answers"][0]["text"] == whole["answers"][0]["text"] == "one two"


def retries():
    with fake() as server:
        begin = time.time()
        _, err, report = compare(
            "--against", server.url + "busy", "--parallel", "1", requests=REQUESTS[:1]
        )
        assert time.time() - begin > 2, "Retry-After"
        assert err == "", err
        assert report["runs"][1]["retries"] == 2 and report["runs"][1]["answered"] == 1

        # No more often than it is told to, nor after days.
        _, err, _ = compare(
            "--against", server.url + "later", code=1, requests=REQUESTS[:1]
        )
        assert "answered 429: quota: it asks to come back in 86400 s" in err, err
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        _, err, report = compare(
            "--against", url, "--remote-model", "m", "--retries", "1", code=1
        )
    assert report["runs"][1]["failed"] == 3 and report["runs"][1]["retries"] == 3
    assert report["runs"][0]["answered"] == 3, "the model's own figures are there"
    assert err.count("error: ") == 3 and "connect" in err, err


def broken():
    faults = {
        "cut": "the stream ended in the middle of the answer",
        "json": "an event of the stream is not sound JSON",
        "error": "the server ended the answer with an error: out of ?[31mluck",
        "number": "an answer whose 'content' is no text",
        "line": "a stream with a line of more than 4 MiB",
        "forever": "timed out",
        "head": "a head of more than 256 KiB",
        "moved": "answered 302",
        "slow": "timed out",
    }
    with fake() as server:
        for name, message in faults.items():
            out, err, report = compare(
                "--against",
                server.url + name,
                "--remote-model",
                "m",
                "--timeout",
                "2" if name in ("forever", "slow") else "60",
                code=1,
                requests=REQUESTS[1:2],
            )
            run = report["runs"][1]
            assert (run["answered"], run["failed"], run["retries"]) == (0, 1, 0), (name, run)
            assert message in run["answers"][0]["error"], (name, run["answers"])
            assert message in err and err.count("\n") == 1, (name, err)
            assert "\x1b" not in out + err, name

        # A model that is not there is asked for once.
        before = len(server.requests)
        _, err, report = compare(
            "--against",
            server.url + "missing",
            "--parallel",
            "1",
            "--remote-model",
            "m",
            code=1,
        )
        assert len(server.requests) == before + 1
        assert report["runs"][1]["failed"] == 3
        assert "answered 404: there is no model 'fake'" in err

        for name, message in {
            "names": "the list of models: the first has a name that is empty, too long",
            "none": "the list of models: there is no model in the list",
        }.items():
            out, err, _ = compare("--against", server.url + name, code=1)
            assert message in err and "\x1b" not in out + err, err


def keys():
    url = "http://127.0.0.1:1"
    other = "http://example.invalid"
    with fake() as server:
        # It is sent, and hidden wherever the server shows it.
        out, err, report = compare(
            "--against",
            f"{server.url}echo,{server.url}locked,{server.url}good",
            "--remote-model",
            "m",
            "--parallel",
            "1",
            "--key-env",
            "MY_KEY,MY_KEY,-",
            code=1,
            env={"MY_KEY": KEY},
            requests=REQUESTS[1:2] * 3,
        )
        for text in (out, err, json.dumps(report)):
            assert "secret" not in text, text
        echo, locked, good = report["runs"][1:]
        assert [a.get("error") for a in echo["answers"]] == [
            "answered 400: wrong: Bearer [key]",
            "answered 400: no JSON: Bearer [key]",
            None,
        ], echo
        assert echo["answers"][2]["text"] == "Bearer [key]"
        assert locked["answers"][0]["error"] == "answered 401: Bearer [key]"
        asked = [(p.split("/")[1], h.get("Authorization")) for p, h, _ in server.requests]
        assert asked == [("echo", "Bearer " + KEY)] * 3 + [
            ("locked", "Bearer " + KEY)
        ] + [("good", None)] * 3, asked

        # By default OPENAI_API_KEY's, of one server.
        server.requests.clear()
        compare("--against", server.url + "good", env={"OPENAI_API_KEY": KEY})
        assert all(h["Authorization"] == "Bearer " + KEY for _, h, _ in server.requests)
        _, err, _ = compare(
            "--against", f"{url},{url}", code=2, env={"OPENAI_API_KEY": KEY}
        )
        assert "--key-env is missing" in err

        # A proxy does not see what is for this machine.
        with fake() as proxy:
            server.requests.clear()
            env = {"OPENAI_API_KEY": KEY, "http_proxy": proxy.url}
            compare("--against", server.url + "good", env=env)
            assert server.requests and not proxy.requests

        # A redirection gets none.
        server.requests.clear()
        compare(
            "--against",
            server.url + "moved",
            code=1,
            env={"OPENAI_API_KEY": KEY},
        )
        assert not any(p.startswith("/good") for p, _, _ in server.requests)

    for options, env, message in [
        (("--key-env", "UNSET_KEY"), {}, "the variable 'UNSET_KEY', which is empty"),
        (("--key-env", KEY), {}, "the value given is none"),
        (("--key-env", "A,B"), {}, "--key-env has 2 values for 1 servers"),
        (("--key-env", "A"), {"A": KEY + "\r\nX: y"}, "variable 'A' has blanks"),
        (("--api-key", KEY), {}, "is not for command lines"),
        (("--price-input", "-1"), {}, "--price-input takes numbers from 0"),
        (("--remote-model", ""), {}, "--remote-model is empty"),
    ]:
        _, err, _ = compare("--against", url, *options, code=2, env=env)
        assert message in err and "secret" not in err, err
    _, err, _ = compare("--against", other, code=2, env={"OPENAI_API_KEY": KEY})
    assert "would be readable on the way" in err and "secret" not in err, err
    for wrong in (
        "ftp://a",
        "127.0.0.1:80",
        "http://",
        "http://a?b=c",
        "https://u:p@a",
        "http://a\x1bb",
        "",
    ):
        _, err, _ = compare("--against", wrong, code=2)
        assert "u:p" not in err and "\x1b" not in err, err
    _, err, _ = compare("--against", url, code=1, requests=[{"n": 3}])
    assert "line 1: one of 'prompt'" in err, err


def library():
    """Without libcurl."""
    os.makedirs("lib", exist_ok=True)
    for name in "libcurl.so.4", "libcurl-gnutls.so.4":
        open("lib/" + name, "w").close()
    out, err, report = compare(
        "--against", "http://127.0.0.1:1", code=1, env={"LD_LIBRARY_PATH": "lib"}
    )
    assert err.startswith("error: no libcurl (libcurl.so.4), which requests"), err
    assert out == "" and err.count("\n") == 1 and report is None


def catches_interrupts(pid):
    """Whether the process has a handler of its own for them."""
    with open(f"/proc/{pid}/status") as file:
        caught = int(re.search(r"^SigCgt:\s*(\w+)$", file.read(), re.M)[1], 16)
    return caught >> (signal.SIGINT - 1) & 1


def interrupt():
    with fake() as server:
        write_requests()
        process = subprocess.Popen(
            ["kf-run", "compare", "--file", "requests.jsonl", "--json", "out.json"]
            + ["--against", server.url + "slow", "--remote-model", "m"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not server.requests:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        out, err = process.communicate(timeout=SECONDS)
        assert time.monotonic() - begin < SECONDS / 2, "it waited for the answer"
    assert process.returncode == 130, (process.returncode, err)
    assert "0 + 3 cancelled" in out and err == "", (out, err)
    assert json.load(open("out.json"))["runs"][0]["answered"] == 3

    # While the model is at it, or is made ready.
    write_requests([{"prompt": "Once", "n": 900, "ignore_eos": True}] * 300)
    process = subprocess.Popen(
        ["kf-run", "compare", "--file", "requests.jsonl", "--remote-model", "m"]
        + ["--against", "http://127.0.0.1:1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not catches_interrupts(process.pid):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130 and err == "", (process.returncode, err)
    assert out == "" or out.count("cancelled") == 2, out


def https():
    openssl = shutil.which("openssl")
    if not openssl:
        print("skipped: there is no openssl to make a certificate with")
        return
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        + ["-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost"]
        + ["-addext", "subjectAltName=IP:127.0.0.1"],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert.pem", "key.pem")
    with fake(context) as server:
        url = server.url + "good"
        _, err, report = compare("--against", url, code=1)
        assert "certificate" in err.lower(), err
        assert not server.requests
        key = {"SSL_CERT_FILE": "cert.pem", "OPENAI_API_KEY": KEY}
        _, err, report = compare("--against", url, env=key)
        assert report["runs"][1]["answered"] == 3


if __name__ == "__main__":
    globals()[sys.argv[1]]()
