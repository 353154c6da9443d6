#!/usr/bin/env python3
"""Measures servers of OpenAI's /v1/completions under load.

  serve_load.py http://127.0.0.1:8080 [ours=URL peer=URL ...] [options]

Each of a number of clients sends one request after the other and reads its
stream. Every request has a prompt of its own, whose beginning is the same for
all. Servers are measured in turns, the same requests each; what one has cached
of the others' is nothing, as no prompt comes twice. With --arrivals, longer
prompts come beside these, so many a second, whether others are answered or not;
a line of their own, of 0 clients, tables them.

A table goes to the output, all figures with --json to a file: tokens a second
of all clients together; the time from a request to its first text, and from
each text to the next, of all requests; 50% and 99% of these take no longer.
Of the Python standard library alone.
"""

import argparse
import asyncio
import json
import os
import random
import ssl
import sys
import time
import urllib.parse

# Most tokenizers have each of these as one token.
WORDS = """the of and to in a is that it was for on are as with his they at be this
have from or one had by word but not what all were we when your can said there use an
each which she do how their if will up other about out many then them these so some her
would make like him into time has look two more write go see number no way could people
my than first water been call who oil its now find long down day did get come made may
part over new sound take only little work know place year live me back give most very
after thing our just name good sentence man think say great where help through much
before line right too mean old any same tell boy follow came want show also around form
three small set put end does another well large must big even such because turn here why
ask went men read need land different home us move try kind hand picture again change
off play spell air away animal house point page letter mother answer found study still
learn should world""".split()


class Failed(Exception):
    """A request that was not answered as it has to be."""


class Server:
    """Who is measured: a name and where it is."""

    def __init__(self, text):
        name, sign, url = text.partition("=")
        if not sign or "/" in name:
            name, url = "", text
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise argparse.ArgumentTypeError(f"{text!r} is no [NAME=]http(s)://HOST[:PORT][/PATH]")
        self.name = name or parts.netloc
        self.host = parts.hostname
        self.tls = parts.scheme == "https"
        self.port = parts.port or (443 if self.tls else 80)
        self.netloc = parts.netloc
        path = parts.path.rstrip("/")
        self.path = (path if path.endswith("/v1") else path + "/v1") + "/completions"


