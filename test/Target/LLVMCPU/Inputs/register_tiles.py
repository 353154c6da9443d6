#!/usr/bin/env python3
"""Runs products by every combination of the fields of #kf.vector that say what
register tiles share, those that only the tuner writes among them, and compares
their results with the reference's.

register_tiles.py FOLDER MODELS
"""

import os
import struct
import subprocess
import sys

CPU = "x86-64-v2"
PANEL, LANES, EXTENT, EXPERTS, TOP = 8, 4, 256, 4, 2
TILES = (2, 3, 5)
GROUP_ROWS = 16
ROWS = (1, 4, 7, 16, 21)

APART = [("apart", "whole"), ("apart", "even")]
UNPACKED = [("unpacked", "whole")]
SHARED = [("shared", "even")]

BLOCKS = "blk.%d.attn_output.weight"
BF16 = "model.layers.%d.self_attn.o_proj.weight"
GGUF = "kf-stories-gguf/kf-stories-Q4_0.gguf"
FOLDER = "kf-stories"


class Product:
    """A product of rows with weights of a model."""

    def __init__(self, name, model, weights, weight, dot, groups=("together",)):
        self.name, self.model, self.weights = name, model, weights
        self.weight, self.dot, self.groups = weight, dot, groups
        self.has_experts = "experts" in name
        self.is_gated = weight.startswith("2x")
        self.result = "?x%s256xf32" % ("2x" if self.has_experts else "")

    def schedules(self):
        ways = APART + UNPACKED + (SHARED if self.dot == "i8" else [])
        for rows in TILES:
            tile = [rows, PANEL]
            workgroup = [GROUP_ROWS, EXTENT]
            if self.has_experts:
                tile.append(-(-GROUP_ROWS // rows) * rows)
                workgroup = [2 * GROUP_ROWS, 0, EXTENT]
            for panels, row_tiles in ways:
                for groups in self.groups:
                    yield (
                        f"#kf.vector<workgroup = {workgroup}, tile = {tile}, "
                        f"lanes = {LANES}, dot = {self.dot}, panels = {panels}, "
                        f"row_tiles = {row_tiles}, groups = {groups}>"
                    )

    def parameters(self):
        """Names and types of what a product takes beside its weight."""
        inputs = [("%x", f"tensor<?x{EXTENT}xf32>")]
        if self.has_experts:
            inputs.append(("%e", f"tensor<?x{TOP}xi32>"))
        return inputs

    def op(self):
        types = [type for _, type in self.parameters()]
        types.append(f"tensor<{self.weight}>")
        glu = " glu(silu)" if self.is_gated else ""
        name = "kf.matmul %x"
        if self.has_experts:
            name = "kf.expert_matmul %x experts(%e)"
        return f"{name}, %w{glu} : {', '.join(types)}"

    def load(self):
        names = ", ".join(f'"{name}"' for name in self.weights)
        stacked = " {stacked}" if len(self.weights) > 1 else ""
        return f"%w = kf.weight [{names}]{stacked} : tensor<{self.weight}>"

    def function(self):
        """The product alone, whose schedule is nobody's."""
        parameters = ", ".join(f"{n}: {t}" for n, t in self.parameters())
        return (
            f"func.func @main({parameters}) -> tensor<{self.result}> {{\n"
            f"  {self.load()}\n  %0 = {self.op()}\n"
            f"  return %0 : tensor<{self.result}>\n}}\n"
        )

    def program(self):
        """The product by each schedule: a result for each."""
        schedules = list(self.schedules())
        inputs = self.parameters()
        parameters = ", ".join(f"{n}: {t}" for n, t in inputs)
        weight = f"tensor<{self.weight}>"
        result = f"tensor<{self.result}>"
        types = ", ".join([t for _, t in inputs] + [weight])
        names = ", ".join([n for n, _ in inputs] + ["%w"])
        results = ", ".join([result] * len(schedules))
        lines = [
            f"kf.program @main({parameters}) -> ({results}) "
            f"attributes {{max_tokens = {max(ROWS)} : i64}} {{",
            "  " + self.load(),
        ]
        for i in range(len(schedules)):
            lines.append(
                f"  %{i} = kf.dispatch @product_{i}({names}) : "
                f"({types}) -> {result}"
            )
        values = ", ".join(f"%{i}" for i in range(len(schedules)))
        lines += [f"  kf.yield {values} : {results}", "}"]
        for i, schedule in enumerate(schedules):
            lines += [
                f"kf.kernel @product_{i}({parameters}, %w: {weight}) -> {result}",
                f"    attributes {{schedule = {schedule}}} {{",
                f"  %0 = {self.op()}",
                f"  kf.yield %0 : {result}",
                "}",
            ]
        return "\n".join(lines) + "\n"


PRODUCTS = [
    Product("blocks", GGUF, [BLOCKS % 0], "256x256x!kf.quant<q4_0>", "i8"),
    Product(
        "experts of blocks",
        GGUF,
        [BLOCKS % i for i in range(EXPERTS)],
        "1x4x256x256x!kf.quant<q4_0>",
        "i8",
    ),
    Product(
        "gated bf16",
        FOLDER,
        [BF16 % 0, BF16 % 1],
        "2x256x256xbf16",
        "f32",
        ("together", "in_turn"),
    ),
]


def write_rows(path, rows):
    """Integers that 8 bits hold, of which 32 have a largest of 127: what is
    rounded to 8 bits stays what it is."""
    values = []
    for i in range(rows * EXTENT):
        values.append(127 if i % 32 == 0 else (i * 37 + i // 256 * 11) % 255 - 127)
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{len(values)}f", *values))


def write_experts(path, rows):
    """All rows choose the first expert, and one of the others each."""
    values = []
    for row in range(rows):
        values += [0, 1 + row % (EXPERTS - 1)]
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{len(values)}i", *values))


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}\n{done.stdout}{done.stderr}")


def check(product, folder, models):
    path = os.path.join(folder, "")
    for name, text in (
        ("function.mlir", product.function()),
        ("program.mlir", product.program()),
    ):
        with open(path + name, "w") as file:
            file.write(text)
    # The program, which has a kernel for each schedule, is compiled once.
    for name, target in (
        ("function", ("--device", "reference")),
        ("program", ("--target-cpu", CPU)),
    ):
        run(
            *("kf-run", "emit-mlir", f"{path}{name}.mlir", *target),
            *("--compile-to", "binary", "-o", f"{path}{name}.kf"),
        )
    count = len(list(product.schedules()))
    for rows in ROWS:
        write_rows(path + "x.bin", rows)
        inputs = ["--input", f"{rows}x{EXTENT}xf32=@{path}x.bin"]
        if product.has_experts:
            write_experts(path + "e.bin", rows)
            inputs += ["--input", f"{rows}x{TOP}xi32=@{path}e.bin"]
        inputs += ["--weights", os.path.join(models, product.model)]
        run(
            *("kf-exec", "run", path + "function.kf", *inputs),
            *("--device", "reference", "--output", f"@{path}expected.npy"),
        )
        run(
            *("kf-exec", "run", path + "program.kf", *inputs),
            *("--rtol", "1e-4", "--atol", "1e-2"),
            *(["--expected", f"@{path}expected.npy"] * count),
        )
    print(f"{product.name}: {count} schedules")


def main():
    folder, models = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for product in PRODUCTS:
        check(product, folder, models)


main()
