#!/usr/bin/env python3
"""Splits a GGUF file as llama-gguf-split does.

usage: split_gguf.py IN.gguf PREFIX TENSORS

Writes PREFIX-00001-of-0000N.gguf and so on, each with TENSORS tensors at most.
The first has IN's metadata, and all have what says which part they are.
"""

import struct
import sys

import gguf_file

metadata, entry_count, tensors = gguf_file.read(sys.argv[1])
prefix, most = sys.argv[2], int(sys.argv[3])
groups = [tensors[i:i + most] for i in range(0, len(tensors), most)]
for number, group in enumerate(groups):
    entries = b"" if number else metadata
    for key, kind, code, value in (("no", 2, "H", number),
                                   ("count", 2, "H", len(groups)),
                                   ("tensors.count", 5, "i", len(tensors))):
        entries += gguf_file.text(b"split." + key.encode())
        entries += struct.pack("<I" + code, kind, value)
    path = f"{prefix}-{number + 1:05}-of-{len(groups):05}.gguf"
    gguf_file.write(path, entries, 3 + (0 if number else entry_count), group)
