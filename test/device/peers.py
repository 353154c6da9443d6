#!/usr/bin/env python3
# Measures on this GPU what run.sh --bench shows ours beside: the machine's
# ceilings, cuBLAS, SDPA and LLaMA decoders in PyTorch; and prints the tables.
# Needs nothing but Python; without PyTorch, peers are missing. See README.md.
"""usage: peers.py [--seconds N] [--json FILE] [--ours FOLDER] [--no-measure]
       peers.py --check

  --seconds N     begin nothing after so many seconds; 70 by default
  --json FILE     write what is measured there, one JSON object a line
  --ours FOLDER   print ours beside it: MODEL.FORMAT.*.json in that folder are
                  what 'kf-run bench -o json' has printed
  --no-measure    print the tables of what FILE holds
  --check         compare the decoder with a plain one, on the CPU
"""

import argparse
import collections
import glob
import json
import os
import statistics
import sys
import time

Shape = collections.namedtuple(
    "Shape",
    "layers width heads kv_heads head_dim hidden vocabulary tied theta")
SHAPES = {
    "tinyllama-1.1b":
        Shape(22, 2048, 32, 4, 64, 5632, 32000, False, 10000.0),
    "llama-3.2-1b":
        Shape(16, 2048, 32, 8, 64, 8192, 128256, True, 500000.0),
    "llama-3-8b":
        Shape(32, 4096, 32, 8, 128, 14336, 128256, False, 500000.0),
}
BYTES = {"f16": 2, "bf16": 2, "q8_0": 34 / 32, "q4_0": 18 / 32,
         "q4_k": 144 / 256, "q6_k": 210 / 256}
DEPTH = 8000
GENERATED = 64  # tokens of ours' tests; peers' depth is the mean of theirs


def layer_weights(s):
    """Elements of the products' weights in one layer."""
    qkv = (s.heads + 2 * s.kv_heads) * s.head_dim * s.width
    return qkv + s.heads * s.head_dim * s.width + 3 * s.hidden * s.width


def least_seconds(s, element, test, batch, depth, read, flops):
    """What a test takes at `read` bytes and `flops` operations a second: a
    step of decode, or a whole prompt in steps of any size. Caches are f16."""
    head = s.vocabulary * s.width
    weights = s.layers * layer_weights(s)
    position = s.layers * 2 * s.kv_heads * s.head_dim * 2
    pair = s.layers * 4 * s.heads * s.head_dim
    if test == "tg":
        mean = depth + GENERATED / 2
        least = (element * (weights + head) + batch * mean * position) / read
        work = batch * (2 * (weights + head) + mean * pair)
    else:
        rows = int(test[2:])
        least = element * (weights + head) / read
        work = 2 * (rows * weights + head) + rows * rows / 2 * pair
    return max(least, work / flops)


# ---------------------------------------------------------------------------
# The decoder. `torch` and `F` are set by import_torch().
# ---------------------------------------------------------------------------


def import_torch():
    global torch, F
    import torch
    import torch.nn.functional as F


def rms_norm(x, scale):
    return F.rms_norm(x, scale.shape, scale, 1e-5)


