#!/usr/bin/env python3
"""Checks that a wrong value of each field of each schedule is an error.

  check_schedule_fields.py KF_OPT SCHEDULES_TD TABLE

SCHEDULES_TD says which schedules there are, and their fields. TABLE has a line
with a sound one of each,

  #kf.name<field = value, field = value>

and behind it lines of fields to set in it, or to add, and what is said then:

  field = value, field = value: message

The message is one of the attribute's verifier or parser, and names a field. Each
field has such a line. A field without a default is left out, too, which is an
error that names it.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

SCHEDULE = re.compile(r"def KF_\w+ *: *KF_ScheduleAttr<\"\w+\", \"(\w+)\">")
PARAMETERS = re.compile(r"let parameters = \(ins(.*?)\);", re.S)
PARAMETER = re.compile(r"([^$]*):\$(\w+)")
FIELD = re.compile(r"(\w+) = (\[[^\]]*\]|-?\w+)")
LOCATION = re.compile(r"^\S+?:(\d+):\d+: error: (.*)$")


def fields_of(path):
    """By schedule: its fields, and whether each has to be there."""
    text, found = path.read_text(), {}
    for schedule in SCHEDULE.finditer(text):
        body = PARAMETERS.search(text, schedule.end())[1]
        found[schedule[1]] = {
            name: not re.search(r"DefaultValued|Sizes|Optional", kind)
            for kind, name in PARAMETER.findall(body)
        }
    return found


def print_schedule(name, values):
    return f"#kf.{name}<{', '.join(f'{k} = {v}' for k, v in values.items())}>"


def cases_of(table, fields, problems):
    """Pairs of a schedule's text and what is said of it; None: nothing."""
    name, sound, covered = None, {}, {}
    for line in table.read_text().splitlines():
        if line.startswith("#kf."):
            name = line[4 : line.index("<")]
            sound = dict(FIELD.findall(line))
            covered[name] = set()
            yield print_schedule(name, sound), None
            for field, must_be in fields.get(name, {}).items():
                if must_be:
                    rest = {k: v for k, v in sound.items() if k != field}
                    yield print_schedule(name, rest), field
        elif line.strip():
            wrong, _, message = line.partition(": ")
            values = dict(FIELD.findall(wrong))
            if not any(re.search(rf"\b{v}\b", message) for v in values):
                problems.append(f"'{line}': the message names no field of it")
            covered[name].update(values)
            yield print_schedule(name, sound | values), message
    for schedule, all_fields in fields.items():
        for field in all_fields:
            if field not in covered.get(schedule, set()):
                problems.append(f"#kf.{schedule} has no wrong '{field}' here")


def main():
    kf_opt, schedules, table = sys.argv[1:]
    problems = []
    fields = fields_of(pathlib.Path(schedules))
    cases = list(cases_of(pathlib.Path(table), fields, problems))
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write("\n// -----\n".join(f'"t"() {{a = {s}}} : () -> ()' for s, _ in cases))
        file.flush()
        run = subprocess.run(
            [kf_opt, "--allow-unregistered-dialect", "-split-input-file", file.name],
            capture_output=True,
            text=True,
        )
    said = {}
    for line in run.stderr.splitlines():
        if found := LOCATION.match(line):
            said.setdefault((int(found[1]) - 1) // 2, []).append(found[2])
    for number, (schedule, message) in enumerate(cases):
        got = said.get(number, [])
        if message is None:
            problems += [f"{schedule}: {error}" for error in got]
        elif not any(message in error for error in got):
            problems.append(f"{schedule}: expected '{message}', found {got}")
    count = sum(len(f) for f in fields.values())
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{len(fields)} schedules, {count} fields, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
