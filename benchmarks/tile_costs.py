#!/usr/bin/env python3
"""Makes the costs of tiles on matrix units of one chip from measured schedules.

    kf-run tune llama-3-8b --dummy-weights --device cuda --budget 10m \\
        --tuning-db chip.json
    benchmarks/tile_costs.py chip.json --machine "NVIDIA H200" \\
        --commit $(git rev-parse --short HEAD) > sm_90.inc

This file replaces lib/Target/Common/costs/sm_90.inc, which says what tiles there
are: do not write it there while it is read.

It reads what the file says was tried for products of many rows. Of a tile that
was not tried, it says which; `kf-run tune --kernel NAME --try SCHEDULE` does.
docs/decisions/cost-model.md says what the numbers are.
"""

import argparse
import json
import math
import os
import re
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib", "Target",
                      "Common", "costs")
TILE = re.compile(r"\{\{(\d+), (\d+), (\d+), (\d+), (\d+), (\d+), "
                  r"MatrixUnit::(\w+)\}")
UNITS = {"MmaSync": "mma_sync", "Wgmma": "wgmma"}
FLOATS = ("f16", "bf16")


def fail(message):
    sys.exit(f"error: {message}")


def read_tiles():
    """(rows, lines, row warps, line warps, step, stages, unit) of each tile."""
    with open(os.path.join(FOLDER, "sm_90.inc"), encoding="utf-8") as file:
        found = TILE.findall(file.read())
    return [(*map(int, tile[:6]), tile[6]) for tile in found]


def numbers_of(schedule, name):
    match = re.search(rf"{name} = \[?([0-9, ]+)\]?", schedule)
    return [int(number) for number in match[1].rstrip(", ").split(",")]


class Sample:
    """One tile of one product: seconds for each element of it and of K."""

    def __init__(self, entry, trial, units):
        x, w = entry["about"]["shapes"][:2]
        schedule = trial["schedule"]
        rows, columns = numbers_of(schedule, "workgroup")
        matrices = w[0] if len(w) == 3 else 1
        lines = columns * matrices
        self.tile = (rows, lines, *numbers_of(schedule, "warps"),
                     *numbers_of(schedule, "reduction"), *numbers_of(schedule, "stages"),
                     next(unit for unit, text in UNITS.items() if f"unit = {text}" in schedule))
        tiles = math.ceil(entry["key"]["rows"] / rows) * math.ceil(w[-2] / columns)
        self.parts = numbers_of(schedule, "parts")[0] if "parts" in schedule else 1
        self.columns = x[-1]
        groups = tiles * self.parts
        self.is_alone = groups <= units and self.tile[2] * self.tile[3] <= 4
        self.has_codes = entry["about"]["types"][1] not in FLOATS
        rounds = math.ceil(groups / units) if self.parts == 1 else max(groups / units, 1)
        self.cost = trial["seconds"] / (rounds * rows * lines * self.columns / self.parts)


def read_samples(path, chip):
    with open(path, encoding="utf-8") as file:
        entries = json.load(file)["entries"]
    samples = []
    for entry in entries:
        target = entry["key"]["target"]
        found = re.search(r'chip = "(sm_\d+)[af]?".*multiprocessors = (\d+)', target)
        if not found or found[1] != chip or "matmul" not in entry["about"]["op"]:
            continue
        for trial in entry["tried"]:
            if trial["schedule"].startswith("#kf.mma<") and trial["seconds"] > 0 \
                    and not trial.get("rejected"):
                samples.append(Sample(entry, trial, int(found[2])))
    return samples


def mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def fit(tiles, samples):
    """The slowness of each tile, and what dequantization, being alone and parts add."""
    costs = {}
    for sample in samples:
        if sample.parts > 1:
            continue
        kind = "codes" if sample.has_codes else "alone" if sample.is_alone else "floats"
        costs.setdefault((sample.tile, kind), []).append(sample.cost)
    of = {key: mean(values) for key, values in costs.items()}
    first = tiles[0]
    if (first, "floats") not in of:
        fail(f"no product of {' or '.join(FLOATS)} was tried with the first tile, {first}, "
             "and more of them than multiprocessors")
    base = of[first, "floats"]
    slowness = {tile: of[tile, "floats"] / base for tile in tiles if (tile, "floats") in of}
    added = [(of[tile, "codes"] / base - slow) * tile[0] / tile[2] / 128
             for tile, slow in slowness.items() if (tile, "codes") in of]
    if not added:
        fail("no product of blocks was tried")
    dequantization = sum(added) / len(added)
    alone = mean(of[tile, "alone"] / base / slow for tile, slow in slowness.items()
                 if (tile, "alone") in of)
    if alone is None:
        fail("no product was tried with tiles of four warps and no more of them than "
             "multiprocessors")
    for tile in tiles:
        if tile not in slowness:
            rows, lines, row_warps, line_warps, step, stages, unit = tile
            fail(f"tile {tile} was not tried whole; try '#kf.mma<workgroup = [{rows}, {lines}], "
                 f"warps = [{row_warps}, {line_warps}], reduction = {step}, "
                 f"stages = {stages}, unit = {UNITS[unit]}>' for a product of floats")
    return slowness, dequantization, alone, fit_exchange(samples, slowness, base, alone)


def fit_exchange(samples, slowness, base, alone):
    """Columns of K that another part costs."""
    found = []
    for sample in samples:
        if sample.parts > 1 and not sample.has_codes and sample.tile in slowness:
            cost = sample.cost / base / (alone if sample.is_alone else 1)
            found.append((cost - slowness[sample.tile]) * sample.columns
                         / (sample.parts * (sample.parts - 1)))
    if not found:
        fail(f"no product of {' or '.join(FLOATS)} was tried in parts; try a schedule with "
             "parts = 2 for one of fewer tiles than multiprocessors")
    return max(sum(found) / len(found), 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("database", help="a file that `kf-run tune --tuning-db` wrote")
    parser.add_argument("--machine", required=True,
                        help="what was measured, as kf-run devices calls it")
    parser.add_argument("--commit", required=True, help="of which kf-run was that measured")
    parser.add_argument("--chip", default="sm_90", help="by default sm_90")
    parser.add_argument("--products", type=int, default=1024,
                        help="multiply-adds of 16-bit floats of a multiprocessor in a cycle, "
                        "by mma.sync")
    parser.add_argument("--clustered", type=int, default=11,
                        help="of twelve multiprocessors, those in clusters of more than two "
                        "workgroups (cuOccupancyMaxActiveClusters)")
    arguments = parser.parse_args()
    tiles = read_tiles()
    samples = read_samples(arguments.database, arguments.chip)
    slowness, dequantization, alone, exchange = fit(tiles, samples)
    print("// What tiles on matrix units cost on one chip: see GpuCosts.h.")
    print(f"// Measured on: {arguments.machine}, {arguments.chip}, at commit {arguments.commit},")
    print(f"// {len(samples)} times of products; made by benchmarks/tile_costs.py.")
    print(f'"{arguments.chip}", "{arguments.machine}", '
          f"/*mmaProductsPerCycle=*/{arguments.products},")
    print(f"/*dequantization=*/{dequantization:.2f}, /*alone=*/{alone:.2f}, "
          f"/*exchange=*/{exchange:.0f}, /*clustered=*/{arguments.clustered},")
    lines = [f"{{{{{', '.join(map(str, tile[:6]))}, MatrixUnit::{tile[6]}}}, "
             f"{slowness[tile]:.2f}}}" for tile in tiles]
    print("{" + ",\n ".join(lines) + "}")


if __name__ == "__main__":
    main()
