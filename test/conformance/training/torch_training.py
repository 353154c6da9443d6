#!/usr/bin/env python3
"""Writes torch.json: losses, gradients and updates of kf-stories, by PyTorch.

Run it where PyTorch and safetensors are installed:

    python3 test/conformance/training/torch_training.py

All is computed in float64 of the stored weights, by the model as it is written
here. Batches and adapters are what TrainingTest.cpp makes of the same formulas.
"""

import json
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

FOLDER = pathlib.Path(__file__).parent
MODEL = FOLDER.parents[2] / "models/kf-stories"
ROWS, LENGTH, RANK, ALPHA = 2, 24, 4, 8
# Lengths of the examples of each row; the rest of it is left over.
EXAMPLES = [[9, 11], [24]]
NO_LABEL = -100
# Of a tensor, every so many elements are kept.
KEPT = 12
UPDATES, RATE = 3, 1e-3


def mixed(argument, i):
    state = (i * 2654435761 + argument * 974711 + 12345) % 2**32
    state ^= state >> 15
    state = state * 2246822519 % 2**32
    return state ^ (state >> 13)


def make_batch(config, number):
    ids = torch.zeros(ROWS, LENGTH, dtype=torch.long)
    positions = torch.zeros_like(ids)
    examples = torch.full_like(ids, -1)
    labels = torch.full_like(ids, NO_LABEL)
    for row, lengths in enumerate(EXAMPLES):
        begin = 0
        for example, length in enumerate(lengths):
            for i in range(length):
                at = begin + i
                token = row * LENGTH + at
                ids[row, at] = mixed(number, token) % config["vocab_size"]
                positions[row, at] = i
                examples[row, at] = example
                # The first tokens are a prompt.
                if i >= 2 and i + 1 < length:
                    labels[row, at] = mixed(number, token + 1) % config["vocab_size"]
            begin += length
    return ids, positions, examples, labels


def make_matrix(argument, shape):
    count = shape[0] * shape[1]
    values = [(mixed(argument, i) % 48 + 0.5) / 24 - 1 for i in range(count)]
    return (torch.tensor(values, dtype=torch.float64) / 16).reshape(shape)


def rms_norm(x, weight, eps):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def rotate(x, positions, theta):
    half = x.shape[-1] // 2
    powers = torch.arange(half, dtype=torch.float64) / half
    angles = positions[:, None, :, None] * theta**-powers
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def loss_of(config, weights, adapters, batch):
    ids, positions, examples, labels = batch
    eps = config["rms_norm_eps"]
    dim, heads = config["head_dim"], config["num_attention_heads"]
    groups = config["num_key_value_heads"]
    theta = config["rope_parameters"]["rope_theta"]
    places = torch.arange(LENGTH)
    seen = (examples[:, :, None] == examples[:, None, :]) & (
        places[:, None] >= places[None, :]
    )

    def linear(x, name):
        y = x @ weights[name + ".weight"].T
        if name in adapters:
            a, b = adapters[name]
            y = y + ALPHA / RANK * (x @ a.T @ b.T)
        return y

    def per_head(x, count):
        return x.reshape(ROWS, LENGTH, count, dim).transpose(1, 2)

    x = weights["model.embed_tokens.weight"][ids]
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        h = rms_norm(x, weights[at + "input_layernorm.weight"], eps)
        q = rotate(per_head(linear(h, at + "self_attn.q_proj"), heads), positions, theta)
        k = rotate(per_head(linear(h, at + "self_attn.k_proj"), groups), positions, theta)
        v = per_head(linear(h, at + "self_attn.v_proj"), groups)
        k = k.repeat_interleave(heads // groups, 1)
        v = v.repeat_interleave(heads // groups, 1)
        scores = q @ k.transpose(2, 3) / dim**0.5
        scores = scores.masked_fill(~seen[:, None], float("-inf"))
        row = (scores.softmax(-1) @ v).transpose(1, 2).reshape(ROWS, LENGTH, -1)
        x = x + linear(row, at + "self_attn.o_proj")
        h = rms_norm(x, weights[at + "post_attention_layernorm.weight"], eps)
        gate = F.silu(linear(h, at + "mlp.gate_proj"))
        x = x + linear(gate * linear(h, at + "mlp.up_proj"), at + "mlp.down_proj")
    x = rms_norm(x, weights["model.norm.weight"], eps)
    logits = x @ weights["model.embed_tokens.weight"].T
    return F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), reduction="sum", ignore_index=NO_LABEL
    )


def kept(tensor):
    flat = tensor.detach().flatten()
    return [float(x) for x in flat[:: len(flat) // KEPT + 1]]


def train(config, weights, adapters, trained, decays):
    """Losses and norms of updates by one batch each, and what is left."""
    first = loss_of(config, weights, adapters, make_batch(config, 0))
    first.backward()
    result = {
        "loss": float(first.detach()),
        "gradients": {name: kept(value.grad) for name, value in trained.items()},
    }
    for value in trained.values():
        value.grad = None
    optimizer = torch.optim.AdamW(
        [
            {"params": [v for n, v in trained.items() if decays(n)], "weight_decay": 0.1},
            {"params": [v for n, v in trained.items() if not decays(n)], "weight_decay": 0},
        ],
        lr=RATE,
        betas=(0.9, 0.95),
        eps=1e-8,
    )
    result["losses"], result["norms"] = [], []
    for update in range(UPDATES):
        batch = make_batch(config, update)
        labels = int((batch[3] != NO_LABEL).sum())
        loss = loss_of(config, weights, adapters, batch) / labels
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(list(trained.values()), 1.0)
        optimizer.step()
        result["losses"].append(float(loss.detach()) * labels)
        result["norms"].append(float(norm))
    result["values"] = {name: kept(value) for name, value in trained.items()}
    return result


def main():
    config = json.loads((MODEL / "config.json").read_text())

    def load():
        stored = load_file(MODEL / "model.safetensors")
        return {name: tensor.double() for name, tensor in stored.items()}

    weights = load()
    for tensor in weights.values():
        tensor.requires_grad_()
    full = train(config, weights, {}, weights, lambda name: "norm" not in name)

    weights, adapters, trained = load(), {}, {}
    number = 0
    for layer in range(config["num_hidden_layers"]):
        for part in ["self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj"]:
            name = f"model.layers.{layer}.{part}"
            out, width = weights[name + ".weight"].shape
            a = make_matrix(number, (RANK, width)).requires_grad_()
            b = make_matrix(number + 1, (out, RANK)).requires_grad_()
            number += 2
            adapters[name] = (a, b)
            trained[f"base_model.model.{name}.lora_A.weight"] = a
            trained[f"base_model.model.{name}.lora_B.weight"] = b
    lora = train(config, weights, adapters, trained, lambda name: True)
    text = json.dumps({"full": full, "lora": lora}, indent=1)
    (FOLDER / "torch.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