def rotate(x, cos, sin):
    """x, cos, sin: [..., head_dim]."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def split_heads(s, qkv):
    """[batch, rows, q + k + v] to three of [batch, heads, rows, head_dim]."""
    batch, rows, _ = qkv.shape
    parts = qkv.split([n * s.head_dim
                       for n in (s.heads, s.kv_heads, s.kv_heads)], -1)
    return [p.view(batch, rows, -1, s.head_dim).transpose(1, 2) for p in parts]


def feed_forward(x, w):
    gate, up = F.linear(rms_norm(x, w["norm2"]), w["gate_up"]).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, w["down"])


def prefill_layer(s, x, w, keys, values, cos, sin):
    """x: [1, rows, width], from position 0 on. Fills the cache."""
    rows = x.shape[1]
    q, k, v = split_heads(s, F.linear(rms_norm(x, w["norm1"]), w["qkv"]))
    q, k = rotate(q, cos[:rows], sin[:rows]), rotate(k, cos[:rows], sin[:rows])
    keys[:, :, :rows] = k
    values[:, :, :rows] = v
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                       enable_gqa=True)
    x = x + F.linear(y.transpose(1, 2).flatten(2), w["o"])
    return feed_forward(x, w)


WAYS = ("rows", "heads", "products")


def attend(s, q, keys, values, way):
    """Attention of one row, in one of the WAYS; which is fastest depends on the
    length of the cache."""
    if way == "heads":
        return F.scaled_dot_product_attention(q, keys, values, enable_gqa=True)
    # The heads that share a KV head are rows of one.
    q = q.reshape(-1, s.kv_heads, s.heads // s.kv_heads, s.head_dim)
    if way == "rows":
        return F.scaled_dot_product_attention(q, keys, values)
    scores = q @ keys.transpose(2, 3) * s.head_dim**-0.5
    return torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype) @ values


def decode_layer(s, x, w, keys, values, cos, sin, depth, at, way):
    """x: [batch, 1, width], at position `depth`, which `at` holds, too."""
    batch = x.shape[0]
    q, k, v = split_heads(s, F.linear(rms_norm(x, w["norm1"]), w["qkv"]))
    q, k = rotate(q, cos, sin), rotate(k, cos, sin)
    keys[:, :, at] = k
    values[:, :, at] = v
    y = attend(s, q, keys[:, :, :depth + 1], values[:, :, :depth + 1], way)
    x = x + F.linear(y.reshape(batch, 1, s.heads * s.head_dim), w["o"])
    return feed_forward(x, w)


class Decoder:
    """A LLaMA of random weights, with a cache for `batch` x `positions`."""

    def __init__(self, shape, device, dtype):
        self.shape = s = shape
        self.device, self.dtype = device, dtype

        def weight(*sizes):
            w = torch.empty(*sizes, device=device, dtype=dtype)
            return w.normal_(0, sizes[-1]**-0.5)

        def ones():
            return torch.ones(s.width, device=device, dtype=dtype)

        rows = (s.heads + 2 * s.kv_heads) * s.head_dim
        self.embedding = weight(s.vocabulary, s.width)
        self.head = (self.embedding if s.tied else
                     weight(s.vocabulary, s.width))
        self.norm = ones()
        self.layers = [{
            "norm1": ones(), "norm2": ones(),
            "qkv": weight(rows, s.width),
            "o": weight(s.width, s.heads * s.head_dim),
            "gate_up": weight(2 * s.hidden, s.width),
            "down": weight(s.width, s.hidden),
        } for _ in range(s.layers)]

    def start(self, batch, positions):
        s = self.shape
        self.caches = None  # two at a time may not fit
        self.caches = [[
            torch.zeros(batch, s.kv_heads, positions, s.head_dim,
                        device=self.device, dtype=self.dtype)
            for _ in range(2)
        ] for _ in range(s.layers)]
        rate = s.theta**(-torch.arange(0, s.head_dim, 2, device=self.device)
                         / s.head_dim)
        angles = torch.arange(positions, device=self.device)[:, None] * rate
        angles = torch.cat((angles, angles), -1)
        self.cos = angles.cos().to(self.dtype)
        self.sin = angles.sin().to(self.dtype)

    def logits(self, x):
        return F.linear(rms_norm(x[:, -1], self.norm), self.head)

    def prefill(self, ids):
        x = F.embedding(ids, self.embedding)
        for w, (keys, values) in zip(self.layers, self.caches):
            x = prefill_layer(self.shape, x, w, keys, values, self.cos,
                              self.sin)
        return self.logits(x)

    def decode(self, ids, depth, at, layer, way):
        """ids: [batch, 1]; at: [1], `depth`."""
        x = F.embedding(ids, self.embedding)
        cos = self.cos[depth:depth + 1]
        sin = self.sin[depth:depth + 1]
        for w, (keys, values) in zip(self.layers, self.caches):
            x = layer(self.shape, x, w, keys, values, cos, sin, depth, at,
                      way)
        return self.logits(x)


def plain_logits(model, ids):
    """The last row's logits, head by head and row by row, for check()."""
    s = model.shape
    x = model.embedding[ids]

    def norm(x, scale):
        return scale * x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()

    def turn(x, position):
        y = x.clone()
        half = s.head_dim // 2
        for i in range(half):
            angle = torch.tensor(position * s.theta**(-2 * i / s.head_dim))
            y[i] = x[i] * angle.cos() - x[i + half] * angle.sin()
            y[i + half] = x[i + half] * angle.cos() + x[i] * angle.sin()
        return y

    for w in model.layers:
        qkv = norm(x, w["norm1"]) @ w["qkv"].T
        heads = qkv.view(len(ids), -1, s.head_dim)
        out = torch.zeros(len(ids), s.heads, s.head_dim)
        for h in range(s.heads):
            shared = s.heads + h // (s.heads // s.kv_heads)
            for row in range(len(ids)):
                q = turn(heads[row, h], row)
                scores = torch.stack([
                    q @ turn(heads[at, shared], at) for at in range(row + 1)])
                part = torch.softmax(scores / s.head_dim**0.5, 0)
                out[row, h] = part @ heads[:row + 1, shared + s.kv_heads]
        x = x + out.flatten(1) @ w["o"].T
        y = norm(x, w["norm2"]) @ w["gate_up"].T
        gate, up = y[:, :s.hidden], y[:, s.hidden:]
        x = x + (gate * torch.sigmoid(gate) * up) @ w["down"].T
    return norm(x[-1:], model.norm) @ model.head.T


