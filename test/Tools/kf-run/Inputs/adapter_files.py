"""Adapters of the embedded model, in PEFT's format."""
import json
import math
import os
import struct


def write_adapter(folder, value):
    """An adapter of kf-stories' last down_proj: rank 1, all numbers alike."""
    os.makedirs(folder)
    name = "base_model.model.model.layers.7.mlp.down_proj.lora_%s.weight"
    shapes = {name % "A": [1, 704], name % "B": [256, 1]}
    header, data = {}, b""
    for tensor, shape in shapes.items():
        begin = len(data)
        data += struct.pack("<f", value) * math.prod(shape)
        header[tensor] = {"dtype": "F32", "shape": shape,
                          "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with open(f"{folder}/adapter_model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    with open(f"{folder}/adapter_config.json", "w") as file:
        json.dump({"peft_type": "LORA", "r": 1, "lora_alpha": 1,
                   "target_modules": ["layers.7.mlp.down_proj"]}, file)
