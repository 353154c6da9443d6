#!/usr/bin/env python3
"""Writes llama-float8, which is llama2-mha with the matrices of its layers in 8
bits, and what float64 arithmetic on the values that these stand for gives into
reference.json.

usage: test/golden/generate_float8.py      (needs numpy and ml_dtypes)

Most matrices have a scale for each row, as [N, 1] or [N]; some have one for the
whole.
"""

import json
import pathlib
import shutil

import ml_dtypes
import numpy as np

FOLDER = pathlib.Path(__file__).parent
BASE, NAME = FOLDER / "llama2-mha", FOLDER / "llama-float8"
LARGEST = 448


def read(path):
    """The f32 tensors of a safetensors file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32"
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[8 + size + begin : 8 + size + end], np.float32)
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def write(path, tensors):
    head, blob = {}, b""
    for name, values in tensors.items():
        kind = "F8_E4M3" if values.dtype == ml_dtypes.float8_e4m3fn else "F32"
        raw = values.tobytes()
        head[name] = {
            "dtype": kind,
            "shape": list(values.shape),
            "data_offsets": [len(blob), len(blob) + len(raw)],
        }
        blob += raw
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + blob)


def quantize(tensors):
    """The tensors of the checkpoint, and the values that they stand for."""
    stored, values = {}, {}
    for number, (name, tensor) in enumerate(sorted(tensors.items())):
        stored[name] = values[name] = tensor
        if "_proj.weight" not in name:
            continue
        whole = name.endswith("k_proj.weight")
        scale = np.abs(tensor).max(axis=None if whole else 1) / np.float32(LARGEST)
        scale = np.asarray(scale, np.float32).reshape(-1, 1)
        codes = np.clip(tensor / scale, -LARGEST, LARGEST)
        codes = codes.astype(ml_dtypes.float8_e4m3fn)
        stored[name] = codes
        shapes = [scale.reshape(()), scale] if whole else [scale, scale.reshape(-1)]
        stored[name + "_scale"] = shapes[number % 2]
        values[name] = codes.astype(np.float64) * scale.astype(np.float64)
    return stored, {name: v.astype(np.float64) for name, v in values.items()}


def norm(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def rotate(x, theta):
    """RoPE of [T, heads, D]: element i goes with i + D / 2."""
    half = x.shape[-1] // 2
    frequencies = theta ** (-np.arange(half) / half)
    angles = np.arange(x.shape[0])[:, None, None] * frequencies
    low, high = x[..., :half], x[..., half:]
    return np.concatenate(
        [
            low * np.cos(angles) - high * np.sin(angles),
            high * np.cos(angles) + low * np.sin(angles),
        ],
        -1,
    )


def logits_of(config, w, ids):
    eps, theta = config["rms_norm_eps"], config["rope_parameters"]["rope_theta"]
    heads, dim = config["num_attention_heads"], config["head_dim"]
    x = w["model.embed_tokens.weight"][ids]
    hidden = np.triu(np.ones((len(ids), len(ids)), bool), 1)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        y = norm(x, w[at + "input_layernorm.weight"], eps)
        q, k, v = (
            (y @ w[at + f"self_attn.{part}_proj.weight"].T).reshape(-1, heads, dim)
            for part in "qkv"
        )
        scores = np.einsum("qhd,khd->hqk", rotate(q, theta), rotate(k, theta))
        scores = np.where(hidden, -np.inf, scores / np.sqrt(dim))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        y = np.einsum("hqk,khd->qhd", weights, v).reshape(len(ids), -1)
        x = x + y @ w[at + "self_attn.o_proj.weight"].T
        y = norm(x, w[at + "post_attention_layernorm.weight"], eps)
        gate = y @ w[at + "mlp.gate_proj.weight"].T
        up = y @ w[at + "mlp.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[at + "mlp.down_proj.weight"].T
    return norm(x, w["model.norm.weight"], eps) @ w["lm_head.weight"].T


def compute(config, w, ids):
    logits = logits_of(config, w, ids)
    largest = logits.max(-1)
    sums = np.log(np.exp(logits - largest[:, None]).sum(-1)) + largest
    greedy = list(ids)
    for _ in range(20):
        greedy.append(int(logits_of(config, w, greedy)[-1].argmax()))
    return {
        "ids": ids,
        "last_logits": [round(x, 6) for x in logits[-1].tolist()],
        "argmax": logits.argmax(-1).tolist(),
        "logsumexp": [round(x, 6) for x in sums.tolist()],
        "greedy_20": greedy[len(ids) :],
    }


def main():
    NAME.mkdir(exist_ok=True)
    path = FOLDER / "reference.json"
    reference = json.loads(path.read_text())
    config = json.loads((BASE / "config.json").read_text())
    tensors = read(BASE / "model.safetensors")
    base = reference["llama2-mha"]
    same = compute(config, {k: v.astype(np.float64) for k, v in tensors.items()}, base["ids"])
    assert np.allclose(same["last_logits"], base["last_logits"], atol=2e-4)
    stored, values = quantize(tensors)
    write(NAME / "model.safetensors", stored)
    config["quantization_config"] = {"quant_method": "fbgemm_fp8"}
    (NAME / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    shutil.copyfile(BASE / "generation_config.json", NAME / "generation_config.json")
    reference[NAME.name] = compute(config, values, base["ids"])
    path.write_text(json.dumps(reference))


if __name__ == "__main__":
    main()
