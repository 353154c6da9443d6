"""Adds schedules to a tuning database: tuning_db.py DB REMARKS KERNEL=SCHEDULE...

REMARKS is what kf-select-schedules says with --remark-policy=all when it has a
database: keys of kernels, and schedules. s/A/B/ stands for the schedule that it
chose with B in place of what A, a regular expression, finds. DEVICE (@FILE: what
is in it) and COMPILER of the environment take the place of theirs. Times and what
the entry is about are made up.
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

device_now = os.environ.get("DEVICE")
if device_now and device_now.startswith("@"):
    with open(device_now[1:]) as stream:
        device_now = stream.read().strip()

keys, chosen = {}, {}
choice = re.compile(r'Schedule \|.*Function=(\S+) \|.*Schedule="(.*)"')
pattern = re.compile(
    r"TuningKey \|.*Function=(\S+) \| Compiler=(.*), Device=(.*), "
    r"Identity=(.*), Kernel=(.*), Rows=(.*), Target=(.*)"
)
with open(remarks) as stream:
    lines = stream.readlines()
    for match in filter(None, map(choice.search, lines)):
        chosen[match[1]] = match[2]
    for match in filter(None, map(pattern.search, lines)):
        name, *fields = [field.strip().strip('"') for field in match.groups()]
        compiler, device, identity, kernel, rows, target = fields
        keys[name] = {
            "kernel": kernel,
            "rows": int(rows),
            "target": target,
            "identity": identity,
            "device": device_now or device,
            "compiler": os.environ.get("COMPILER", compiler),
        }

for name, schedule in (text.split("=", 1) for text in schedules):
    if schedule.startswith("s/"):
        _, old, new, _ = schedule.split("/")
        schedule, count = re.subn(old, new, chosen[name])
        assert count, f"{chosen[name]} has no {old}"
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
