"""Multiplies tensors of a model by powers of two, which changes nothing but
exponents.

usage: scale_tensors.py MODEL OUT NAME=POWER...

MODEL and OUT are folders; NAME is a part of the tensors' names. Tensors are f32
or bf16.
"""

import json
import os
import shutil
import struct
import sys

source, target = sys.argv[1:3]
powers = [argument.split("=") for argument in sys.argv[3:]]
os.makedirs(target, exist_ok=True)
for name in os.listdir(source):
    if name.endswith(".json") or name.endswith(".jinja"):
        shutil.copy(os.path.join(source, name), target)
with open(os.path.join(source, "model.safetensors"), "rb") as file:
    data = bytearray(file.read())
(length,) = struct.unpack_from("<Q", data)
for name, tensor in json.loads(data[8 : 8 + length]).items():
    for part, power in powers:
        if name == "__metadata__" or part not in name:
            continue
        begin, end = (8 + length + at for at in tensor["data_offsets"])
        form, shift = {"F32": ("I", 23), "BF16": ("H", 7)}[tensor["dtype"]]
        size = struct.calcsize(form)
        numbers = list(struct.unpack(f"<{(end - begin) // size}{form}", data[begin:end]))
        for i, bits in enumerate(numbers):
            if bits >> shift & 0xFF:
                numbers[i] = bits + (int(power) << shift)
        data[begin:end] = struct.pack(f"<{len(numbers)}{form}", *numbers)
with open(os.path.join(target, "model.safetensors"), "wb") as file:
    file.write(data)