def check():
    """Prompt and single tokens give what plain_logits() does."""
    torch.manual_seed(1)
    worst = 0.0
    for tied, kv_heads in ((True, 2), (False, 4), (False, 1)):
        shape = Shape(2, 32, 4, kv_heads, 8, 48, 50, tied, 10000.0)
        model = Decoder(shape, "cpu", torch.float32)
        ids = torch.randint(0, 50, (7,))
        expected = plain_logits(model, ids)
        model.start(1, 16)
        whole = model.prefill(ids[None])
        found = [whole]
        for way in WAYS:
            model.start(3, 16)
            for at in range(7):
                steps = model.decode(ids[at].expand(3, 1), at,
                                     torch.tensor([at]), decode_layer, way)
            found.append(steps)
        for logits in found:
            worst = max(worst, (logits - expected).abs().max().item())
    print(f"largest difference of logits: {worst:.2g}")
    return 0 if worst < 1e-4 else 1


# ---------------------------------------------------------------------------
# Measuring
# ---------------------------------------------------------------------------


class Results:
    """What was measured, as flat objects, and what was not, with reasons."""

    def __init__(self, file):
        self.file = file
        self.rows = []

    def add(self, **row):
        self.rows.append(row)
        if self.file:
            with open(self.file, "a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")

    def read(self):
        if self.file and os.path.exists(self.file):
            with open(self.file, encoding="utf-8") as lines:
                self.rows = [json.loads(line) for line in lines]

    def find(self, **wanted):
        """The value of the row with these fields, or None."""
        for row in self.rows:
            if "value" in row and all(row.get(k) == v
                                      for k, v in wanted.items()):
                return row["value"]
        return None

    def ceiling(self, name):
        return self.find(kind="ceiling", name=name)


