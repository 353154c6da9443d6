#!/usr/bin/env python3
"""Writes torch.json: gradients of the functions of these files, by PyTorch.

Run it where PyTorch is installed, 2.0 or later:

    python3 test/conformance/gradients/torch_gradients.py

Everything is computed in float64. Inputs are what GradientsTest.cpp makes of the
same formula, with 5 rows for each `?`.
"""

import json
import math
import pathlib
import re

import torch
import torch.nn.functional as F

FOLDER = pathlib.Path(__file__).parent
ROWS = 5
# Of gradients with more elements than `MOST`, each `STEP`-th one is kept.
MOST, STEP = 64, 7
WEIGHT = 99  # number of a weight by name, where arguments have theirs


def mixed(argument, i):
    state = (i * 2654435761 + argument * 974711 + 12345) % 2**32
    state ^= state >> 15
    state = state * 2246822519 % 2**32
    return state ^ (state >> 13)


def make_input(function, argument, shape, element):
    count = math.prod(shape)
    bits = [mixed(argument, i) for i in range(count)]
    if element == "i32":
        return torch.tensor([b % 8 for b in bits]).reshape(shape)
    if element == "i1":
        return torch.tensor([bool(b & 1) for b in bits]).reshape(shape)
    values = torch.tensor([(b % 48 + 0.5) / 24 - 1 for b in bits]).double()
    if function.startswith("unit_"):
        values = values / 4 + 0.55
    if function.startswith("above_one_"):
        values = values * 0.9 + 2.1
    values = values.reshape(shape)
    return values.bfloat16().double() if element == "bf16" else values


def read_functions():
    for path in sorted(FOLDER.glob("*.mlir")):
        text = path.read_text()
        for match in re.finditer(r"func\.func @(\w+)\((.*?)\) -> ", text, re.S):
            arguments = []
            for argument in re.findall(
                r"%\w+: tensor<([^>]*)>+( \{kf\.gradient\})?", match[2]
            ):
                parts = argument[0].split(",")[0].split("x")
                shape = [ROWS if p == "?" else int(p) for p in parts[:-1]]
                arguments.append((shape, parts[-1], bool(argument[1])))
            yield match[1], arguments


def rope(x, positions, dim, interleaved=False, magnitude=1.0):
    frequencies = 1e4 ** (-torch.arange(0, dim, 2).double() / dim)
    angle = positions.double()[:, None, None] * frequencies
    return rotate(x, magnitude * angle.cos(), magnitude * angle.sin(), interleaved)


