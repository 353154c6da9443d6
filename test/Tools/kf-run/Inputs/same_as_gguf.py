#!/usr/bin/env python3
"""Fails unless a model has the same logits in a folder and, exactly enough, in
GGUF files that kf-run quantize makes of it.

usage: same_as_gguf.py FOLDER OUT.gguf [OPTION]... [-- FOLDER-OPTION...]

Files of the types that hold the folder's weights as they are have the same
logits, but for sums in another order; q8_0's may differ by its rounding, which
may choose other experts, or go on in states, and so may mxfp4's where the
folder's experts are blocks of it: the rest is q8_0. The OPTIONs go to kf-run
logits; those behind -- only where it reads the folder.
"""

import json
import struct
import subprocess
import sys

IDS = "5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20"


def run(*arguments):
    done = subprocess.run(("kf-run", *arguments), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"kf-run {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def logits(model, options):
    text = run("logits", model, "--ids", IDS, "--cache-type", "f32", "--json",
               "-", *options)
    return json.loads(text)["last_logits"]


def stores_floats(folder):
    """Whether the folder's first tensor is of f32."""
    with open(f"{folder}/model.safetensors", "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    return next(iter(header.values()))["dtype"] == "F32"


def is_sensitive(folder):
    """Whether rounding may choose other experts, or goes on in states."""
    with open(f"{folder}/config.json") as file:
        config = json.load(file)
    return "num_experts_per_tok" in config or "linear_key_head_dim" in config


def has_mxfp4(folder):
    with open(f"{folder}/config.json") as file:
        method = json.load(file).get("quantization_config", {})
    return method.get("quant_method") == "mxfp4"


folder, out, *options = sys.argv[1:]
own = []
if "--" in options:
    at = options.index("--")
    options, own = options[:at], options[at + 1:]
expected = logits(folder, options + own)
limits = {"f32": 1e-4, "q8_0": 1.0 if is_sensitive(folder) else 0.5}
if not stores_floats(folder):
    limits["bf16"] = 1e-4
if has_mxfp4(folder):
    # A row of theirs finds two experts nearly as likely.
    limits["mxfp4"] = limits["q8_0"] = 2.0
for kind, limit in limits.items():
    run("quantize", folder, out, "--type", kind, "--force")
    found = logits(out, options + (own if kind == "bf16" else []))
    worst = max(abs(a - b) for a, b in zip(expected, found, strict=True))
    if not worst <= limit:
        sys.exit(f"{folder} as {kind}: logits differ by {worst}")
