#!/usr/bin/env python3
"""The ten slowest tests of the last run, as the table in docs/Testing.md.

usage: test/slowest.py BUILD [--write FILE]

BUILD is a folder like build/release in which ctest has run. Each lit test counts
by itself, and every other program of ctest as a whole. With --write, the table
of FILE (docs/Testing.md) that stands between the two comments "slowest" is
replaced; otherwise it is printed.

Exit status: 0, 1 where a file is not as expected, 2 for wrong use.
"""

import argparse
import os
import re
import sys

COUNT = 10
PLACE = re.compile(r"(<!-- slowest: .*? -->\n).*?(<!-- /slowest -->)", re.DOTALL)


def fail(message):
    sys.exit(f"slowest: error: {message}")


def read(path, advice):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        fail(f"cannot read '{path}': {error.strerror}; {advice}")


def times(build):
    """(seconds, name) of each test."""
    advice = f"run ctest --test-dir {build} first"
    # Lines of a name, a number of runs and seconds; then failed tests' names.
    costs = read(os.path.join(build, "Testing/Temporary/CTestCostData.txt"), advice)
    for line in costs.partition("---")[0].splitlines():
        name, _, seconds = line.split()
        if name != "lit":
            yield float(seconds), name
    for line in read(os.path.join(build, "test/.lit_test_times.txt"), advice).splitlines():
        seconds, name = line.split(maxsplit=1)
        yield float(seconds), name


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2][len("usage: "):])
    parser.add_argument("build")
    parser.add_argument("--write", metavar="FILE")
    given = parser.parse_args()
    slowest = sorted(times(given.build), key=lambda test: (-test[0], test[1]))[:COUNT]
    table = "| test | seconds |\n| --- | --- |\n" + "".join(
        f"| `{name}` | {seconds:.0f} |\n" for seconds, name in slowest)
    if not given.write:
        print(table, end="")
        return
    text = read(given.write, "name docs/Testing.md")
    replaced, count = PLACE.subn(lambda found: found[1] + table + found[2], text)
    if count != 1:
        fail(f"'{given.write}' has {count} tables between <!-- slowest: ... --> and "
             "<!-- /slowest -->; one is expected")
    with open(given.write, "w", encoding="utf-8") as file:
        file.write(replaced)


main()
