#!/usr/bin/env python3
"""Writes Grids.inc from the gguf package (0.19.0 from PyPI):
python3 generate_grids.py > Grids.inc"""
import gguf
from gguf.quants import _type_traits

TYPES = gguf.GGMLQuantizationType

print(f"// GGUF's grids, by generate_grids.py. Do not edit.")
for kind in ("IQ3_S", "IQ3_XXS", "IQ2_XXS", "IQ2_XS", "IQ2_S"):
    traits = _type_traits[TYPES[kind]]
    traits.init_grid()
    grid = traits.grid.reshape(traits.grid_shape)
    values = list(traits.grid_map)
    bits = 3 if len(values) > 4 else 2
    words = []
    for row in grid:
        word = 0
        for i, value in enumerate(row):
            word |= values.index(int(value)) << bits * i
        words.append(word)
    name = "".join(part.capitalize() for part in kind.split("_"))
    print(f"\nconstexpr uint16_t k{name}[{len(words)}] = {{")
    line = "   "
    for word in words:
        text = f" {word:#x},"
        if len(line) + len(text) > 80:
            print(line)
            line = "   "
        line += text
    print(line.rstrip(",") + "};")