class Connection:
    """One connection, which is opened again where the server has closed it."""

    def __init__(self, server, key):
        self.server, self.key = server, key
        self.reader = self.writer = None

    async def open(self):
        context = ssl.create_default_context() if self.server.tls else None
        self.reader, self.writer = await asyncio.open_connection(
            self.server.host, self.server.port, ssl=context)

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None

    async def send(self, body):
        """Sends a request; returns the status and the headers of the answer."""
        head = (f"POST {self.server.path} HTTP/1.1\r\nHost: {self.server.netloc}\r\n"
                "Content-Type: application/json\r\nAccept: text/event-stream\r\n"
                f"Content-Length: {len(body)}\r\n")
        if self.key:
            head += f"Authorization: Bearer {self.key}\r\n"
        for attempt in range(2):
            fresh = self.writer is None
            if fresh:
                await self.open()
            try:
                self.writer.write(head.encode() + b"\r\n" + body)
                await self.writer.drain()
                line = await self.reader.readline()
            except ConnectionError:
                line = b""
            if line:
                break
            self.close()  # it was, between two requests
            if fresh or attempt:
                raise Failed("the server closed the connection")
        status = int(line.split()[1])
        headers = {}
        while (line := await self.reader.readline()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        self.closes = headers.get("connection", "").lower() == "close"
        return status, headers

    async def lines(self, headers):
        """The lines of a body, as they come."""
        rest = b""
        async for part in self.parts(headers):
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                yield line.rstrip(b"\r")
        if rest:
            yield rest
        if self.closes:
            self.close()

    async def parts(self, headers):
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int((await self.reader.readline()).split(b";")[0], 16):
                yield await self.reader.readexactly(size)
                await self.reader.readline()
            while (await self.reader.readline()).strip():
                pass
        elif "content-length" in headers:
            yield await self.reader.readexactly(int(headers["content-length"]))
        else:
            self.closes = True
            while part := await self.reader.read(1 << 16):
                yield part


class Result:
    """What a request came to; times in seconds."""

    def __init__(self):
        self.first = self.seconds = 0.0
        self.between = []
        self.prompt = self.generated = 0
        self.retries = 0
        self.sent = None  # the prompt


async def complete(connection, body, deadline):
    """Sends a request until there is room for it, and reads the answer."""
    result = Result()
    begin = time.perf_counter()
    while True:
        status, headers = await connection.send(body)
        if status not in (429, 503):
            break
        async for _ in connection.lines(headers):
            pass
        result.retries += 1
        if time.perf_counter() > deadline:
            raise Failed(f"status {status} again and again")
        await asyncio.sleep(float(headers.get("retry-after", 1)))
    if status != 200:
        text = b"\n".join([line async for line in connection.lines(headers)])
        raise Failed(f"status {status}: {text.decode(errors='replace')[:300]}")
    last, chunks = None, 0
    async for line in connection.lines(headers):
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            continue
        now = time.perf_counter()
        event = json.loads(data)
        if "error" in event:
            raise Failed(f"an error in the stream: {event['error']}")
        usage = event.get("usage")
        if usage:
            result.prompt, result.generated = usage["prompt_tokens"], usage["completion_tokens"]
        # Some servers have an event for a token without text, too.
        if any(choice.get("text") or choice.get("finish_reason") is None
               for choice in event.get("choices", [])):
            chunks += 1
            if last is None:
                result.first = now - begin
            else:
                result.between.append(now - last)
            last = now
    if last is None:
        raise Failed("an answer without text")
    result.generated = result.generated or chunks
    result.seconds = time.perf_counter() - begin
    return result


def make_prompts(options, count, seed, size):
    """`count` prompts, as JSON has them, that no other `seed` begins with."""
    common = round(size * options.common)
    source = random.Random(seed)

    def pick(size, source):
        if options.ids:
            return [source.randrange(*options.ids) for _ in range(size)]
        return [source.choice(WORDS) for _ in range(size)]

    begin = pick(common, source)
    prompts = [begin + pick(size - common, source) for _ in range(count)]
    return prompts if options.ids else [" ".join(prompt) for prompt in prompts]


async def run(server, clients, prompts, options, arrivals=()):
    """Sends `prompts` from so many clients, and while they do `arrivals` at their
    rate; returns the results of both, and the seconds until the clients had
    theirs."""
    key = os.environ.get(options.api_key_env, "") if options.api_key_env else ""
    waiting = iter(prompts)
    ours, others = [], []
    deadline = time.perf_counter() + options.timeout

    async def send(connection, prompt, results):
        request = {"model": options.model, "prompt": prompt, "max_tokens": options.generate,
                   "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
        if not options.model:
            del request["model"]
        if not options.eos:
            request["ignore_eos"] = True
        result = await complete(connection, json.dumps(request).encode(), deadline)
        result.sent = prompt
        results.append(result)

    async def from_client(prompts, results):
        connection = Connection(server, key)
        try:
            for prompt in prompts:
                await send(connection, prompt, results)
        finally:
            connection.close()

    tasks = []

    def start(coroutine):
        tasks.append(asyncio.ensure_future(coroutine))
        return tasks[-1]

    async def arrive():
        for number, prompt in enumerate(arrivals):
            start(from_client([prompt], others))
            await asyncio.sleep(begin + (number + 1) / options.arrivals - time.perf_counter())

    async def until_done():
        """Ends with the first that fails."""
        clients_left = {start(from_client(waiting, ours)) for _ in range(clients)}
        arriving = start(arrive())
        while not all(task.done() for task in clients_left):
            await asyncio.wait([task for task in tasks if not task.done()],
                               return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        seconds = time.perf_counter() - begin
        arriving.cancel()
        await asyncio.gather(*(task for task in tasks if task is not arriving))
        return seconds

    begin = time.perf_counter()
    try:
        seconds = await asyncio.wait_for(until_done(), options.timeout)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return ours, others, seconds


def write_requests(path, results, options):
    """What was sent, as `kf-run batch` reads it."""
    with open(path, "w") as file:
        for result in results:
            file.write(json.dumps({"ids" if options.ids else "prompt": result.sent,
                                   "n": options.generate}) + "\n")


def share(values, part):
    """The value that `part` of `values` do not exceed."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-part * len(ordered) // 1) - 1))]


def summarize(server, clients, results, seconds):
    firsts = [r.first for r in results]
    between = [gap for r in results for gap in r.between]
    generated = sum(r.generated for r in results)
    figures = {
        "server": server.name, "clients": clients, "requests": len(results),
        "seconds": seconds, "generated_tokens": generated,
        "prompt_tokens": sum(r.prompt for r in results),
        "tokens_per_second": generated / seconds,
        "retries": sum(r.retries for r in results),
    }
    for name, values in (("first", firsts), ("between", between),
                         ("request", [r.seconds for r in results])):
        figures[name + "_p50_ms"], figures[name + "_p99_ms"] = (
            None if (value := share(values, part)) is None else 1e3 * value
            for part in (0.5, 0.99))
    return figures


COLUMNS = (
    ("clients", "clients", "{}"), ("server", "server", "{}"),
    ("tok/s", "tokens_per_second", "{:.1f}"),
    ("first p50", "first_p50_ms", "{:.0f} ms"), ("p99", "first_p99_ms", "{:.0f} ms"),
    ("between p50", "between_p50_ms", "{:.1f} ms"), ("p99", "between_p99_ms", "{:.1f} ms"),
    ("prompt", "prompt_tokens", "{}"), ("generated", "generated_tokens", "{}"),
    ("retries", "retries", "{}"))


def row(figures):
    cells = ["-" if figures[key] is None else form.format(figures[key])
             for _, key, form in COLUMNS]
    return "| " + " | ".join(cells) + " |"


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("servers", nargs="+", type=Server, metavar="[NAME=]URL")
    parser.add_argument("--requests", type=int, default=200, help="for each number of clients")
    parser.add_argument("--clients", default="1,8,32", help="numbers of them, by commas")
    parser.add_argument("--prompt", type=int, default=256, help="words of a prompt, or ids")
    parser.add_argument("--common", type=float, default=0.5, help="the part all begin with")
    parser.add_argument("--generate", type=int, default=64, help="tokens of an answer")
    parser.add_argument("--arrivals", type=float, default=0, metavar="RATE",
                        help="prompts of --arrival-prompt words that come a second beside "
                        "the clients', at most as many as these have requests")
    parser.add_argument("--arrival-prompt", type=int, default=2048, help="words of those, or ids")
    parser.add_argument("--write-requests", metavar="FILE",
                        help="write what the last server was sent by the last number of "
                        "clients, and beside them, as 'kf-run batch' reads it")
    parser.add_argument("--ids", metavar="FROM:TO",
                        help="send token ids of this range instead of words")
    parser.add_argument("--eos", action="store_true",
                        help="let answers end before; else ignore_eos is sent, "
                        "which OpenAI's own server does not know")
    parser.add_argument("--model", default="", help="its name; none is sent if it is empty")
    parser.add_argument("--api-key-env", metavar="NAME", help="the variable that has the key")
    parser.add_argument("--seed", type=int, default=1, help="of the prompts")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds of one run")
    parser.add_argument("--json", metavar="FILE", help="where all figures go")
    options = parser.parse_args()
    try:
        options.clients = [int(count) for count in options.clients.split(",")]
        if options.ids:
            low, high = options.ids.split(":")
            options.ids = int(low), int(high)
            if options.ids[0] >= options.ids[1]:
                raise ValueError
    except ValueError:
        parser.error("--clients takes numbers, and --ids two, the smaller one first")
    if min(options.clients + [options.requests, options.prompt, options.generate,
                              options.arrival_prompt]) < 1 or not 0 <= options.common <= 1:
        parser.error("numbers are 1 at least, and --common is from 0 to 1")
    if not 0 <= options.arrivals < float("inf"):
        parser.error("--arrivals is a number of prompts a second")
    return options


async def main(options):
    runs = []
    for server in options.servers:
        # What is made when it is first needed.
        first = make_prompts(options, 4, f"{options.seed} before", options.prompt)
        await run(server, 2, first, options)
    print("| " + " | ".join(title for title, _, _ in COLUMNS) + " |")
    print("|" + " ---: |" * len(COLUMNS), flush=True)
    for clients in options.clients:
        seed = f"{options.seed} {clients}"
        prompts = make_prompts(options, options.requests, seed, options.prompt)
        arrivals = make_prompts(options, options.requests, seed + " beside",
                                options.arrival_prompt) if options.arrivals else []
        for server in options.servers:
            ours, others, seconds = await run(server, clients, prompts, options, arrivals)
            runs.append(summarize(server, clients, ours, seconds))
            if arrivals:
                runs[-1]["arrivals"] = summarize(server, 0, others, seconds)
            print(row(runs[-1]), flush=True)
            if arrivals:
                print(row(runs[-1]["arrivals"]), flush=True)
    if options.json:
        settings = {key: value for key, value in vars(options).items()
                    if key not in ("servers", "api_key_env", "json")}
        with open(options.json, "w") as file:
            json.dump({"settings": settings, "runs": runs}, file, indent=1)
            file.write("\n")
    if options.write_requests:
        write_requests(options.write_requests, ours + others, options)


if __name__ == "__main__":
    arguments = parse()
    try:
        asyncio.run(main(arguments))
    except (Failed, OSError, asyncio.IncompleteReadError, asyncio.TimeoutError,
            ValueError) as error:
        print(f"error: {str(error) or type(error).__name__}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
