#!/usr/bin/env python3
"""Writes a small GGUF file.

usage: make_gguf.py OUT [KEY=VALUE ...] [tensor NAME TYPE OFFSET SIZES...]...

A VALUE that is a number is a u32, one with a point an f32, "[a,b]" an array of
strings, everything else a string. TYPE is ggml's number of a type; SIZES has
the innermost first. Backslash escapes in keys, values and names are bytes.
The tensors' data are 4096 zeros.
"""

import struct
import sys


def text(string):
    raw = string.encode().decode("unicode_escape").encode("latin-1")
    return struct.pack("<Q", len(raw)) + raw


def value(string):
    if string.isdigit():
        return struct.pack("<II", 4, int(string))
    try:
        return struct.pack("<If", 6, float(string))
    except ValueError:
        pass
    if string.startswith("["):
        items = string[1:-1].split(",")
        head = struct.pack("<IIQ", 9, 8, len(items))
        return head + b"".join(text(item) for item in items)
    return struct.pack("<I", 8) + text(string)


entries, tensors = [], []
for argument in sys.argv[2:]:
    if argument == "tensor":
        tensors.append([])
    elif tensors:
        tensors[-1].append(argument)
    else:
        entries.append(argument.split("=", 1))

out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries))
for key, string in entries:
    out += text(key) + value(string)
for name, kind, offset, *sizes in tensors:
    out += text(name) + struct.pack("<I", len(sizes))
    out += struct.pack(f"<{len(sizes)}Q", *map(int, sizes))
    out += struct.pack("<IQ", int(kind), int(offset))
out += b"\0" * (-len(out) % 32) + b"\0" * (4096 if tensors else 0)
with open(sys.argv[1], "wb") as file:
    file.write(out)