def graph_of(work, times=1):
    """Records work() `times` times, after running it twice."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            work()
    return graph


def seconds_of(work, times, turns=3):
    """The median of turns of `times` calls, after two that do not count."""
    for _ in range(2):
        work()
    taken = []
    for _ in range(turns):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(times):
            work()
        end.record()
        end.synchronize()
        taken.append(begin.elapsed_time(end) / 1e3 / times)
    return statistics.median(taken)


class Measuring:
    def __init__(self, results, seconds):
        self.results = results
        self.end = time.monotonic() + seconds

    def attempt(self, measure, kind, **what):
        """Adds measure()'s value with its unit, or why there is none."""
        if time.monotonic() > self.end:
            self.results.add(kind=kind, **what, missing="time was over")
            return
        try:
            value, unit = measure()
            self.results.add(kind=kind, **what, value=value, unit=unit)
        except Exception as error:  # whatever it is, the next one may work
            lines = str(error).strip().splitlines() or [""]
            reason = f"{type(error).__name__}: {lines[0][:120]}"
            self.results.add(kind=kind, **what, missing=reason)

    def ceilings(self):
        count = 1 << 29
        source = torch.ones(count, device="cuda")

        def copy():
            target = torch.empty_like(source)
            taken = seconds_of(lambda: target.copy_(source), 10)
            return 2 * 4 * count / taken / 1e9, "GB/s"

        def read():
            rows = source.view(-1, 4096)
            matrix = source.view(torch.bfloat16).view(-1, 4096)
            vector = torch.ones(4096, 1, device="cuda", dtype=torch.bfloat16)
            ways = (source.sum, source.max, lambda: rows.sum(1),
                    lambda: torch.mm(matrix, vector))
            taken = min(seconds_of(way, 10) for way in ways)
            return 4 * count / taken / 1e9, "GB/s"

        def upload():
            host = torch.ones(1 << 28, pin_memory=True)
            target = torch.empty(1 << 28, device="cuda")
            work = lambda: target.copy_(host, non_blocking=True)
            return 4 * (1 << 28) / seconds_of(work, 2) / 1e9, "GB/s"

        def matrix():
            a, b = (torch.randn(8192, 8192, device="cuda",
                                dtype=torch.bfloat16) for _ in range(2))
            taken = seconds_of(lambda: torch.mm(a, b), 10)
            return 2 * 8192**3 / taken / 1e12, "TFLOP/s"

        for way in (copy, read, matrix, upload):
            self.attempt(way, "ceiling", name=way.__name__)

    def product(self, n, k, m):
        """y = x W^T; W's copies together are more than the caches hold."""
        copies = max(1, (256 << 20) // (2 * n * k))
        weights = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
                   for _ in range(copies)]
        x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        y = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)

        def work():
            for w in weights:
                torch.mm(x, w.T, out=y)

        graph = graph_of(work, 2)
        taken = seconds_of(graph.replay, 5) / (2 * copies)
        return taken * 1e6, "us"

    def products(self):
        s = SHAPES["llama-3-8b"]
        q = s.heads * s.head_dim
        for name, n, k in (("qkv", q + 2 * s.kv_heads * s.head_dim, s.width),
                           ("o", s.width, q),
                           ("gate_up", 2 * s.hidden, s.width),
                           ("down", s.width, s.hidden)):
            for m in (1, 16, 512, 2048):
                self.attempt(lambda: self.product(n, k, m), "product",
                             name=name, n=n, k=k, m=m)

    def attention(self, backend, rows):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        s = SHAPES["llama-3-8b"]
        q, k, v = (torch.randn(1, s.heads, rows, s.head_dim, device="cuda",
                               dtype=torch.bfloat16) for _ in range(3))

        def work():
            F.scaled_dot_product_attention(q, k, v, is_causal=True)

        with sdpa_kernel([getattr(SDPBackend, backend)]):
            taken = seconds_of(work, 10)
        done = 2 * rows * rows * s.heads * s.head_dim
        return done / taken / 1e12, "TFLOP/s"

    def decode(self, model, batch, depth):
        layer = torch.compile(decode_layer, dynamic=False, fullgraph=True)
        depth += GENERATED // 2
        at = torch.tensor([depth], device="cuda")
        model.start(batch, depth + 1)
        ids = torch.zeros(batch, 1, device="cuda", dtype=torch.long)

        def step():
            logits = model.decode(ids, depth, at, layer, way)
            ids.copy_(logits.argmax(-1, keepdim=True))

        taken, failed = [], None
        for way in WAYS if depth >= 1024 else WAYS[:1]:
            try:
                with torch.no_grad():
                    taken.append(seconds_of(graph_of(step).replay, 30))
            except Exception as error:  # another way may work
                failed = error
            if time.monotonic() > self.end:
                break
        if not taken:
            raise failed
        return batch / min(taken), "tok/s"

    def prefill(self, model, rows):
        model.start(1, rows)
        ids = torch.randint(0, model.shape.vocabulary, (1, rows),
                            device="cuda")
        with torch.no_grad():
            graph = graph_of(lambda: model.prefill(ids))
            return rows / seconds_of(graph.replay, 3), "tok/s"

    def model(self, name):
        model = None

        def make():
            nonlocal model
            begin = time.monotonic()
            model = Decoder(SHAPES[name], "cuda", torch.bfloat16)
            torch.cuda.synchronize()
            return time.monotonic() - begin, "s"

        self.attempt(make, "made", name=name)
        if model is None:
            return
        for batch, depth in ((1, 0), (16, 0), (1, DEPTH), (64, 0), (256, 0)):
            self.attempt(lambda: self.decode(model, batch, depth), "model",
                         name=name, test="tg", batch=batch, depth=depth)
        for rows in (512, 2048):
            self.attempt(lambda: self.prefill(model, rows), "model", name=name,
                         test=f"pp{rows}", batch=1, depth=0)

    def all(self):
        for setting in ("recompile_limit", "cache_size_limit"):
            try:
                setattr(torch._dynamo.config, setting, 64)
                break
            except Exception:  # its name depends on the release
                pass
        self.ceilings()
        for name in ("llama-3-8b", "llama-3.2-1b"):
            self.model(name)
            torch.cuda.empty_cache()
        self.products()
        for backend in ("FLASH_ATTENTION", "CUDNN_ATTENTION"):
            for rows in (2048, 8192):
                self.attempt(lambda: self.attention(backend, rows),
                             "attention", name=backend.split("_")[0].lower(),
                             rows=rows)