def rotate(x, cos, sin, interleaved=False):
    dim = 2 * cos.shape[-1]
    turned, rest = x[..., :dim], x[..., dim:]
    if interleaved:
        a, b = turned[..., ::2], turned[..., 1::2]
    else:
        a, b = turned[..., : dim // 2], turned[..., dim // 2 :]
    first, second = a * cos - b * sin, b * cos + a * sin
    if interleaved:
        turned = torch.stack([first, second], -1).flatten(-2)
    else:
        turned = torch.cat([first, second], -1)
    return torch.cat([turned, rest], -1)


def rms_norm(x, w, eps):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * w


def seen(queries, keys, offset=0, window=None):
    ahead = torch.arange(keys)[None, :] - torch.arange(queries)[:, None]
    mask = ahead <= offset
    return mask if window is None else mask & (ahead > offset - window)


def attend(q, k, v, mask=None, bias=None, scale=None, cap=None):
    groups = q.shape[-3] // k.shape[-3]
    k, v = (t.repeat_interleave(groups, -3) for t in (k, v))
    scores = q @ k.transpose(-1, -2) * (scale or q.shape[-1] ** -0.5)
    if cap is not None:
        scores = cap * torch.tanh(scores / cap)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
        # A row that sees nothing has zeros.
        weights = torch.softmax(
            scores.masked_fill(~mask.any(-1, keepdim=True), 0), -1
        )
        weights = weights * mask
    else:
        weights = torch.softmax(scores, -1)
    return weights @ v


def embedding(ids, table):
    rows = table[ids.clamp(0, len(table) - 1)]
    return rows * ((ids >= 0) & (ids < len(table)))[:, None]


def cross_entropy(x, labels, reduction):
    ignored = torch.where(labels < x.shape[-1], labels, -100)
    if reduction == "mean" and (ignored == -100).all():
        return 0 * x.sum()
    return F.cross_entropy(x, ignored, ignore_index=-100, reduction=reduction)


def block(x, n, wq, wk, wv, wo, positions):
    h = rms_norm(x, n, 1e-2)
    q = rope((h @ wq.T).reshape(6, 4, 4), positions, 4).transpose(0, 1)
    k = rope((h @ wk.T).reshape(6, 2, 4), positions, 4).transpose(0, 1)
    v = (h @ wv.T).reshape(6, 2, 4).transpose(0, 1)
    a = attend(q, k, v, mask=seen(6, 6)).transpose(0, 1).reshape(6, 16)
    return x + a @ wo.T


def glu(x, w, b, act):
    return act(x @ w[0].T + b[0]) * (x @ w[1].T + b[1])


def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


def frozen(shape):
    return make_input("", WEIGHT, shape, "bf16")


def philox(counter, key):
    counter = [word % 2**32 for word in counter]
    key = [word % 2**32 for word in key]
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        words = (b >> 32) ^ counter[1] ^ key[0], b, (a >> 32) ^ counter[3] ^ key[1], a
        counter = [word % 2**32 for word in words]
        key = (key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32
    return counter[0]


def dropout(x, draw, p):
    a, b, low, high = draw.tolist()
    rows, columns = x.shape
    kept = torch.tensor(
        [
            [philox([d, t, a, b], (low, high)) >= p * 2**32 for d in range(columns)]
            for t in range(rows)
        ]
    )
    return torch.where(kept, x / (1 - p), 0.0)


# What is weighed by the last argument and summed up.
RESULTS = {
    "addf": torch.add, "subf": torch.sub, "mulf": torch.mul,
    "maximumf": torch.maximum, "minimumf": torch.minimum,
    "maxnumf": torch.maximum, "minnumf": torch.minimum,
    "unit_divf": torch.div, "unit_powf": torch.pow, "unit_atan2": torch.atan2,
    "fma": lambda x, y, z: x * y + z, "select": torch.where,
    "negf": torch.neg, "absf": torch.abs, "exp": torch.exp, "exp2": torch.exp2,
    "expm1": torch.expm1, "erf": torch.erf, "erfc": torch.erfc,
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan,
    "unit_asin": torch.asin, "unit_acos": torch.acos, "atan": torch.atan,
    "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh,
    "asinh": torch.asinh, "above_one_acosh": torch.acosh,
    "unit_atanh": torch.atanh, "unit_sqrt": torch.sqrt,
    "unit_rsqrt": torch.rsqrt, "unit_cbrt": lambda x: x ** (1 / 3),
    "unit_log": torch.log, "unit_log2": torch.log2, "unit_log10": torch.log10,
    "unit_log1p": torch.log1p, "floor": lambda x: torch.floor(x) * x,
    "activation_silu": F.silu, "activation_gelu": F.gelu,
    "activation_gelu_tanh": gelu_tanh, "activation_relu": F.relu,
    "activation_identity": lambda x: x,
    "rounded_casts": lambda x: x * x,
    "rounded_arithmetic": lambda x, y: x * y - x,
    "dropout": lambda x, draw: dropout(x, draw, 0.25),
    "several_uses": lambda x: (x * x + x) * (x * x),
    "unused": lambda x, y: x,
    "transpose": lambda x: x.permute(2, 0, 1),
    "broadcast": lambda x: x.expand(2, 3, 4),
    "broadcast_to_rows": lambda x: x.expand(ROWS, 6),
    "copy": lambda x: x,
    "collapse_shape": lambda x: x.reshape(-1, 6),
    "expand_shape": lambda x: x.reshape(-1, 2, 3),
    "concat": lambda x, y, z: torch.cat([x, y, z], 1),
    "slice_columns": lambda x: x[:, 2:5],
    "slice_with_strides": lambda x: x[1:5:3, 1:7:2],
    "slice_of_less_rank": lambda x: x[1, :, 2],
    "reduce_sum": lambda x: x.sum(1),
    "reduce_sum_of_rows": lambda x: x.sum(0),
    "reduce_sum_keeping_dims": lambda x: x.sum(1, keepdim=True),
    "reduce_mean": lambda x: x.mean(1),
    "reduce_mean_of_rows": lambda x: x.mean(0),
    "reduce_mean_keeping_dims": lambda x: x.mean(1, keepdim=True),
    "reduce_max": lambda x: x.amax(1),
    "reduce_max_of_rows": lambda x: x.amax(0),
    "reduce_max_keeping_dims": lambda x: x.amax(1, keepdim=True),
    "reduce_min": lambda x: x.amin(1),
    "reduce_min_of_rows": lambda x: x.amin(0),
    "reduce_min_keeping_dims": lambda x: x.amin(1, keepdim=True),
    "max_of_equal_ones": lambda x: x.expand(3, 4).amax(0),
    "matmul": F.linear, "matmul_of_static_rows": F.linear,
    "rounded_matmul_of_bf16": F.linear, "matmul_of_weight_alone": F.linear,
    "rounded_matmul_of_frozen_weight": lambda x: x @ frozen([9, 32]).T,
    "matmul_glu_silu": lambda x, w, b: glu(x, w, b, F.silu),
    "matmul_glu_gelu_tanh": lambda x, w, b: glu(x, w, b, gelu_tanh),
    "matmul_of_batches": F.linear, "matmul_of_batches_of_rows": F.linear,
    "matmul_with_batches": lambda x, w: x @ w.transpose(-1, -2),
    "batch_matmul": lambda x, w: x @ w.transpose(-1, -2),
    "mlp": lambda x, u, d: F.gelu(x @ u.T) @ d.T,
    "mlp_with_gate": lambda x, g, u, d: (F.silu(x @ g.T) * (x @ u.T)) @ d.T,
    "embedding": embedding,
    "rms_norm": lambda x, w: rms_norm(x, w, 1e-2),
    "rms_norm_zero_centered": lambda x, w: rms_norm(x, 1 + w, 1e-2),
    "layer_norm": lambda x, w, b: F.layer_norm(x, [12], w, b, 1e-2),
    "softmax": lambda x: torch.softmax(x, -1),
    "rope": lambda x, p: rope(x, p, 6),
    "rope_interleaved": lambda x, p: rope(x, p, 8, True, 1.5),
    "rotary_embedding": rotate,
    "rotary_embedding_interleaved": lambda x, c, s: rotate(x, c, s, True),
    "attention": attend,
    "attention_causal_of_groups":
        lambda q, k, v: attend(q, k, v, mask=seen(5, 5)),
    "attention_windowed":
        lambda q, k, v: attend(q, k, v, mask=seen(5, 7, 2, 3), scale=0.7),
    "attention_softcap":
        lambda q, k, v: attend(q, k, v, mask=seen(4, 4), cap=1.5),
    "attention_masked": lambda q, k, v, m: attend(q, k, v, mask=m),
    "attention_with_bias": lambda q, k, v, m: attend(q, k, v, bias=m),
    "rounded_rms_norm": lambda x, w: rms_norm(x, w, 1e-2),
    "rounded_attention":
        lambda q, k, v: attend(q, k, v, mask=seen(4, 4)),
    "rounded_attention_for_units":
        lambda q, k, v, m: attend(q, k, v, mask=m & seen(37, 40, 2, 35)),
    "block": block,
    "cross_entropy_of_rows": lambda x, y: cross_entropy(x, y, "none"),
}

LOSSES = {
    "mean_of_all": lambda x, y: (x * y).mean(),
    "cross_entropy": lambda x, y: cross_entropy(x, y, "mean"),
    "cross_entropy_of_wanted":
        lambda x, w, y: cross_entropy(x @ w.T, y, "none").mean(),
    "mean_square": F.mse_loss,
    "binary_cross_entropy": F.binary_cross_entropy_with_logits,
}


def differentiate(name, arguments):
    inputs = [
        make_input(name, number, shape, element)
        for number, (shape, element, _) in enumerate(arguments)
    ]
    wanted = [x.requires_grad_() for x, a in zip(inputs, arguments) if a[2]]
    if name in LOSSES:
        loss = LOSSES[name](*inputs)
    else:
        loss = (RESULTS[name](*inputs[:-1]) * inputs[-1]).sum()
    gradients = torch.autograd.grad(loss, wanted, allow_unused=True)
    kept = []
    for x, gradient in zip(wanted, gradients):
        flat = (torch.zeros_like(x) if gradient is None else gradient).flatten()
        kept.append(flat[:: STEP if len(flat) > MOST else 1])
    return {
        "loss": float(f"{loss.item():.7g}"),
        "gradients": [[float(f"{v:.7g}") for v in g.tolist()] for g in kept],
    }


def main():
    lines = []
    for name, arguments in read_functions():
        if name.startswith("blocks_"):  # PyTorch has no such weights
            continue
        golden = json.dumps(differentiate(name, arguments), separators=(",", ":"))
        lines.append(f'"{name}":{golden}')
    (FOLDER / "torch.json").write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
