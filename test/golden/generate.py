#!/usr/bin/env python3
"""Writes the checkpoints named below, and what Hugging Face's transformers
computes with them into reference.json.

usage: test/golden/generate.py [NAME...]      (needs torch, transformers 5)

llama-own-head   says that the output matrix is the embedding table, and has one
                 that differs
llama-head-alone says the same, and has the output matrix without the table
gpt2-own-head    the first for GPT-2, whose configuration uses the names of other
                 architectures too, one of them against its own
qwen2-wide-head  heads that do not make up the hidden size, and RoPE scaled as
                 Llama 3's
qwen3-bias       biases of the attention
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    LlamaConfig,
    Qwen2Config,
    Qwen3Config,
)

FOLDER = pathlib.Path(__file__).parent


def make(name, config):
    """A model of random weights."""
    torch.manual_seed(len(name))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if parameter.dim() > 1 or key.endswith("proj.bias"):
                parameter.normal_(0, 0.3)
    model.save_pretrained(FOLDER / name)


def add_head(name, embedding, keep_embedding=True):
    """Gives a model an output matrix of its own."""
    path = FOLDER / name / "model.safetensors"
    weights = load_file(path)
    weights["lm_head.weight"] = torch.randn(weights[embedding].shape) * 0.3
    if not keep_embedding:
        del weights[embedding]
    save_file(weights, path, metadata={"format": "pt"})


def compute(name):
    """The entry of reference.json."""
    model = AutoModelForCausalLM.from_pretrained(FOLDER / name, dtype=torch.float32)
    model.eval()
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, model.config.vocab_size, (1, 29), generator=generator)
    with torch.no_grad():
        logits = model(ids).logits[0].double()
        greedy = ids
        for _ in range(20):
            last = model(greedy).logits[0, -1]
            greedy = torch.cat([greedy, last.argmax().view(1, 1)], dim=1)
    return {
        "ids": ids[0].tolist(),
        "last_logits": [round(x, 6) for x in logits[-1].tolist()],
        "argmax": logits.argmax(-1).tolist(),
        "logsumexp": [round(x, 6) for x in logits.logsumexp(-1).tolist()],
        "greedy_20": greedy[0, 29:].tolist(),
    }


def use_other_names(name):
    """Renames sizes as other architectures have them; n_layer stays, and lies."""
    path = FOLDER / name / "config.json"
    fields = json.loads(path.read_text())
    for own, other in [
        ("n_embd", "hidden_size"),
        ("n_head", "num_attention_heads"),
        ("n_positions", "max_position_embeddings"),
    ]:
        fields[other] = fields.pop(own)
    fields["num_hidden_layers"] = fields["n_layer"]
    fields["n_layer"] += 1
    path.write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n")


SIZES = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA3_SCALING = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


def make_llama_own_head(name, keep_table=True):
    make(name, LlamaConfig(**SIZES, tie_word_embeddings=True))
    add_head(name, "model.embed_tokens.weight", keep_table)


def make_gpt2_own_head(name):
    config = GPT2Config(
        vocab_size=97,
        n_embd=32,
        n_layer=2,
        n_head=2,
        n_positions=128,
        bos_token_id=1,
        eos_token_id=2,
    )
    make(name, config)
    add_head(name, "transformer.wte.weight")
    use_other_names(name)


MODELS = {
    "llama-own-head": make_llama_own_head,
    "llama-head-alone": lambda name: make_llama_own_head(name, keep_table=False),
    "gpt2-own-head": make_gpt2_own_head,
    "qwen2-wide-head": lambda name: make(
        name, Qwen2Config(**SIZES, head_dim=24, rope_parameters=LLAMA3_SCALING)
    ),
    "qwen3-bias": lambda name: make(
        name, Qwen3Config(**SIZES, head_dim=24, attention_bias=True)
    ),
}


def main():
    path = FOLDER / "reference.json"
    reference = json.loads(path.read_text())
    for name in sys.argv[1:] or MODELS:
        MODELS[name](name)
        (FOLDER / name / "model.safetensors").chmod(0o644)
        reference[name] = compute(name)
    path.write_text(json.dumps(reference))


if __name__ == "__main__":
    main()
