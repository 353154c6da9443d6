#!/usr/bin/env python3
"""Writes the checkpoints whose output matrix is not where config.json says, and
what Hugging Face's transformers computes with them into reference.json.

usage: test/golden/generate_heads.py      (needs torch, transformers 5)

llama-own-head   says that the output matrix is the embedding table, and has one
                 that differs
llama-head-alone says the same, and has the output matrix without the table
gpt2-own-head    the first for GPT-2, whose configuration uses the names of other
                 architectures too, one of them against its own
"""

import json
import pathlib

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig

FOLDER = pathlib.Path(__file__).parent


def make(name, config, embedding, keep_embedding=True, edit_config=None):
    """A model of random weights with an output matrix of its own."""
    folder = FOLDER / name
    torch.manual_seed(len(name))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.3)
    model.save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"] = torch.randn(weights[embedding].shape) * 0.3
    if not keep_embedding:
        del weights[embedding]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    if edit_config:
        path = folder / "config.json"
        fields = json.loads(path.read_text())
        edit_config(fields)
        path.write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n")


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


def use_other_names(fields):
    """Renames sizes as other architectures have them; n_layer stays, and lies."""
    for own, other in [
        ("n_embd", "hidden_size"),
        ("n_head", "num_attention_heads"),
        ("n_positions", "max_position_embeddings"),
    ]:
        fields[other] = fields.pop(own)
    fields["num_hidden_layers"] = fields["n_layer"]
    fields["n_layer"] += 1


def main():
    llama = LlamaConfig(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
    )
    gpt2 = GPT2Config(
        vocab_size=97,
        n_embd=32,
        n_layer=2,
        n_head=2,
        n_positions=128,
        bos_token_id=1,
        eos_token_id=2,
    )
    table = "model.embed_tokens.weight"
    make("llama-own-head", llama, table)
    make("llama-head-alone", llama, table, keep_embedding=False)
    make("gpt2-own-head", gpt2, "transformer.wte.weight", edit_config=use_other_names)
    path = FOLDER / "reference.json"
    reference = json.loads(path.read_text())
    for name in ["llama-own-head", "llama-head-alone", "gpt2-own-head"]:
        reference[name] = compute(name)
    path.write_text(json.dumps(reference))


if __name__ == "__main__":
    main()
