#!/usr/bin/env python3
"""Makes matrices of a GGUF file NVFP4, and bf16 of the same values.

usage: nvfp4_gguf.py IN.gguf NVFP4.gguf BF16.gguf [FACTOR]

Layers' matrices, but routers, whose rows end with a block become codes that are
made up, with a factor for each matrix in NAME.scale: FACTOR (0.01) and, of
experts, its multiples. Other tensors stay as they are.
"""

import struct
import sys

import gguf_file

F32, BF16, NVFP4 = 0, 30, 40
NUMBERS = [0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6]
SCALES = {0x38: 1, 0x30: 0.5, 0x3c: 1.5, 0x01: 2**-9, 0x29: 0.28125}


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def bfloat(value):
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16


def make(count, factors):
    """Blocks of `count` elements, and the elements in bf16."""
    blocks, values, state = b"", [], 1
    for block in range(count // 64):
        factor = factors[block * len(factors) // (count // 64)]
        scales, codes = b"", b""
        for _ in range(4):
            state = (state * 1103515245 + 12345) % 2**31
            group = [(state >> 8) + i * 7 >> 2 & 15 for i in range(16)]
            code = list(SCALES)[(state >> 16) % len(SCALES)]
            scale = single(SCALES[code] * factor)
            scales += bytes([code])
            codes += bytes(group[i] | group[i + 8] << 4 for i in range(8))
            values += [bfloat(NUMBERS[code] * scale) for code in group]
        blocks += scales + codes
    return blocks, struct.pack(f"<{len(values)}H", *values)


metadata, entry_count, tensors = gguf_file.read(sys.argv[1])
factor = float(sys.argv[4]) if len(sys.argv) > 4 else 0.01
blocks, plain = [], []
for tensor in tensors:
    name, sizes = tensor.name, tensor.sizes
    if (len(sizes) < 2 or sizes[0] % 64 or not name.startswith(b"blk.")
            or b"gate_inp" in name):
        blocks.append(tensor)
        plain.append(tensor)
        continue
    count = 1
    for size in sizes:
        count *= size
    factors = [single(factor * (i + 1))
               for i in range(sizes[2] if len(sizes) == 3 else 1)]
    codes, values = make(count, factors)
    blocks.append(gguf_file.Tensor(name, sizes, NVFP4, codes))
    blocks.append(gguf_file.Tensor(
        name.removesuffix(b"weight") + b"scale", [len(factors)], F32,
        struct.pack(f"<{len(factors)}f", *factors)))
    plain.append(gguf_file.Tensor(name, sizes, BF16, values))
gguf_file.write(sys.argv[2], metadata, entry_count, blocks)
gguf_file.write(sys.argv[3], metadata, entry_count, plain)
