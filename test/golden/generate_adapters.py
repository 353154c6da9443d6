#!/usr/bin/env python3
"""Writes adapters for checkpoints beside this file into adapters/, and what PEFT
computes with them in float64 into adapters/reference.json.

usage: test/golden/generate_adapters.py     (needs torch, transformers 5, peft)

llama-two-targets  of a few modules, in float32
llama-all-linear   of all modules, with ranks and factors of their own, and
                   rank-stabilized, in bfloat16
phi3-fused         of modules that are several matrices elsewhere, in float16
gpt2-transposed    of modules that are stored [in, out]
"""

import json
import pathlib
import shutil

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

FOLDER = pathlib.Path(__file__).parent
ADAPTERS = FOLDER / "adapters"

CASES = {
    "llama-two-targets": (
        "llama3-gqa-scaled",
        torch.float32,
        LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"]),
    ),
    "llama-all-linear": (
        "llama3-gqa-scaled",
        torch.bfloat16,
        LoraConfig(
            r=2,
            lora_alpha=3,
            target_modules="all-linear",
            use_rslora=True,
            rank_pattern={"down_proj": 6},
            alpha_pattern={"layers.1.self_attn.q_proj": 5},
        ),
    ),
    "phi3-fused": (
        "phi3",
        torch.float16,
        LoraConfig(r=3, lora_alpha=3, target_modules=r".*\.(qkv|gate_up|o)_proj"),
    ),
    "gpt2-transposed": (
        "gpt2-layernorm",
        torch.float32,
        LoraConfig(
            r=2, lora_alpha=4, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True
        ),
    ),
}


def open_base(name):
    return AutoModelForCausalLM.from_pretrained(FOLDER / name, dtype=torch.float64)


def write(name):
    base, dtype, config = CASES[name]
    torch.manual_seed(len(name))
    model = get_peft_model(open_base(base), config)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "lora_" in key:
                parameter.normal_(0, 0.2)
    model.save_pretrained(ADAPTERS / name)
    path = ADAPTERS / name / "adapter_model.safetensors"
    tensors = {key: value.to(dtype) for key, value in load_file(path).items()}
    save_file(tensors, path, metadata={"format": "pt"})
    (ADAPTERS / name / "README.md").unlink()
    config_path = ADAPTERS / name / "adapter_config.json"
    fields = json.loads(config_path.read_text())
    fields["base_model_name_or_path"] = base
    if isinstance(fields["target_modules"], list):
        fields["target_modules"].sort()
    config_path.write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n")


def compute(name):
    base = CASES[name][0]
    model = open_base(base)
    model = PeftModel.from_pretrained(
        model, ADAPTERS / name, autocast_adapter_dtype=False
    )
    model.double().eval()
    generator = torch.Generator().manual_seed(2)
    vocabulary = model.config.vocab_size
    ids = torch.randint(3, vocabulary, (1, 29), generator=generator)
    with torch.no_grad():
        logits = model(ids).logits[0]
    return {
        "model": base,
        "ids": ids[0].tolist(),
        "last_logits": [round(x, 6) for x in logits[-1].tolist()],
        "logsumexp": [round(x, 6) for x in logits.logsumexp(-1).tolist()],
    }


def main():
    shutil.rmtree(ADAPTERS, ignore_errors=True)
    reference = {}
    for name in CASES:
        write(name)
        reference[name] = compute(name)
    text = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in reference.items()
    )
    (ADAPTERS / "reference.json").write_text("{" + text + "}\n")


main()
