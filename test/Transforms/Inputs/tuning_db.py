"""Adds schedules to a tuning database: tuning_db.py DB REMARKS KERNEL=SCHEDULE...

REMARKS is what kf-select-schedules says with --remark-policy=all when it has a
database: keys of kernels. DEVICE and COMPILER of the environment take the place
of theirs. Times and what the entry is about are made up.
"""

import json
import os
import re
import sys

database, remarks, *schedules = sys.argv[1:]
file = {"version": 2, "entries": []}
if os.path.exists(database):
    with open(database) as stream:
        file = json.load(stream)

keys = {}
pattern = re.compile(
    r"TuningKey \|.*Function=(\S+) \| Compiler=(.*), Device=(.*), "
    r"Identity=(.*), Kernel=(.*), Rows=(.*), Target=(.*)"
)
with open(remarks) as stream:
    for match in filter(None, map(pattern.search, stream)):
        name, *fields = [field.strip().strip('"') for field in match.groups()]
        compiler, device, identity, kernel, rows, target = fields
        keys[name] = {
            "kernel": kernel,
            "rows": int(rows),
            "target": target,
            "identity": identity,
            "device": os.environ.get("DEVICE", device),
            "compiler": os.environ.get("COMPILER", compiler),
        }

for name, schedule in (text.split("=", 1) for text in schedules):
    file["entries"].append(
        {
            "key": keys[name],
            "about": {"op": name, "shapes": [], "types": []},
            "schedule": schedule,
            "measured": {"seconds": 1e-3},
        }
    )
with open(database, "w") as stream:
    json.dump(file, stream, indent=1)
