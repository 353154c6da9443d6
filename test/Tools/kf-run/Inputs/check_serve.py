"""check_serve.py PART [OPTION...]: starts `kf-run serve` and checks what it answers.

Of the Python standard library alone. PART is the name of one of the functions
below that check something. Parts that compare what programs of several sizes
compute give each run of kf-run the OPTIONs.
"""

import base64
import contextlib
import http.client
import json
import math
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from adapter_files import write_adapter
from calls_template import CALLS_TEMPLATE, TEMPLATE

HEADERS = {"Content-Type": "application/json"}
OPTIONS = sys.argv[2:]
SECONDS = 240  # for a server to be ready, and for an answer


class Server:
    """A server of the embedded model, or of another one."""

    def __init__(self, *options, ready=True):
        self.process = subprocess.Popen(
            ["kf-run", "serve", "--port", "0", *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        self.port = int(re.fullmatch(r"listening on http://127.0.0.1:(\d+)\n", line)[1])
        if ready:
            self.line = self.process.stdout.readline()
            assert self.line.startswith("serving "), self.line

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)

    def send(self, method, path, body=None, headers={}):
        """The status, the headers and the body of an answer."""
        with contextlib.closing(self.connect()) as connection:
            if isinstance(body, dict):
                body = json.dumps(body)
            connection.request(method, path, body, {**HEADERS, **headers})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()

    def get(self, path, **more):
        status, _, text = self.send("GET", path, **more)
        assert status == 200, (status, text)
        return json.loads(text)

    def post(self, path, **body):
        status, headers, text = self.send("POST", path, body)
        assert status == 200, (status, text)
        assert headers["Content-Type"] == "application/json"
        return json.loads(text)

    def error(self, path, status, body, headers={}, method="POST"):
        """The error of an answer, which has this status."""
        got, answered, text = self.send(method, path, body, headers)
        assert got == status, (got, status, text)
        error = json.loads(text)["error"]
        assert set(error) == {"message", "type", "param", "code"}, error
        assert "\n" not in error["message"] and error["message"]
        error["headers"] = answered
        return error

    def events(self, path, **body):
        """The events of a stream, and what each has as JSON."""
        status, headers, text = self.send("POST", path, {"stream": True, **body})
        assert status == 200, (status, text)
        assert headers["Content-Type"] == "text/event-stream"
        assert text.endswith("\n\n"), text
        events = [e for e in text.split("\n\n")[:-1] if not e.startswith(":")]
        assert all(e.startswith("data: ") for e in events), text
        return [e[6:] for e in events]

    def raw(self, data, wait=SECONDS):
        """All that is answered to these bytes, until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as s:
            s.sendall(data)
            answer = b""
            with contextlib.suppress(socket.timeout, ConnectionResetError):
                while part := s.recv(1 << 16):
                    answer += part
            return answer

    @contextlib.contextmanager
    def begin(self, path, **body):
        """A client that asks, and goes away at the end of the block."""
        body = json.dumps(body).encode()
        with socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS) as client:
            client.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                           b"application/json\r\nContent-Length: %d\r\n\r\n"
                           % (path.encode(), len(body)) + body)
            yield client

    def metrics(self, *names):
        """Numbers of the same moment; None where there is none."""
        _, _, text = self.send("GET", "/metrics")
        found = [re.search(rf"^{re.escape(name)}\{{[^}}]*\}} (\S+)$", text, re.M)
                 for name in names]
        return [float(one[1]) if one else None for one in found]

    def metric(self, name):
        return self.metrics(name)[0]

    def unended(self):
        """How many texts are generated or wait."""
        return sum(self.metrics("vllm:num_requests_running", "vllm:num_requests_waiting"))

    def refuses(self):
        """Whether nobody listens any more."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS).close()
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:  # by the end of who listens
            pass
        return False

    def wait(self, condition):
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end, "it does not come"
            time.sleep(0.005)


def say(text):
    return [{"role": "user", "content": text}]


def content(answer):
    return answer["choices"][0]["message"]["content"]


def generated(*options):
    """What `kf-run generate` or `chat` says."""
    done = subprocess.run(
        ["kf-run", *options], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, check=True)
    return done.stdout


# What there is


def endpoints():
    with Server("--parallel", "3", "-c", "300", "--alias", "one", "-a", "two") as s:
        assert re.fullmatch(
            rf"serving one at http://127.0.0.1:{s.port}: context 300, 3 at once, "
            r"on cpu\n", s.line), s.line
        assert s.get("/health") == {"status": "ok"}
        for prefix in "", "/v1":
            models = s.get(prefix + "/models")
            assert models["object"] == "list" and len(models["data"]) == 1
            assert models["data"][0]["id"] == "one"
            assert models["data"][0]["max_model_len"] == 300
            assert s.get(prefix + "/models/two")["object"] == "model"
        error = s.error("/v1/models/three", 404, None, method="GET")
        assert error["code"] == "model_not_found"
        props = s.get("/props")
        assert props["total_slots"] == 3
        assert "start_header_id" in props["chat_template"]
        slots = s.get("/slots")
        assert [slot["is_processing"] for slot in slots] == [False] * 3
        tokens = s.post("/tokenize", content="Hello world")["tokens"]
        assert s.post("/detokenize", tokens=tokens) == {"content": "Hello world"}
        assert s.post("/detokenize", tokens=[]) == {"content": ""}
        pieces = s.post("/tokenize", content="\N{SNOWMAN}", with_pieces=True)["tokens"]
        spelled = b"".join(
            bytes(p["piece"]) if isinstance(p["piece"], list) else p["piece"].encode()
            for p in pieces)
        assert spelled == "\N{SNOWMAN}".encode(), pieces
        special = s.post("/tokenize", content="<|eot_id|>", add_special=True)["tokens"]
        assert len(special) == 2, special
        assert len(s.post("/tokenize", content="<|eot_id|>", parse_special=False)
                   ["tokens"]) > 1
        prompt = s.post("/apply-template", messages=say("Hi"))["prompt"]
        assert prompt.endswith("Hi<|eot_id|><|start_header_id|>assistant"
                               "<|end_header_id|>\n\n"), prompt
        _, headers, text = s.send("GET", "/metrics")
        assert headers["Content-Type"].startswith("text/plain")
        for line in text.splitlines():
            assert re.fullmatch(
                r'# (HELP|TYPE) \S+ .*|[a-z_:]+\{([a-z_]+="[^"]*",?)+\} \S+', line), line
        status, headers, text = s.send("HEAD", "/health")
        assert status == 200 and text == "" and headers["Content-Length"] == "15"
        # The page reaches for nothing elsewhere.
        status, headers, page = s.send("GET", "/")
        assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
        assert "connect-src 'self'" in headers["Content-Security-Policy"]
        assert page.startswith("<!DOCTYPE html>") and not re.search(r"https?://|src=|@import", page)
        # 404, 405, 415.
        assert s.error("/nothing", 404, {})["code"] == "not_found"
        assert s.error("/v1/chat/completions", 405, None, method="GET")[
            "headers"]["Allow"] == "POST, OPTIONS"
        assert s.error("/health", 405, {})["headers"]["Allow"].startswith("GET")
        for kind in "text/plain", "", "application/x-www-form-urlencoded":
            assert s.error("/v1/completions", 415, {}, {"Content-Type": kind})[
                "code"] == "unsupported_media_type"
        s.error("/v1/completions", 415, {}, {"Content-Encoding": "gzip"})


def templates():
    """What requests tell a template, and what it begins."""
    with open("tools.jinja", "w") as file:
        file.write(TEMPLATE)
    with Server("--template", "tools.jinja") as s:
        tool = {"type": "function", "function": {"name": "f", "parameters": {"z": 1, "a": {}}}}
        messages = say("Hi") + [
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "1", "type": "function",
                 "function": {"name": "f", "arguments": '{"y": "<|eot_id|>", "b": 2}'}}]},
            {"role": "tool", "tool_call_id": "1", "content": "done"}]
        prompt = s.post("/apply-template", messages=messages, tools=[tool],
                        chat_template_kwargs={"enable_thinking": True})["prompt"]
        # In the order that the request has.
        assert prompt == json.dumps(tool) + (
            '\nuser:Hiassistant:{"y": "<|eot_id|>", "b": 2}tool:done<think>'), prompt
        assert json.dumps(tool) not in s.post(
            "/apply-template", messages=messages, tools=[tool], tool_choice="none")["prompt"]
        assert s.post("/apply-template", messages=say("Hi"), reasoning_effort="low")[
            "prompt"] == "user:Hilow</think>"
        # Text that is no call is content, also where it might be one.
        chat = {"messages": say("Hi"), "max_tokens": 20, "temperature": 0, "tools": [tool]}
        whole = s.post("/v1/chat/completions", **chat)
        message = whole["choices"][0]["message"]
        assert message["content"] and "tool_calls" not in message
        assert "reasoning_content" not in message
        # What the template begins with <think> are thoughts, to the end here.
        chat["chat_template_kwargs"] = {"enable_thinking": True}
        message = s.post("/v1/chat/completions", **chat)["choices"][0]["message"]
        assert message["reasoning_content"] and message["content"] == ""
        events = s.events("/v1/chat/completions", **chat)
        deltas = [json.loads(e)["choices"][0]["delta"] for e in events[:-1]]
        assert all(set(d) == {"reasoning_content"} for d in deltas[1:-1])
        assert "".join(d["reasoning_content"] for d in deltas[1:-1]) \
            == message["reasoning_content"]
        # What the template refuses, or cannot be given, is an error without paths.
        s.error("/v1/chat/completions", 400,
                {**chat, "chat_template_kwargs": {"tools": []}})
    # What all requests tell it, unless they say so themselves.
    with Server("--template", "tools.jinja",
                "--chat-template-kwargs", '{"enable_thinking": true}') as s:
        for said, prompt in (({}, "user:Hi<think>"),
                             ({"enable_thinking": False}, "user:Hi</think>")):
            assert s.post("/apply-template", messages=say("Hi"),
                          chat_template_kwargs=said)["prompt"] == prompt
    with open("refuses.jinja", "w") as file:
        file.write("{{ raise_exception('roles must alternate') }}")
    with Server("--template", "refuses.jinja") as s:
        error = s.error("/v1/chat/completions", 400, {"messages": say("Hi")})
        assert error["message"] == "the chat template: roles must alternate", error
    # Of a template that makes nothing of them.
    with Server() as s:
        for field in {"tools": [tool]}, {"reasoning_effort": "low"}:
            error = s.error("/v1/chat/completions", 400, {"messages": say("a"), **field})
            assert error["code"] == "unsupported_parameter", error
            assert error["param"] == next(iter(field)), error
            # With what to do.
            said = "--template FILE gives the server one" if "tools" in field else "leave it out"
            assert said in error["message"], error


