#!/usr/bin/env python3
"""Blocks of every format with the values that the gguf package gives them, and
values with the blocks that it rounds them to. See README.md."""

import os

import gguf
import numpy as np
from gguf.quants import dequantize, quantize

Type = gguf.GGMLQuantizationType
FORMATS = [Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q2_K,
           Type.Q3_K, Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.IQ4_NL]
# Where each format has its half-precision numbers.
HALVES = {Type.Q8_0: [0], Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0],
          Type.Q5_1: [0, 2], Type.Q2_K: [80, 82], Type.Q3_K: [108],
          Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208],
          Type.IQ4_NL: [0]}
# Formats whose rounding ggml defines, and the package has.
ROUNDED = [Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1]

random = np.random.default_rng(20)
folder = os.path.dirname(os.path.abspath(__file__))


def save(name, array):
    np.save(os.path.join(folder, name + ".npy"), array)


for kind in FORMATS:
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    count = 512 // elements
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    for at in HALVES[kind]:
        scale = random.normal(0, 0.1, (count, 1)).astype(np.float16)
        blocks[:, at:at + 2] = scale.view(np.uint8)
    save(kind.name.lower() + ".blocks", blocks)
    save(kind.name.lower() + ".values",
         dequantize(blocks, kind).astype(np.float32).reshape(-1))

# Normal values of sizes from 1e-6 to 1e3, then blocks where roundings tie,
# constant ones, ones of one sign, zeros, and ones with equal extremes.
values = random.normal(0, 1, (40, 32)) * 10.0 ** random.integers(-6, 4, (40, 1))
values[30] = np.arange(-16, 16) / 2
values[31] = np.arange(32) * 0.25
values[32] = 3.5
values[33] = -0.125
values[34] = np.abs(values[34])
values[35] = -np.abs(values[35])
values[36] = 0
values[37] = np.where(np.arange(32) % 2, 2.0, -2.0)
values[38] = np.where(np.arange(32) == 17, -7.0, 0.0)
values[39] = np.arange(32) - 127.0
values = values.astype(np.float32)
save("rounding.values", values)
for kind in ROUNDED:
    save(kind.name.lower() + ".rounded", quantize(values, kind))

# A byte of exponent: those of ordinary size, the least and the largest of which
# all values are finite. Last, since the numbers before it are what they were.
blocks = random.integers(0, 256, (16, 17), dtype=np.uint8)
blocks[:, 0] = [0, 1, 2, 3, 252, 251] + list(random.integers(110, 135, 10))
save("mxfp4.blocks", blocks)
save("mxfp4.values",
     dequantize(blocks, Type.MXFP4).astype(np.float32).reshape(-1))

# The least and the largest halves, subnormal ones and zeros, with the least and
# the largest scales of sub-blocks, and those that are 0.
blocks = random.integers(0, 256, (10, 136), dtype=np.uint8)
scales = [0, 2**-24, -2**-24, 1023 * 2**-24, 65504, -65504, 2**-14]
scales += list(random.normal(0, 0.1, 3))
blocks[:, 0:2] = np.array(scales, np.float16).reshape(-1, 1).view(np.uint8)
for row, (high, low) in enumerate([(0, 0), (0xff, 0xff), (0xaa, 0)]):
    blocks[4 + row, 2:4] = high
    blocks[4 + row, 4:8] = low
save("iq4_xs.blocks", blocks)
save("iq4_xs.values",
     dequantize(blocks, Type.IQ4_XS).astype(np.float32).reshape(-1))

# Formats whose blocks are read as wider ones, runtime/model/GridWeights.h: the
# largest scales of blocks and zeros among ordinary ones.
for kind in (Type.IQ3_S, Type.IQ3_XXS, Type.IQ2_XXS, Type.IQ2_XS, Type.IQ2_S):
    blocks = random.integers(0, 256, (6, gguf.GGML_QUANT_SIZES[kind][1]),
                             dtype=np.uint8)
    scales = [0, 65504, -65504, 2**-13] + list(random.normal(0, 0.1, 2))
    blocks[:, 0:2] = np.array(scales, np.float16).reshape(-1, 1).view(np.uint8)
    save(kind.name.lower() + ".blocks", blocks)
    save(kind.name.lower() + ".values",
         dequantize(blocks, kind).astype(np.float32).reshape(-1))

# Read as bf16, runtime/io/Nvfp4Weights.h: every byte as a scale.
blocks = random.integers(0, 256, (64, 36), dtype=np.uint8)
blocks[:, 0:4] = np.arange(256, dtype=np.uint8).reshape(64, 4)
save("nvfp4.blocks", blocks)
save("nvfp4.values",
     dequantize(blocks, Type.NVFP4).astype(np.float32).reshape(-1))
