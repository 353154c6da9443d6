"""Writes the folder OUT with the model of FOLDER, whose layers come twice.

usage: double_layers.py FOLDER OUT
"""

import json
import pathlib
import re
import struct
import sys

source, target = (pathlib.Path(name) for name in sys.argv[1:])
target.mkdir(parents=True, exist_ok=True)

config = json.loads((source / "config.json").read_text())
sizes = config.get("text_config", config)
layers = sizes["num_hidden_layers"]
sizes["num_hidden_layers"] = 2 * layers
if "layer_types" in sizes:
    sizes["layer_types"] *= 2
(target / "config.json").write_text(json.dumps(config))

data = (source / "model.safetensors").read_bytes()
(length,) = struct.unpack_from("<Q", data)
head = json.loads(data[8 : 8 + length])
head.pop("__metadata__", None)
doubled, body = {}, b""
for name, tensor in head.items():
    first, end = tensor["data_offsets"]
    names = [name]
    if found := re.search(r"layers\.(\d+)\.", name):
        names.append(name.replace(found[0], f"layers.{int(found[1]) + layers}."))
    for each in names:
        offsets = [len(body), len(body) + end - first]
        doubled[each] = tensor | {"data_offsets": offsets}
        body += data[8 + length + first : 8 + length + end]
text = json.dumps(doubled).encode()
(target / "model.safetensors").write_bytes(
    struct.pack("<Q", len(text)) + text + body
)