# Texts


def texts():
    with Server("--parallel", "4") as s:
        whole = s.post("/v1/chat/completions", model="kf-stories", temperature=0,
                       messages=say("Tell me a story."), max_tokens=30)
        assert whole["object"] == "chat.completion"
        assert re.fullmatch(r"chatcmpl-\w{24}", whole["id"])
        assert abs(whole["created"] - time.time()) < 600
        assert whole["model"] == "kf-stories" and whole["system_fingerprint"]
        choice = whole["choices"][0]
        assert choice["index"] == 0 and choice["finish_reason"] == "length"
        assert choice["message"]["role"] == "assistant"
        assert whole["usage"]["completion_tokens"] == 30
        assert whole["usage"]["total_tokens"] == 30 + whole["usage"]["prompt_tokens"]
        chat = subprocess.run(
            ["kf-run", "chat", "--temp", "0", "-n", "30"], input="Tell me a story.",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
        assert content(whole) == chat.stdout.rstrip("\n"), (content(whole), chat.stdout)

        # The same, part by part, and the prompt in parts.
        parts = [{"type": "text", "text": "Tell me"}, {"type": "text", "text": " a story."}]
        events = s.events("/chat/completions", temperature=0, max_completion_tokens=30,
                          messages=[{"role": "user", "content": parts}])
        assert events.pop() == "[DONE]"
        chunks = [json.loads(e) for e in events]
        assert len({(c["id"], c["created"]) for c in chunks}) == 1
        assert all(c["object"] == "chat.completion.chunk" for c in chunks)
        assert all("usage" not in c and len(c["choices"]) == 1 for c in chunks)
        deltas = [c["choices"][0]["delta"] for c in chunks]
        assert deltas[0] == {"role": "assistant", "content": ""}, deltas[0]
        assert deltas[-1] == {}
        assert all(set(d) == {"content"} and d["content"] for d in deltas[1:-1])
        assert "".join(d["content"] for d in deltas[:-1]) == content(whole)
        reasons = [c["choices"][0]["finish_reason"] for c in chunks]
        assert reasons == [None] * (len(chunks) - 1) + ["length"]

        # With counts.
        events = s.events("/v1/chat/completions", temperature=0, n_predict=5,
                          messages=say("Tell me a story."),
                          stream_options={"include_usage": True})
        assert events.pop() == "[DONE]"
        chunks = [json.loads(e) for e in events]
        assert all(c["usage"] is None for c in chunks[:-1])
        assert chunks[-1]["choices"] == []
        usage = chunks[-1]["usage"]
        assert usage["completion_tokens"] == 5
        assert 0 < usage["prompt_tokens_details"]["cached_tokens"] < usage["prompt_tokens"]

        # Completions: of texts and of ids.
        text = generated("generate", "-p", "Once upon", "-n", "16", "--temp", "0", "--quiet")
        once = s.post("/v1/completions", prompt="Once upon", temperature=0)
        assert once["object"] == "text_completion"
        assert "Once upon" + once["choices"][0]["text"] == "Once upon" + text.rstrip("\n") \
            or once["choices"][0]["text"] == text.rstrip("\n"), (once, text)
        ids = s.post("/tokenize", content="Once upon", add_special=True)["tokens"]
        for prompt in ids, [ids]:
            again = s.post("/completions", prompt=prompt, temperature=0)
            assert again["choices"] == once["choices"], again
            assert again["usage"]["prompt_tokens"] == len(ids)
        many = s.post("/v1/completions", prompt=["Once upon", "The"], n=2, temperature=0,
                      max_tokens=16)
        assert [c["index"] for c in many["choices"]] == [0, 1, 2, 3]
        assert many["choices"][0]["text"] == once["choices"][0]["text"]
        assert many["choices"][0]["text"] == many["choices"][1]["text"]
        assert many["choices"][2]["text"] == many["choices"][3]["text"]
        assert many["usage"]["completion_tokens"] == 64
        prompts = many["usage"]["prompt_tokens"]
        assert prompts == len(ids) + len(
            s.post("/tokenize", content="The", add_special=True)["tokens"])
        events = s.events("/v1/completions", prompt=["Once upon", "The"], temperature=0)
        assert events.pop() == "[DONE]"
        streamed = ["", ""]
        for event in map(json.loads, events):
            choice = event["choices"][0]
            streamed[choice["index"]] += choice["text"]
        assert streamed == [many["choices"][0]["text"], many["choices"][2]["text"]]

        # Ends.
        stop = s.post("/v1/completions", prompt="Once upon", temperature=0, stop=[",", "zz"],
                      max_tokens=40)["choices"][0]
        assert stop["finish_reason"] == "stop"
        assert stop["text"] == once["choices"][0]["text"].split(",")[0]
        end = s.post("/v1/chat/completions", messages=say("Tell me a story."), temperature=0)
        assert end["choices"][0]["finish_reason"] == "stop", end
        none = s.post("/v1/completions", prompt="Once upon", max_tokens=0)
        assert none["choices"][0]["text"] == "", none

        # How tokens are chosen.
        def draw(**how):
            return s.post("/v1/completions", prompt="Once upon", max_tokens=30,
                          **how)["choices"][0]["text"]
        assert draw(seed=5) == draw(seed=5)
        assert len({draw() for _ in range(4)}) > 1
        assert len({draw(seed=-1) for _ in range(4)}) > 1
        assert draw(top_k=1) == draw(temperature=0) == draw(top_p=0, seed=3)
        assert draw(temperature=0, logit_bias={ids[-1]: 100}).count("upon") > 5
        # Tokens of the prompt count as seen for llama.cpp's clients alone.
        twice = {"prompt": "Once upon a time, a girl once upon a", "temperature": 0}
        def next_token(path, **how):
            answer = s.post(path, **twice, max_tokens=1, **how)
            return answer.get("content") or answer["choices"][0]["text"]
        plain = next_token("/v1/completions")
        assert plain == " time", plain
        assert next_token("/v1/completions", presence_penalty=100) == plain
        assert next_token("/completion", presence_penalty=100) != plain
        choices = s.post("/v1/completions", prompt="Once upon", max_tokens=30, n=4,
                         seed=1)["choices"]
        assert len({c["text"] for c in choices}) > 1

        # llama.cpp's.
        llama = s.post("/completion", prompt="Once upon", n_predict=16, temperature=0)
        assert llama["content"] == once["choices"][0]["text"] and llama["stop"]
        assert llama["stop_type"] == "limit" and llama["tokens_predicted"] == 16
        assert llama["timings"]["predicted_n"] == 16 and llama["tokens"] == []
        events = [json.loads(e) for e in s.events(
            "/completion", prompt="Once upon", n_predict=16, temperature=0,
            return_tokens=True)]
        assert "".join(e["content"] for e in events) == llama["content"]
        assert sum(len(e["tokens"]) for e in events) == 16
        assert [e["stop"] for e in events] == [False] * (len(events) - 1) + [True]

        assert s.metric("vllm:generation_tokens_total") > 500
        assert s.metric("vllm:num_requests_running") == 0


def log_probs():
    with Server("-c", "300", *OPTIONS) as s:
        chat, text = "/v1/chat/completions", "/v1/completions"
        start = {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 12}

        # What the model's logits say, of each token.
        whole = s.post(text, logprobs=4, **start)["choices"][0]
        given = whole["logprobs"]
        assert set(given) == {"tokens", "token_logprobs", "top_logprobs", "text_offset"}
        assert all(len(values) == 12 for values in given.values()), given
        assert "".join(given["tokens"]) == whole["text"]
        assert given["text_offset"] == [len("".join(given["tokens"][:i])) for i in range(12)]
        for value, top, token in zip(given["token_logprobs"], given["top_logprobs"],
                                     given["tokens"]):
            assert len(top) == 4 and top[token] == value == max(top.values()), top
            assert 0 < sum(map(math.exp, top.values())) <= 1 + 1e-6, top
        ids = s.post("/tokenize", content=start["prompt"])["tokens"]
        ids += s.post("/tokenize", content=whole["text"])["tokens"]
        for count in 1, 7:
            known = ids[:len(ids) - count]
            logits = json.loads(generated("logits", "--ids", ",".join(map(str, known)),
                                          "--json", "-", *OPTIONS))["last_logits"]
            most = max(logits)
            norm = most + math.log(sum(math.exp(logit - most) for logit in logits))
            assert abs(given["token_logprobs"][12 - count]
                       - (logits[ids[len(known)]] - norm)) < 1e-3
            best = sorted((math.exp(logit - norm) for logit in logits), reverse=True)
            likely = sorted(map(math.exp, given["top_logprobs"][12 - count].values()),
                            reverse=True)
            assert all(abs(a - b) < 1e-3 for a, b in zip(likely, best)), (likely, best[:4])
        # Penalties, biases and temperature change what is drawn, not what the model says.
        other = s.post(text, logprobs=4, **{**start, "temperature": 1.5, "max_tokens": 1},
                       logit_bias={ids[-1]: 100})["choices"][0]["logprobs"]
        first = other["top_logprobs"][0]
        assert all(abs(first[token] - value) < 1e-3
                   for token, value in given["top_logprobs"][0].items())
        assert len(first) == 5 and other["tokens"][0] not in given["top_logprobs"][0]

        # Streams have the same, each chunk those of its text.
        def near(a, b):
            return len(a) == len(b) and all(abs(x - y) < 1e-3 for x, y in zip(a, b))
        def streamed(path, **body):
            choices = [json.loads(e)["choices"][0] for e in s.events(path, **body)[:-1]]
            return [c for c in choices if c["logprobs"]]
        # A busy machine may send all at once.
        for _ in range(20):
            parts = streamed(text, logprobs=4, **start)
            if len(parts) > 1:
                break
        assert len(parts) > 1
        assert all("".join(p["logprobs"]["tokens"]) == p["text"] for p in parts), parts
        assert near(sum((p["logprobs"]["token_logprobs"] for p in parts), []),
                    given["token_logprobs"])
        assert sum((p["logprobs"]["text_offset"] for p in parts), []) == given["text_offset"]

        # Chats.
        ask = {"messages": say("Tell me a story."), "temperature": 0, "max_tokens": 12,
               "logprobs": True}
        answer = s.post(chat, **ask, top_logprobs=2)["choices"][0]
        tokens = answer["logprobs"]["content"]
        assert len(tokens) == 12
        assert bytes(sum((t["bytes"] for t in tokens), [])).decode() == content(
            {"choices": [answer]})
        for token in tokens:
            top = token["top_logprobs"]
            assert len(top) == 2 and top[0] == {k: token[k] for k in top[0]}
            assert set(top[0]) == {"token", "logprob", "bytes"}
        assert all(t["top_logprobs"] == [] for t in s.post(chat, **ask)[
            "choices"][0]["logprobs"]["content"])
        parts = streamed(chat, **ask, top_logprobs=2)
        for part in parts:
            named = "".join(t["token"] for t in part["logprobs"]["content"])
            assert named == part["delta"]["content"], part
        assert near([t["logprob"] for p in parts for t in p["logprobs"]["content"]],
                    [t["logprob"] for t in tokens])

        # What is cut from the text has none, and neither has what ends it.
        for path, more in (text, {"prompt": start["prompt"], "logprobs": 0}), (chat, ask):
            more = {**more, "max_tokens": 12, "temperature": 0}
            full = s.post(path, **more)["choices"][0]
            full_text = full.get("text") or full["message"]["content"]
            stop = full_text[len(full_text) // 2:][:6]
            cut = s.post(path, **more, stop=stop)["choices"][0]
            parts = streamed(path, **more, stop=stop)
            cut_text = cut.get("text") or cut["message"]["content"]
            assert cut_text == full_text.split(stop)[0]
            def names(choice):
                found = choice["logprobs"]
                return found.get("tokens") or [t["token"] for t in found["content"]]
            kept = names(cut)
            assert kept == names(full)[:len(kept)] and len(kept) < 12
            assert sum(map(names, parts), []) == kept
            # All of the text, and the last token alone may say more.
            assert "".join(kept).startswith(cut_text) and len("".join(kept[:-1])) < len(cut_text)
        end = s.post(chat, **{**ask, "max_tokens": 250})
        assert end["choices"][0]["finish_reason"] == "stop"
        tokens = end["choices"][0]["logprobs"]["content"]
        assert len(tokens) == end["usage"]["completion_tokens"] - 1
        assert "".join(t["token"] for t in tokens) == content(end)
        none = s.post(chat, **{**ask, "max_tokens": 0})["choices"][0]
        assert none["logprobs"]["content"] == [], none
        assert s.post(chat, **{**ask, "logprobs": False})["choices"][0]["logprobs"] is None
        assert s.post(text, **start)["choices"][0]["logprobs"] is None

        # Tokens that are a part of a character.
        accent = s.post("/tokenize", content="\u96e8")["tokens"]
        assert len(accent) > 1, accent
        for path, more in (text, {"prompt": "a", "logprobs": 1}), (chat, ask):
            drawn = s.post(path, **{**more, "max_tokens": 1, "temperature": 0},
                           logit_bias={accent[0]: 1000})["choices"][0]
            assert (drawn.get("text") or drawn["message"]["content"]) == "\ufffd"
            if path == text:
                token = drawn["logprobs"]["tokens"][0]
                assert re.fullmatch(r"bytes:(\\x[0-9a-f]{2})+", token), token
            else:
                token = drawn["logprobs"]["content"][0]
                assert token["token"] == "".join(f"\\x{b:02x}" for b in token["bytes"]), token
                assert "\u96e8".encode().startswith(bytes(token["bytes"]))

        # llama.cpp's.
        llama = s.post("/completion", prompt=start["prompt"], n_predict=12, temperature=0,
                       n_probs=3)
        found = llama["completion_probabilities"]
        assert near([t["logprob"] for t in found], given["token_logprobs"])
        assert [t["id"] for t in found] == ids[-12:]
        assert all(len(t["top_logprobs"]) == 3 and t["top_logprobs"][0]["id"] == t["id"]
                   for t in found)
        events = [json.loads(e) for e in s.events(
            "/completion", prompt=start["prompt"], n_predict=12, temperature=0, n_probs=3)]
        assert [t["id"] for e in events
                for t in e["completion_probabilities"]] == ids[-12:]

        # Requests that are wrong.
        for path, more, field in (
                (chat, {"top_logprobs": 2}, "top_logprobs"),
                (chat, {"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
                (chat, {"logprobs": 3}, "logprobs"), (text, {"logprobs": 21}, "logprobs"),
                (text, {"logprobs": True}, "logprobs"),
                (text, {"top_logprobs": 1}, "top_logprobs"),
                ("/completion", {"n_probs": 21}, "n_probs"),
                ("/completion", {"logprobs": 1}, "logprobs")):
            request = {"messages": say("a")} if path == chat else {"prompt": "a"}
            error = s.error(path, 400, {**request, **more})
            assert error["param"] == field, error


def formats():
    """Texts that are held to schemas and grammars, and calls that have to be made."""
    chat, text = "/v1/chat/completions", "/v1/completions"
    schema = {"type": "object", "properties": {
        "name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 99},
        "pets": {"type": "array", "maxItems": 2, "items": {"enum": ["dog", "cat"]}}},
        "required": ["name", "age", "pets"], "additionalProperties": False}

    def check(found):
        value = json.loads(found)
        assert list(value) == ["name", "age", "pets"], value
        assert len(value["name"]) <= 12 and isinstance(value["age"], int), value
        assert value["age"] <= 99 and len(value["pets"]) <= 2, value

    strict = {"response_format": {"type": "json_schema", "json_schema": {
        "name": "person", "strict": True, "schema": schema}}}
    with Server("--parallel", "8") as s:
        # Several at once, drawn, with penalties, beside one that is free.
        free = threading.Thread(target=lambda: s.post(text, prompt="Once", max_tokens=200))
        free.start()
        answer = s.post(chat, messages=say("Who?"), n=6, seed=1, presence_penalty=0.5,
                        max_tokens=200, **strict)
        free.join()
        assert len({c["message"]["content"] for c in answer["choices"]}) > 1
        for choice in answer["choices"]:
            assert choice["finish_reason"] == "stop", choice
            check(choice["message"]["content"])
        # The same as a stream, and by other names.
        events = s.events(chat, messages=say("Who?"), max_tokens=200, **strict)
        deltas = [json.loads(e)["choices"][0] for e in events[:-1]]
        check("".join(d["delta"].get("content", "") for d in deltas))
        assert deltas[-1]["finish_reason"] == "stop"
        for fields in ({"json_schema": schema}, {"guided_json": json.dumps(schema)},
                       {"structured_outputs": {"json": schema}}):
            answer = s.post(text, prompt="Once", max_tokens=200, **fields)
            check(answer["choices"][0]["text"])
        answer = s.post("/completion", prompt="Once", n_predict=200, json_schema=schema)
        check(answer["content"])
        assert answer["stop_type"] == "eos"
        some = s.post(chat, messages=say("Who?"), max_tokens=300, temperature=0,
                      response_format={"type": "json_object"})["choices"][0]
        assert some["message"]["content"].lstrip().startswith("{")
        if some["finish_reason"] == "stop":
            json.loads(some["message"]["content"])
        answer = s.post("/completion", prompt="Once", grammar='root ::= "yes" | "no" | "maybe"')
        assert answer["content"] in ("yes", "no", "maybe")
        answer = s.post(text, prompt="Once", guided_choice=["red", "green"])
        assert answer["choices"][0]["text"] in ("red", "green")
        # Cut off by the limit.
        answer = s.post(text, prompt="Once", max_tokens=3, json_schema=schema)
        assert answer["choices"][0]["finish_reason"] == "length"
        # What is wrong with them names its place.
        for field, message in (
                ({"json_schema": {"typ": 1}}, "'json_schema': /typ: there is no such keyword"),
                ({"json_schema": {"not": {}}}, "not supported"),
                ({"json_schema": False}, "no text satisfies it"),
                ({"grammar": "root ::= ("}, "line 1, column"),
                ({"response_format": {"type": "xml"}}, "json_schema is expected")):
            error = s.error(text, 400, {"prompt": "Once", **field})
            assert message in error["message"], error
            assert error["param"].startswith(next(iter(field))), error
        # A hostile one is an error soon, and texts that go on do not wait for it.
        rules = ["a0 ::= \"a\""] + [f"a{i + 1} ::= a{i} a{i}" for i in range(18)]
        rules.append("root ::= " + "|".join(["a18\"b\""] * 50000))
        before = s.metric("vllm:generation_tokens_total")
        with s.begin(text, prompt="Once", max_tokens=900, ignore_eos=True, n=64):
            s.wait(lambda: s.metric("vllm:generation_tokens_total") > before)
            begun = s.metric("vllm:generation_tokens_total")
            error = s.error(text, 400, {"prompt": "Once", "grammar": "\n".join(rules)})
            assert "limit" in error["message"] and error["param"] == "grammar", error
            assert s.metric("vllm:generation_tokens_total") > begun
    # Calls, in the form that the template wants.
    with open("calls.jinja", "w") as file:
        file.write(CALLS_TEMPLATE)
    parameters = {"type": "object", "properties": {"to": {"$ref": "#/$defs/place"}},
                  "required": ["to"], "additionalProperties": False,
                  "$defs": {"place": {"enum": ["home", "away"]}}}
    tools = [{"type": "function", "function": {
        "name": name, "strict": True, "parameters": parameters}} for name in ("go", "run")]
    with Server("--template", "calls.jinja") as s:
        for choice, names in (("required", {"go", "run"}),
                              ({"type": "function", "function": {"name": "run"}}, {"run"})):
            answer = s.post(chat, messages=say("Go!"), tools=tools, tool_choice=choice,
                            max_tokens=200)["choices"][0]
            assert answer["finish_reason"] == "tool_calls", answer
            call, = answer["message"]["tool_calls"]
            assert call["function"]["name"] in names, call
            assert json.loads(call["function"]["arguments"])["to"] in ("home", "away"), call
        # One that max_tokens cuts off is the call with what there is of it.
        forced = {"messages": say("Go!"), "tools": tools, "max_tokens": 12, "temperature": 0,
                  "tool_choice": {"type": "function", "function": {"name": "run"}}}
        cut = s.post(chat, **forced)["choices"][0]
        assert cut["finish_reason"] == "length" and not cut["message"]["content"], cut
        call, = cut["message"]["tool_calls"]
        assert call["function"]["name"] == "run", cut
        # One that a stop text cuts off is none.
        forced["max_tokens"] = 200
        cut = s.post(chat, stop=["arg", "param"], **forced)["choices"][0]
        assert cut["finish_reason"] == "stop" and not cut["message"].get("tool_calls"), cut
        assert "run" in cut["message"]["content"], cut
        # The tokens of a call come with it.
        request = {"messages": say("Go!"), "tools": tools, "tool_choice": "required",
                   "max_tokens": 400, "logprobs": True, "temperature": 0}
        whole = s.post(chat, **request)["choices"][0]
        chunks = [json.loads(e)["choices"][0] for e in s.events(chat, **request)[:-1]]
        begin, called, end = chunks
        assert called["delta"]["tool_calls"] and not begin["logprobs"] and not end["logprobs"]
        names = [t["token"] for t in called["logprobs"]["content"]]
        assert names == [t["token"] for t in whole["logprobs"]["content"]]
        assert json.loads("".join(names).split("<tool_call>")[1].split("</tool_call>")[0])
        # Behind thoughts that the template has begun.
        think = {"chat_template_kwargs": {"enable_thinking": True}}
        message = s.post(chat, messages=say("Hi"), max_tokens=100, json_schema={"const": [1, "a"]},
                         **think)["choices"][0]["message"]
        assert json.loads(message["content"]) == [1, "a"], message
    with Server("--template", "tools.jinja") as s:
        error = s.error(chat, 400, {"messages": say("a"), "tools": tools,
                                    "tool_choice": "required"})
        assert error["code"] == "unsupported_parameter" and error["param"] == "tool_choice"


def errors():
    with Server("-c", "100", "-n", "50", "--parallel", "1", "--queue", "1",
                "--max-body", "1M") as s:
        chat, text = "/v1/chat/completions", "/v1/completions"
        error = s.error(text, 400, {"prompt": "word " * 200})
        assert error["code"] == "context_length_exceeded"
        assert error["type"] == "invalid_request_error" and error["param"] == "prompt"
        # What litellm looks for.
        assert "model's maximum context length is 100 tokens" in error["message"]
        assert s.error(chat, 400, {"messages": say("word " * 200)})[
            "code"] == "context_length_exceeded"
        assert s.error(text, 404, {"prompt": "a", "model": "gpt"})["code"] == "model_not_found"
        assert s.error(text, 400, {"prompt": "a", "max_tokens": 51})["param"] == "max_tokens"
        # Too many for the queue, now and whenever they are sent again.
        for path, request, field in (
                (text, {"prompt": "a", "n": 3}, "n"), (chat, {"messages": say("a"), "n": 3}, "n"),
                (text, {"prompt": ["a", "b"], "n": 2}, "n"),
                (text, {"prompt": ["a", "b", "c"]}, "prompt")):
            error = s.error(path, 400, request)
            assert error["param"] == field and "but 2 are the most" in error["message"], error
        assert len(s.post(text, prompt=["a", "b"], max_tokens=2)["choices"]) == 2
        # Each field that is known and cannot be obeyed.
        for field in ({"n_probs": 1}, {"prompt_logprobs": 1}, {"echo": True},
                      {"suffix": "x"}, {"best_of": 2}, {"guided_regex": "a*"},
                      {"store": True}, {"mirostat": 2}, {"min_tokens": 3}):
            for path, start in (text, {"prompt": "a"}), (chat, {"messages": say("a")}):
                error = s.error(path, 400, {**start, **field})
                assert error["code"] == "unsupported_parameter", error
                assert error["param"] == next(iter(field)), error
        tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
        for field in ({"tool_choice": "required"}, {"audio": {}}):
            assert s.error(chat, 400, {"messages": say("a"), **field})[
                "param"] == next(iter(field))
        s.post(chat, messages=say("a"), tools=[tool], tool_choice="none", max_tokens=2)
        s.post(chat, messages=say("a"), max_tokens=2, unknown={"a": [1]}, store=False,
               logprobs=False, response_format={"type": "text"}, user="u", metadata={})
        for body in ("", "{", "[]", '{"prompt": 1}', '{"prompt": []}', '{"prompt": "a", "prompt": "b"}',
                     '{"prompt": "a", "temperature": "1"}', '{"prompt": "a", "n": 0}',
                     '{"prompt": "a", "max_tokens": 1.5}', '{"prompt": [1, "a"]}',
                     '{"prompt": [9999999]}', '{"prompt": "a", "stop": [1]}',
                     '{"prompt": "a", "stream": 1}', '{"prompt": "\\ud800"}',
                     '{"prompt": "a", "stream_options": {}}', "[" * 100000):
            s.error(text, 400, body)
        for field in {"prompt": [1, 99999]}, {"logit_bias": {"99999": 1}}:
            error = s.error(text, 400, {"prompt": "a", **field})
            assert error["param"] == next(iter(field)), error
        s.error(chat, 400, {"messages": [{"role": "robot", "content": "a"}]})
        s.error(chat, 400, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})
        # A body that is too long, whose sender is told so, and one that says it is.
        error = s.error(text, 413, {"prompt": "a" * (3 << 20)})
        assert error["code"] == "body_too_large"
        answer = s.raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                       b"Content-Type: application/json\r\nContent-Length: 99999999\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 413 "), answer
        chunk = b"100000\r\n" + b"a" * (1 << 20) + b"\r\n"
        answer = s.raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                       b"application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + 2 * chunk)
        assert answer.startswith(b"HTTP/1.1 413 "), answer
        # What needs no body has none.
        for body in (b"Content-Length: 1\r\n\r\na", b"Content-Length: 99999999\r\n\r\n",
                     b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"):
            answer = s.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + body)
            assert answer.startswith(b"HTTP/1.1 413 "), answer
        s.get("/health", headers={"Content-Length": "0"})
        # The server is as it was.
        assert s.post(text, prompt="Once", max_tokens=3)["usage"]["completion_tokens"] == 3


# HTTP


def malformed():
    with Server() as s:
        head = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
        post = (b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\n")
        body = b'{"content": "a"}'
        cases = {
            b"GET\r\n\r\n": 400,
            b"\0\r\n\r\n": 400,
            b"GET /health HTTP/3.0\r\n\r\n": 400,
            b"GET /health HTTP/1.1\r\n\r\n": 400,
            head + b"Host: localhost\r\n\r\n": 400,
            head + b"A: b\0c\r\n\r\n": 400,
            head + b"A : b\r\n\r\n": 400,
            head + b"".join(b"A%d: b\r\n" % i for i in range(5000)) + b"\r\n": 431,
            head + b"A: " + b"b" * 100000 + b"\r\n\r\n": 431,
            b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n": 431,
            b"GET health HTTP/1.1\r\nHost: localhost\r\n\r\n": 400,
            b"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n": 400,
            b"GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n": 400,
            post + b"Content-Length: x\r\n\r\n" + body: 400,
            post + b"Content-Length: -1\r\n\r\n" + body: 400,
            post + b"Content-Length: 99999999999999999999\r\n\r\n" + body: 400,
            post + b"Content-Length: 16\r\nContent-Length: 17\r\n\r\n" + body: 400,
            post + b"Content-Length: 16\r\nTransfer-Encoding: chunked\r\n\r\n" + body: 400,
            post + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + body: 501,
            post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + body: 400,
            post + b"Expect: tea\r\nContent-Length: 16\r\n\r\n" + body: 417,
        }
        for data, status in cases.items():
            answer = s.raw(data)
            assert answer.startswith(b"HTTP/1.1 %d " % status), (data[:200], answer[:300])
            assert b"Connection: close" in answer, (data[:200], answer)
            assert "error" in json.loads(answer.split(b"\r\n\r\n", 1)[1])
        # What is sound: one behind the other, and a body that is waited for.
        end = b"Content-Length: 16\r\n\r\n" + body
        close = b"Connection: close\r\n"
        answer = s.raw(post + end + head + b"\r\n" + post + close + end)
        assert answer.count(b"HTTP/1.1 200 OK") == 3, answer
        answer = s.raw(post + close + b"Transfer-Encoding: chunked\r\n\r\n10\r\n" + body +
                       b"\r\n0\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 OK"), answer
        answer = s.raw(b"GET http://localhost/health?a=b HTTP/1.1\r\nHost: localhost\r\n" +
                       close + b"\r\n")
        assert answer.startswith(b"HTTP/1.1 200 OK"), answer
        answer = s.raw(b"GET /health HTTP/1.0\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 OK") and b"Connection: close" in answer
        with socket.create_connection(("127.0.0.1", s.port), timeout=SECONDS) as waiting:
            waiting.sendall(post + close + b"Expect: 100-continue\r\nContent-Length: 16\r\n\r\n")
            assert waiting.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            waiting.sendall(body)
            assert waiting.recv(1000).startswith(b"HTTP/1.1 200 OK")
        # HTTP/1.0 has no chunks: the end of a stream is the connection's.
        body = json.dumps({"prompt": "Once", "stream": True}).encode()
        answer = s.raw(b"POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\n"
                       b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert b"chunked" not in answer and answer.endswith(b"data: [DONE]\n\n"), answer


def access():
    with open("keys", "w") as file:
        file.write("second\n\nthird \n")
    with Server("--api-key", "first", "--api-key-file", "keys") as s:
        s.get("/health")
        assert s.send("GET", "/")[0] == 200
        for headers in ({}, {"Authorization": "Bearer"}, {"Authorization": "Bearer firs"},
                        {"Authorization": "Bearer first2"}, {"Authorization": "first"},
                        {"X-Api-Key": ""}, {"Authorization": "Bearer "}):
            for path in "/v1/models", "/metrics", "/nothing":
                error = s.error(path, 401, None, headers, "GET")
                assert error["code"] == "invalid_api_key"
                assert error["headers"]["WWW-Authenticate"] == "Bearer"
        for key in "first", "second", "third":
            s.get("/v1/models", headers={"Authorization": "Bearer " + key})
            s.get("/models", headers={"X-Api-Key": key})
        # With a key, the server may have any name.
        s.get("/models", headers={"X-Api-Key": "first", "Host": "example.org"})
    with Server("--allow-host", "models.lan", "--cors-origin", "https://a.example") as s:
        for host in "localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:80", "models.lan:8080":
            s.get("/health", headers={"Host": host})
        for host in "example.org", "localhost.example.org", "127.0.0.1.example.org":
            assert s.error("/health", 403, None, {"Host": host}, "GET")[
                "code"] == "host_not_allowed"
        assert s.error("/tokenize", 403, {}, {"Origin": "https://b.example"})[
            "code"] == "origin_not_allowed"
        s.error("/tokenize", 403, {}, {"Origin": "null"})
        own = {"Origin": f"http://127.0.0.1:{s.port}"}
        assert "Access-Control-Allow-Origin" not in s.send("GET", "/health", None, own)[1]
        page = {"Origin": "https://a.example"}
        status, headers, _ = s.send("OPTIONS", "/v1/chat/completions", None, page)
        assert status == 204 and "Content-Length" not in headers
        assert headers["Access-Control-Allow-Origin"] == "https://a.example"
        assert "Authorization" in headers["Access-Control-Allow-Headers"]
        asked = {"Access-Control-Request-Headers": "authorization, x-stainless-os"}
        headers = s.send("OPTIONS", "/v1/chat/completions", None, {**page, **asked})[1]
        assert headers["Access-Control-Allow-Headers"] == "authorization, x-stainless-os"
        asked["Origin"] = own["Origin"]
        headers = s.send("OPTIONS", "/v1/chat/completions", None, asked)[1]
        assert "Access-Control-Allow-Headers" not in headers
        for method, path, status in ("GET", "/health", 200), ("GET", "/nothing", 404):
            got, headers, _ = s.send(method, path, None, page)
            assert got == status
            assert headers["Access-Control-Allow-Origin"] == "https://a.example"
            assert headers["Access-Control-Expose-Headers"] == "Retry-After"
        # Also where no request came to its end.
        origin = b"Origin: https://a.example\r\n"
        allowed = b"\r\nAccess-Control-Allow-Origin: https://a.example\r\n"
        get = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
        post = (b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\n")
        for data, status in (
                (b"GET\r\n" + origin + b"\r\n", 400),
                (get + origin + b"A : b\r\n\r\n", 400),
                (get + b"A : b\r\n" + origin + b"\r\n", 400),
                (get + origin.lower() + b"Content-Length: x\r\n\r\n", 400),
                (get + origin + b"A: " + b"b" * 100000 + b"\r\n\r\n", 431),
                (post + origin + b"Content-Length: 99999999\r\n\r\n", 413),
                (post + origin + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
                (post + origin + b"Transfer-Encoding: gzip\r\n\r\n", 501),
                (post + origin + b"Expect: tea\r\nContent-Length: 1\r\n\r\na", 417)):
            answer = s.raw(data)
            assert answer.startswith(b"HTTP/1.1 %d " % status), (data[:200], answer)
            assert answer.count(allowed) == 1, (data[:200], answer)
            assert re.search(rf'^kernelforge:http_answers_total{{.*status="{status}"}} [1-9]',
                             s.send("GET", "/metrics")[2], re.M), status


def limits():
    with Server("--max-connections", "4", "--cors-origin", "*") as s:
        # The server takes connections in their order.
        held = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(4)]
        answer = s.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
                       b"Origin: https://a.example\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 503 "), answer
        assert b"\r\nAccess-Control-Allow-Origin: *\r\n" in answer, answer
        held.pop().close()
        s.wait(lambda: s.send("GET", "/health")[0] == 200)


# Ends


def disconnect():
    # More choices than any machine ends while the test looks.
    path = "/v1/completions"
    many = {"prompt": "Once upon", "ignore_eos": True, "max_tokens": 1000, "n": 128}
    with Server("--parallel", "1", "--queue", "255") as s:
        for i in range(10):
            with s.begin(path, stream=True, **many) as first:
                assert first.recv(100)
                # One waits behind it.
                with s.begin(path, stream=True, **many):
                    s.wait(lambda: s.metric("vllm:num_requests_waiting") > 128)
                    # There will be room for so many, but not yet.
                    full = s.error(path, 429, {"prompt": "a", "n": 128})
                    assert full["code"] == "rate_limit_exceeded"
                    assert int(full["headers"]["Retry-After"]) > 0
            # The next ones have room once all of these are gone.
            s.wait(lambda: s.unended() == 0)
        assert s.metric("kernelforge:requests_cancelled_total") > 10
        # Of 2560 texts of 1000 tokens.
        assert s.metric("vllm:generation_tokens_total") < 10 * 128 * 1000
        # One that does not stream.
        with s.begin(path, **many):
            s.wait(lambda: s.metric("vllm:num_requests_running") == 1)
        s.wait(lambda: s.unended() == 0)


def stream_in_thread(server, **body):
    """A thread that reads a stream, once it goes on or has come to its end; its
    `events` are what came."""
    thread = threading.Thread(
        target=lambda: setattr(thread, "events", server.events("/v1/completions", **body)))
    thread.start()
    server.wait(lambda: server.unended() or not thread.is_alive())
    return thread


def floats(text):
    """The numbers of an embedding in base64."""
    data = base64.b64decode(text, validate=True)
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def length(values):
    return math.sqrt(sum(value * value for value in values))


def near(a, b, tolerance=1e-4):
    assert len(a) == len(b), (len(a), len(b))
    assert max(abs(x - y) for x, y in zip(a, b)) < tolerance, (a[:4], b[:4])


def embeddings():
    """/v1/embeddings: what is taken, what is answered, and how it is made."""
    texts = ["Once upon a time", "The cat", "Once upon a time there was " * 12]
    with Server("--parallel", "2", "--queue", "4", "-c", "200", "-a", "stories",
                *OPTIONS) as s:
        assert s.get("/props")["embeddings"] == {"pooling": "last", "normalized": True}
        one = s.post("/v1/embeddings", input=texts[0], model="stories", user="me")
        assert set(one) == {"object", "data", "model", "usage"}, one
        assert one["object"] == "list" and one["model"] == "stories"
        entry = one["data"][0]
        assert set(entry) == {"object", "index", "embedding"}
        assert entry["object"] == "embedding" and entry["index"] == 0
        ids = [s.post("/tokenize", content=text, add_special=True)["tokens"]
               for text in texts]
        assert one["usage"] == {"prompt_tokens": len(ids[0]), "total_tokens": len(ids[0])}
        last = entry["embedding"]
        size = s.get("/v1/models")["data"][0]["meta"]["n_embd"]
        assert len(last) == size and abs(length(last) - 1) < 1e-6
        # All at once, in their order, without /v1, and as ids.
        for inputs in texts, ids, [texts[0], ids[1], texts[2]]:
            many = s.post("/embeddings", input=inputs)
            assert [e["index"] for e in many["data"]] == [0, 1, 2]
            assert many["usage"]["total_tokens"] == sum(map(len, ids))
            near(many["data"][0]["embedding"], last)
        vectors = [e["embedding"] for e in many["data"]]
        near(s.post("/v1/embeddings", input=ids[1])["data"][0]["embedding"], vectors[1])
        assert length([a - b for a, b in zip(vectors[0], vectors[1])]) > 0.01
        # The same numbers, to the last bit, in base64.
        packed = s.post("/v1/embeddings", input=ids[1], encoding_format="base64")
        plain = s.post("/v1/embeddings", input=ids[1], encoding_format="float")
        assert floats(packed["data"][0]["embedding"]) == plain["data"][0]["embedding"]
        # The first numbers, which are normalized.
        few = s.post("/v1/embeddings", input=ids[1], dimensions=8)["data"][0]["embedding"]
        assert len(few) == 8 and abs(length(few) - 1) < 1e-6
        near(few, [x / length(vectors[1][:8]) for x in vectors[1][:8]])
        # Beside a text that is generated.
        whole = {"prompt": "Once", "max_tokens": 150, "temperature": 0, "ignore_eos": True}
        alone = s.post("/v1/completions", **whole)["choices"][0]["text"]
        answers = []
        thread = threading.Thread(
            target=lambda: answers.append(s.post("/v1/completions", **whole)))
        thread.start()
        for i in range(8):
            near(s.post("/v1/embeddings", input=texts[i % 3])["data"][0]["embedding"],
                 vectors[i % 3])
        thread.join()
        assert answers[0]["choices"][0]["text"] == alone
        assert s.metric("kernelforge:requests_failed_total") == 0
        _, _, metrics = s.send("GET", "/metrics")
        assert re.search(r'request_success_total\{[^}]*finished_reason="stop"\} \d\d', metrics)

        def wrong(param, code="", **body):
            error = s.error("/v1/embeddings", 400, body)
            assert error["param"] == param and (error["code"] or "") == code, error
            return error["message"]

        wrong("input")
        wrong("input", input="")
        wrong("input", input=[])
        wrong("input", input=["a", ""])
        wrong("input", input=[[]])
        wrong("input", input=[1, -1])
        assert "vocabulary" in wrong("input", input=[[1], [10**6]])
        wrong("input", "context_length_exceeded", input="word " * 300)
        wrong("input", "context_length_exceeded", input=["a", [5] * 201])
        assert s.post("/v1/embeddings", input=[5] * 200)["usage"]["total_tokens"] == 200
        assert "6 are the most here" in wrong("input", input=["a"] * 7)
        assert len(s.post("/v1/embeddings", input=["a"] * 6)["data"]) == 6
        wrong("dimensions", input="a", dimensions=0)
        assert str(size) in wrong("dimensions", input="a", dimensions=size + 1)
        wrong("encoding_format", input="a", encoding_format="int8")
        wrong("content", "unsupported_parameter", content="a")
        wrong("normalize", "unsupported_parameter", input="a", normalize=False)
        assert s.error("/v1/embeddings", 404, {"input": "a", "model": "x"})["param"] == "model"
        s.error("/v1/embeddings", 405, None, method="GET")
    # By option; the mean of one token's row is that row.
    with Server("--pooling", "mean", "--normalize", "none", "--queue", "200",
                *OPTIONS) as s:
        assert s.get("/props")["embeddings"] == {"pooling": "mean", "normalized": False}
        mean = s.post("/v1/embeddings", input=ids[0])["data"][0]["embedding"]
        assert abs(length(mean) - 1) > 1e-3
        row = s.post("/v1/embeddings", input=[ids[0][0]])["data"][0]["embedding"]
        assert len(s.post("/v1/embeddings", input="a", dimensions=3)["data"][0]["embedding"]) == 3
        # Who goes away is not worked for.
        with s.begin("/v1/embeddings", input=[[i + 1] * 1000 for i in range(200)]):
            s.wait(lambda: s.metric("vllm:num_requests_waiting"))
        s.wait(lambda: s.unended() == 0)
        assert s.metric("kernelforge:requests_cancelled_total") > 0
    with Server("--pooling", "cls", *OPTIONS) as s:
        first = s.post("/v1/embeddings", input=ids[0])
        near(first["data"][0]["embedding"], [x / length(row) for x in row])
        assert first["usage"]["prompt_tokens"] == len(ids[0])
    # What a model's files say, or say that there is no code for.
    said_by_files()


def adapters():
    """Requests name adapters as their model."""
    write_adapter("zeros", 0)
    write_adapter("half", 0.5)
    whole = {"prompt": "Once upon a time", "max_tokens": 30, "temperature": 0}
    said = ["generate", "-p", whole["prompt"], "-n", "30", "--quiet", *OPTIONS]
    alone = generated(*said).removesuffix("\n")
    other = generated(*said, "--lora", "half").removesuffix("\n")
    assert alone != other, alone
    with Server("--lora", "zeros", "--lora", "h=half", "-a", "stories", "-a", "other",
                *OPTIONS) as s:
        models = s.get("/v1/models")["data"]
        assert [m["id"] for m in models] == ["stories", "zeros", "h"], models
        assert [m["parent"] for m in models] == [None, "stories", "stories"], models
        assert s.get("/v1/models/h")["id"] == s.get("/v1/models/stories:h")["id"] == "h"
        expected = {"stories": alone, "other": alone, "zeros": alone, "h": other,
                    "stories:h": other, "other:h": other, "other:zeros": alone}
        answers = {}

        def ask(name):
            answers[name] = s.post("/v1/completions", model=name, **whole)

        threads = [threading.Thread(target=ask, args=(name,)) for name in expected]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name, text in expected.items():
            assert answers[name]["model"] == name
            assert answers[name]["choices"][0]["text"] == text, (name, answers[name])
        assert s.post("/v1/completions", **whole)["choices"][0]["text"] == alone
        # One is not told of what another has computed.
        again = s.post("/v1/completions", model="h", **whole)
        assert again["choices"][0]["text"] == other
        for name in "none", "stories:none", "none:h", "h:h", ":h":
            error = s.error("/v1/completions", 404, {"model": name, **whole})
            assert error["code"] == "model_not_found", error
            assert "'zeros', 'h'" in error["message"], error
        s.error("/v1/models/none", 404, None, method="GET")
        # Of embeddings and chats, too.
        rows = [s.post("/v1/embeddings", input="Once", model=m)["data"][0]["embedding"]
                for m in ("stories", "zeros", "h")]
        near(rows[0], rows[1])
        assert length([a - b for a, b in zip(rows[0], rows[2])]) > 1e-3
        chat = [{"role": "user", "content": "Hello"}]
        s.post("/v1/chat/completions", model="h", messages=chat, max_tokens=2)


def said_by_files():
    models = os.environ["KF_MODELS"]
    shutil.copytree(os.path.join(models, "kf-stories"), "model")
    os.mkdir("model/1_Pooling")

    def write(modes, *kinds):
        with open("model/1_Pooling/config.json", "w") as file:
            json.dump(modes, file)
        with open("model/modules.json", "w") as file:
            json.dump([{"path": path, "type": "sentence_transformers.models." + kind}
                       for kind, path in kinds], file)

    kinds = [("Transformer", ""), ("Pooling", "1_Pooling")]
    write({"pooling_mode_mean_tokens": True}, *kinds)
    with Server("model") as s:
        assert s.get("/props")["embeddings"] == {"pooling": "mean", "normalized": False}
    write({"pooling_mode_max_tokens": True}, *kinds)
    with Server("model") as s:
        assert s.get("/props")["embeddings"] is None
        error = s.error("/v1/embeddings", 400, {"input": "a"})
        assert error["message"].startswith(
            "'1_Pooling/config.json': 'pooling_mode_max_tokens' is not supported; "
            "--pooling mean"), error
        s.post("/v1/completions", prompt="Once", max_tokens=1)
    with Server("model", "--pooling", "last") as s:
        assert s.get("/props")["embeddings"] == {"pooling": "last", "normalized": True}
    shutil.rmtree("model")


def shutdown():
    # Answers come to their end.
    with Server("--parallel", "1", "--device", "cpu", "-t", "1", "--drain", "600") as s:
        long = {"prompt": "Once upon", "ignore_eos": True, "n": 5, "max_tokens": 900}
        thread = stream_in_thread(s, **long)
        idle = s.connect()
        idle.request("GET", "/health")
        idle.getresponse().read()
        s.process.send_signal(signal.SIGTERM)
        assert s.process.wait(SECONDS) == 0
        thread.join()
        assert thread.events[-1] == "[DONE]"
        text = [json.loads(e)["choices"][0]["finish_reason"] for e in thread.events[:-1]]
        assert text.count("length") == 5, text
    # But not for ever.
    with Server("--parallel", "1", "--drain", "0", "-t", "1") as s:
        with s.begin("/v1/completions", prompt="Once", max_tokens=900, ignore_eos=True, n=128):
            s.wait(s.unended)
            s.process.send_signal(signal.SIGINT)
            assert s.process.wait(SECONDS) == 0
    # A second signal ends it at once, also one that comes with the first.
    for isClose in False, True:
        ends_at_once(isClose)


def ends_at_once(isClose):
    with Server("--parallel", "1", "-t", "1", "--drain", "600") as s:
        with s.begin("/v1/completions", prompt="Once", max_tokens=900, ignore_eos=True, n=128,
                     stream=True):
            s.wait(s.unended)
            if not isClose:
                s.process.send_signal(signal.SIGINT)
                s.wait(s.refuses)
                assert s.process.poll() is None
                s.process.send_signal(signal.SIGINT)
                assert s.process.wait(SECONDS) == -signal.SIGINT
                return
            s.process.send_signal(signal.SIGINT)
            s.process.send_signal(signal.SIGTERM)
            assert s.process.wait(SECONDS) in (-signal.SIGINT, -signal.SIGTERM)


def loading():
    # Where this process gets no time, the model may be ready before it asks: then
    # once more.
    for attempt in range(20):
        with Server("--no-cache", ready=False) as s:
            answers = [s.send("GET", path) for path in ("/health", "/v1/models", "/metrics")]
            s.process.send_signal(signal.SIGINT)
            code = s.process.wait(SECONDS)
        health, models, metrics = answers
        assert metrics[0] == 200, metrics
        if models[0] == 503 and code == 130:
            break
        assert code in (0, 130), code
    assert models[0] == 503 and models[1]["Retry-After"] and code == 130, (answers, code)
    assert health[0] == 503, health
    assert json.loads(health[2])["error"]["code"] == "loading", health
    # A port that is taken, and a model that is not there.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(["kf-run", "serve", "--port", port], capture_output=True, text=True)
        assert done.returncode == 1
        assert f"cannot listen on port {port} of '127.0.0.1'" in done.stderr, done.stderr
    # What is wrong with the rest is said before the server listens.
    with open("empty.txt", "w"), open("bad.jinja", "w") as file:
        file.write("{% if %}")
    for options, said in (
        (["/nowhere"], "nowhere"),
        (["--template", "absent.jinja"], "absent.jinja"),
        (["--template", "bad.jinja"], "bad.jinja"),
        (["--api-key-file", "empty.txt"], "has no key"),
        (["-c", "1000000"], "a context of 1000000 positions"),
        (["--cache-memory", "1"], "--cache-memory of 1 B"),
        (["--device", "cuda:99"], "cuda"),
    ):
        done = subprocess.run(["kf-run", "serve", "--port", "0", *options],
                              capture_output=True, text=True)
        assert done.returncode == 1 and said in done.stderr, (options, done)
        assert done.stdout == "", (options, done)
    done = subprocess.run(["kf-run", "serve", "--port", "70000"], capture_output=True, text=True)
    assert done.returncode == 2


globals()[sys.argv[1]]()
