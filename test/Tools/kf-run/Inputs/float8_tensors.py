"""Replaces tensors of a model by ones of F8_E4M3 that are 1 everywhere.

usage: float8_tensors.py MODEL OUT PART

MODEL and OUT are folders; PART is a part of the tensors' names.
"""

import json
import os
import shutil
import struct
import sys

source, target, part = sys.argv[1:]
os.makedirs(target, exist_ok=True)
shutil.copy(os.path.join(source, "config.json"), target)
with open(os.path.join(source, "model.safetensors"), "rb") as file:
    data = file.read()
(length,) = struct.unpack_from("<Q", data)
header = json.loads(data[8 : 8 + length])
header.pop("__metadata__", None)
body = b""
for name, tensor in header.items():
    begin, end = (8 + length + at for at in tensor["data_offsets"])
    values = data[begin:end]
    if part in name:
        rows, columns = tensor["shape"]
        tensor["dtype"] = "F8_E4M3"
        values = b"\x38" * (rows * columns)
    tensor["data_offsets"] = [len(body), len(body) + len(values)]
    body += values
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(os.path.join(target, "model.safetensors"), "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + body)