def measure(results, seconds):
    begin = time.monotonic()
    try:
        import_torch()
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no CUDA device")
        results.add(kind="torch", gpu=torch.cuda.get_device_name(0),
                    version=str(torch.__version__))
    except Exception as error:
        lines = str(error).splitlines() or [""]
        results.add(kind="torch", missing=f"no torch: {lines[0][:120]}")
        return
    Measuring(results, seconds - (time.monotonic() - begin)).all()


# ---------------------------------------------------------------------------
# Tables
# ---------------------------------------------------------------------------


def number(value):
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def ratio(part, whole):
    return f"{part / whole:.2f}" if part and whole else ""


def table(columns, rows):
    print("\n| " + " | ".join(columns) + " |")
    print("|" + " --- |" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(cell).replace("|", "/") for cell in row) +
              " |")


def read_ours(folder):
    """Rows of (model, format, test, batch, depth, tok/s), and what failed."""
    rows, failed = [], []
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        name = os.path.basename(path)[:-len(".json")]
        model, weight, _ = name.rsplit(".", 2)
        try:
            with open(path, encoding="utf-8") as text:
                for test in json.load(text):
                    kind = ("tg" if test["n_gen"] else
                            f"pp{test['n_prompt']}")
                    rows.append((model, weight, kind, test["n_sequences"],
                                 test["n_depth"], test["avg_ts"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            failed.append(f"{name}: {type(error).__name__}: {error}")
    return rows, failed


def name_of(test, batch, depth):
    name = "decode" if test == "tg" else f"prefill {test[2:]}"
    name += f", batch {batch}" if batch > 1 else ""
    return name + (f", cache of {depth}" if depth else "")


def print_models(results, ours):
    read, matrix = results.ceiling("read"), results.ceiling("matrix")
    missing = results.rows and results.rows[0].get("missing")
    if not results.rows:
        missing = "not measured"
    peers = {(r["name"], r["test"], r["batch"], r["depth"]): r
             for r in results.rows if r["kind"] == "model"}
    mine = {row[:5]: row[5] for row in ours}
    # Those that have nothing of ours beside them stand alone.
    keys = list(set(mine) | {(n, "bf16", t, b, d) for n, t, b, d in peers})
    order = {"bf16": 0, "q8_0": 1, "q4_k": 2, "q4_0": 3}
    keys.sort(key=lambda k: (k[0] != "llama-3.2-1b", k[0], order.get(k[1], 9),
                             k[2] != "tg", k[4], k[3], len(k[2]), k[2]))
    lines = []
    for key in keys:
        model, weight, test, batch, depth = key
        peer = peers.get((model, test, batch, depth), {})
        value = peer.get("value")
        told = number(value) or peer.get("missing") or missing or ""
        least = None
        if read and matrix and model in SHAPES and weight in BYTES:
            tokens = batch if test == "tg" else int(test[2:])
            least = tokens / least_seconds(SHAPES[model], BYTES[weight], test,
                                           batch, depth, read * 1e9,
                                           matrix * 1e12)
        lines.append((model, weight, name_of(test, batch, depth),
                      number(mine.get(key)), told,
                      ratio(mine.get(key), value), number(least),
                      ratio(mine.get(key), least), ratio(value, least)
                      if weight == "bf16" else ""))
    if lines:
        table(("model", "weights", "test", "ours, tok/s",
               "PyTorch bf16, tok/s", "ours / PyTorch", "ceiling, tok/s",
               "ours / ceiling", "PyTorch / ceiling"), lines)


def print_peers(results):
    lines = []
    for row in results.rows:
        if row["kind"] == "ceiling":
            lines.append((row["name"], number(row.get("value")),
                          row.get("unit", row.get("missing"))))
    if lines:
        table(("ceiling", "measured", "unit"), lines)

    read, matrix = results.ceiling("read"), results.ceiling("matrix")
    lines = []
    for row in results.rows:
        if row["kind"] != "product":
            continue
        head = (row["name"], f"{row['n']} x {row['k']}", row["m"])
        if "value" not in row:
            lines.append(head + (row["missing"], "", "", "", ""))
            continue
        taken = row["value"] / 1e6
        bytes_ = 2 * row["n"] * row["k"] / taken / 1e9
        flops = 2 * row["n"] * row["k"] * row["m"] / taken / 1e12
        lines.append(head + (f"{row['value']:.1f}", number(bytes_),
                             ratio(bytes_, read), number(flops),
                             ratio(flops, matrix)))
    if lines:
        table(("cuBLAS, bf16", "W", "rows", "us", "GB/s of W", "of read",
               "TFLOP/s", "of matrix"), lines)

    lines = [(row["name"], row["rows"],
              number(row.get("value")) or row["missing"],
              ratio(row.get("value"), matrix))
             for row in results.rows if row["kind"] == "attention"]
    if lines:
        table(("SDPA, causal, 32 heads of 128, bf16", "rows", "TFLOP/s",
               "of matrix"), lines)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1],
                                     add_help=True)
    parser.add_argument("--seconds", type=float, default=70)
    parser.add_argument("--json")
    parser.add_argument("--ours")
    parser.add_argument("--no-measure", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        try:
            import_torch()
        except ImportError as error:
            print(f"peers.py: error: no torch: {error}", file=sys.stderr)
            return 1
        return check()
    results = Results(options.json)
    if options.no_measure:
        results.read()
    else:
        measure(results, options.seconds)
    ours, failed = read_ours(options.ours) if options.ours else ([], [])
    for row in results.rows:
        if row["kind"] == "torch":
            print(row.get("missing") or
                  f"{row['gpu']}, PyTorch {row['version']}")
    print_models(results, ours)
    print_peers(results)
    for line in failed:
        print(line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
