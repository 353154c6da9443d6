"""Writes the folder OUT with the model of FOLDER, twice as wide between layers:
tensors' bytes come twice for each size that is doubled.

usage: double_hidden.py FOLDER OUT

Heads are as many, and twice as large.
"""

import json
import math
import pathlib
import struct
import sys

source, target = (pathlib.Path(name) for name in sys.argv[1:])
target.mkdir(parents=True, exist_ok=True)

config = json.loads((source / "config.json").read_text())
hidden = config["hidden_size"]
keys = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
config["hidden_size"] = 2 * hidden
(target / "config.json").write_text(json.dumps(config))

data = (source / "model.safetensors").read_bytes()
(length,) = struct.unpack_from("<Q", data)
header, body = json.loads(data[8:8 + length]), b""
header.pop("__metadata__", None)
for tensor in header.values():
    begin, end = (8 + length + at for at in tensor["data_offsets"])
    shape = [2 * size if size in (hidden, keys) else size
             for size in tensor["shape"]]
    times = math.prod(shape) // math.prod(tensor["shape"])
    tensor["shape"] = shape
    tensor["data_offsets"] = [len(body), len(body) + times * (end - begin)]
    body += times * data[begin:end]
text = json.dumps(header).encode()
(target / "model.safetensors").write_bytes(
    struct.pack("<Q", len(text)) + text + body)
