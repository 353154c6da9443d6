"""Writes the folder OUT with the model of FOLDER as ModelOpt would have it.

usage: modelopt_folder.py FOLDER OUT FIELDS

FIELDS are JSON's of `quantization_config`, or, where they have `producer`, of
the object `quantization` of hf_quant_config.json, which older ones have instead.
Keys and values get the scales of a cache; where FIELDS have quant_algo NVFP4, matrices of layers whose rows end
with a block of 16 become codes that are made up.
"""

import json
import math
import pathlib
import struct
import sys

source, target = (pathlib.Path(name) for name in sys.argv[1:3])
fields = json.loads(sys.argv[3])
target.mkdir(parents=True, exist_ok=True)
config = json.loads((source / "config.json").read_text())
if "producer" in fields:
    (target / "hf_quant_config.json").write_text(json.dumps(
        {"producer": fields.pop("producer"), "quantization": fields}))
else:
    config["quantization_config"] = fields
(target / "config.json").write_text(json.dumps(config))

data = (source / "model.safetensors").read_bytes()
(length,) = struct.unpack_from("<Q", data)
header, body = {}, b""


def add(name, dtype, shape, values):
    global body
    header[name] = {"dtype": dtype, "shape": shape,
                    "data_offsets": [len(body), len(body) + len(values)]}
    body += values


for name, tensor in json.loads(data[8:8 + length]).items():
    if name == "__metadata__":
        continue
    begin, end = (8 + length + at for at in tensor["data_offsets"])
    dtype, shape = tensor["dtype"], tensor["shape"]
    is_matrix = name.endswith("_proj.weight")
    if fields.get("quant_algo") == "NVFP4" and is_matrix and shape[1] % 16 == 0:
        count = math.prod(shape)
        codes = bytes((i * 37 + i // 24) % 256 for i in range(count // 2))
        add(name, "U8", [shape[0], shape[1] // 2], codes)
        add(name + "_scale", "F8_E4M3", [shape[0], shape[1] // 16],
            b"\x38" * (count // 16))
        add(name + "_scale_2", "F32", [], struct.pack("<f", 0.03125))
    else:
        add(name, dtype, shape, data[begin:end])
    module = name.removesuffix("weight")
    if header[name]["dtype"] in ("U8", "F8_E4M3"):
        add(module + "input_scale", "F32", [], struct.pack("<f", 3))
    for kind in "kv":
        if name.endswith(kind + "_proj.weight"):
            add(module + kind + "_scale", "F32", [], struct.pack("<f", 0.5))
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
(target / "model.safetensors").write_bytes(
    struct.pack("<Q", len(text)) + text + body)
