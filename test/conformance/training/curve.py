#!/usr/bin/env python3
"""Trains a model here and by PyTorch, and compares losses step by step.

Run it where PyTorch, transformers, peft and safetensors are installed, by hand:

    python3 test/conformance/training/curve.py build/release/bin/kf_training_curve

Both begin with the same file of weights, and read the same batches of
kf-stories' own text. Without --model that is kf-stories with random weights.
--lora R trains adapters of all products; --shape tinyllama has a model of that
size, random and of --layers layers, in place of kf-stories.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

ROOT = pathlib.Path(__file__).parents[3]
STORIES = ROOT / "models/kf-stories"
NO_LABEL = -100


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="kf_training_curve")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--lora", type=int, default=0)
    parser.add_argument("--type", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--shape", default="stories", choices=["stories", "tinyllama"])
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    return parser.parse_args()


def make_model(options):
    torch.manual_seed(0)
    if options.shape == "stories":
        config = LlamaConfig.from_pretrained(STORIES)
    else:
        config = LlamaConfig(
            hidden_size=2048, intermediate_size=5632, vocab_size=32000,
            num_hidden_layers=options.layers, num_attention_heads=32,
            num_key_value_heads=4, max_position_embeddings=2048,
            rms_norm_eps=1e-5, tie_word_embeddings=False)
    config.dtype = torch.float32
    return LlamaForCausalLM(config).to(torch.float32)


def make_batches(options):
    """Each row is one example of the text, cut where the row ends."""
    tokenizer = AutoTokenizer.from_pretrained(STORIES)
    text = json.dumps(json.loads((STORIES / "heldout.json").read_text()))
    ids = torch.tensor(tokenizer(text)["input_ids"], dtype=torch.int32)
    count = options.steps * options.rows * (options.length + 1)
    ids = ids.repeat(count // len(ids) + 1)[:count]
    rows = ids.reshape(options.steps, options.rows, options.length + 1)
    shape = (options.steps, options.rows, options.length)
    places = torch.arange(options.length, dtype=torch.int32).expand(shape)
    return {
        "ids": rows[..., :-1].contiguous(),
        "labels": rows[..., 1:].contiguous(),
        "positions": places.contiguous(),
        "examples": torch.zeros(shape, dtype=torch.int32),
    }


def add_adapters(model, folder):
    """Adapters as this project has written them."""
    from peft import PeftModel

    return PeftModel.from_pretrained(model, folder, is_trainable=True)


def train(options, model, batches):
    model.train()
    trained = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    groups = [
        {"params": [p for n, p in trained if p.dim() > 1], "weight_decay": 0.01},
        {"params": [p for n, p in trained if p.dim() == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=options.rate)
    run = torch.compile(model) if options.compile else model
    losses, seconds = [], []
    for step in range(options.steps):
        begin = time.perf_counter()
        ids = batches["ids"][step].long()
        with torch.autocast("cpu", torch.bfloat16, options.type == "bf16"):
            logits = run(input_ids=ids).logits
        loss = torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), batches["labels"][step].long().flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([p for _, p in trained], 1.0)
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    return losses, seconds


def middle(values):
    return sorted(values)[len(values) // 2]


def main():
    options = parse()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model = make_model(options)
        if options.lora and options.type == "bf16":
            model = model.to(torch.bfloat16)
        model.save_pretrained(folder)
        batches = make_batches(options)
        sizes = torch.tensor([options.steps, options.rows, options.length],
                             dtype=torch.int32)
        columns = [batches[name].flatten()
                   for name in ["ids", "positions", "examples", "labels"]]
        path = folder / "batches"
        path.write_bytes(torch.cat([sizes, *columns]).numpy().tobytes())
        found = subprocess.run(
            [options.program, str(folder), str(path),
             str(options.rate), options.type, str(options.lora), str(folder / "first")],
            stdout=subprocess.PIPE, text=True, check=True)
        lines = [line.split() for line in found.stdout.splitlines()]
        ours = [float(line[0]) for line in lines]
        our_seconds = [float(line[2]) for line in lines]
        if options.lora:
            model = add_adapters(model, folder / "first")
        theirs, their_seconds = train(options, model, batches)
    apart = [abs(a - b) for a, b in zip(ours, theirs)]
    for step in range(0, options.steps, max(1, options.steps // 10)):
        print(f"step {step:4}  ours {ours[step]:.6f}  PyTorch {theirs[step]:.6f}"
              f"  apart {apart[step]:.2e}")
    print(f"last       ours {ours[-1]:.6f}  PyTorch {theirs[-1]:.6f}")
    print(f"furthest apart: {max(apart):.3e} at step {apart.index(max(apart))}")
    tokens = options.rows * options.length
    print(f"tokens/s: ours {tokens / middle(our_seconds):.0f}, "
          f"PyTorch {tokens / middle(their_seconds):.0f}")


if __name__ == "__main__":
    main()
