"""check_tile_costs.py SCRIPT: what benchmarks/tile_costs.py makes of times that costs made."""

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import tempfile

UNITS = 132
EXCHANGE = 90  # columns of K
SCRIPT = sys.argv[1]


def load():
    specification = importlib.util.spec_from_file_location("tile_costs", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def entry(tiles, costs, rows, columns, extent, weight, alone, dequantization):
    """What tuning would have found of a product by these costs."""
    tried = []
    for tile in tiles:
        groups = math.ceil(rows / tile[0]) * math.ceil(columns / tile[1])
        slowness = costs[tile] + (dequantization * 128 * tile[2] / tile[0] if weight == "q4_k" else 0)
        seconds = math.ceil(groups / UNITS) * tile[0] * tile[1] * extent * slowness * 1e-15
        if groups <= UNITS and tile[2] * tile[3] <= 4:
            seconds *= alone
        schedule = (f"#kf.mma<workgroup = [{tile[0]}, {tile[1]}], warps = [{tile[2]}, {tile[3]}], "
                    f"reduction = {tile[4]}, stages = {tile[5]}, "
                    f"unit = {'wgmma' if tile[6] == 'Wgmma' else 'mma_sync'}>")
        tried.append({"schedule": schedule, "predicted": 1, "seconds": seconds, "error": 0})
        if 2 * groups <= UNITS and weight != "q4_k":
            exchange = EXCHANGE * (alone if tile[2] * tile[3] <= 4 else 1)
            tried.append({"schedule": schedule.replace(">", ", parts = 2>"), "error": 0,
                          "seconds": seconds / 2 + tile[0] * tile[1] * exchange * 1e-15})
    # Neither of these counts.
    tried.append({"schedule": tried[0]["schedule"], "seconds": 1, "rejected": "it differs"})
    tried.append({"schedule": "#kf.simt<workgroup = [32, 32], threads = [16, 16]>", "seconds": 1})
    return {"key": {"rows": rows, "target": "#kf.cuda_target<chip = \"sm_90a\", "
                    f"multiprocessors = {UNITS}, memory = 232448>"},
            "about": {"op": "matmul", "shapes": [[-1, extent], [columns, extent]],
                      "types": ["f16", weight]}, "tried": tried}


def run(entries, *options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tuning.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"version": 2, "entries": entries}, file)
        return subprocess.run([sys.executable, SCRIPT, path, "--machine", "A machine", "--commit",
                               "0123abcd", *options], capture_output=True, text=True, check=False)


def main():
    tiles = load().read_tiles()
    assert len(tiles) == 24, tiles
    costs = {tile: 1 + 0.07 * number for number, tile in enumerate(tiles)}
    entries = [entry(tiles, costs, 4096, 8192, 4096, weight, 1.3, 0.25)
               for weight in ("bf16", "q4_k")]
    entries.append(entry(tiles, costs, 128, 1024, 2048, "f16", 1.3, 0.25))

    made = run(entries)
    assert made.returncode == 0, made.stderr
    assert '"sm_90", "A machine"' in made.stdout, made.stdout
    assert "A machine, sm_90, at commit 0123abcd," in made.stdout, made.stdout
    assert "/*dequantization=*/0.25, /*alone=*/1.30, /*exchange=*/90, " \
        "/*clustered=*/11" in made.stdout, made.stdout
    found = re.findall(r"MatrixUnit::\w+\}, ([0-9.]+)\}", made.stdout)
    assert [float(number) for number in found] == \
        [round(costs[tile], 2) for tile in tiles], made.stdout

    # What was not tried is named, with the schedule that says how to.
    for each in entries:
        each["tried"] = [trial for trial in each["tried"]
                         if "[256, 128], warps = [4, 2]" not in trial["schedule"]]
    made = run(entries)
    assert made.returncode == 1 and "try '#kf.mma<workgroup = [256, 128], warps = [4, 2]" \
        in made.stderr, made.stderr
    # Of another chip, there is nothing.
    made = run(entries, "--chip", "sm_100")
    assert made.returncode == 1 and "the first tile" in made.stderr, made.stderr


main()
