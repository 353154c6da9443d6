#!/usr/bin/env python3
"""Writes CharacterTables.inc from Python's own str methods:
python3 generate_character_tables.py > CharacterTables.inc"""
import unicodedata as u

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def runs(points):
    """[first, last, step] of every run of equal steps 1 or 2."""
    result = []
    for c in points:
        last = result[-1] if result else None
        if last and last[0] == last[1] and c - last[1] <= 2:
            last[1], last[2] = c, c - last[1]
        elif last and last[0] != last[1] and c - last[1] == last[2]:
            last[1] = c
        else:
            result.append([c, c, 1])
    return result


def mapped(method):
    """[first, last, step, delta] for characters that map to one; no run begins
    inside another."""
    rows = []
    points, delta = [], 0
    for c in CHARACTERS:
        to = getattr(c, method)()
        if len(to) != 1 or to == c:
            continue
        if points and ord(to) - ord(c) != delta:
            rows += [run + [delta] for run in runs(points)]
            points = []
        delta = ord(to) - ord(c)
        points.append(ord(c))
    return rows + [run + [delta] for run in runs(points)]


def table(kind, name, rows):
    print(f"\nconstexpr {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        item = " {" + ", ".join(x if isinstance(x, str) else
                                (f"{x:#x}" if x >= 0 else f"{x}")
                                for x in row) + "},"
        if len(line) + len(item) > 80:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


def literal(text):
    return '"' + "".join(f"\\x{b:02x}" for b in text.encode()) + '"'


print(f"// Unicode {u.unidata_version}, by generate_character_tables.py. "
      "Do not edit.")
table("Mapping", "kUpper", mapped("upper"))
table("Mapping", "kLower", mapped("lower"))
for method, name in (("upper", "kSpecialUpper"), ("lower", "kSpecialLower")):
    table("Special", name, [(ord(c), literal(getattr(c, method)()))
                            for c in CHARACTERS if len(getattr(c, method)()) > 1])
table("Special", "kSpecialTitle", [(ord(c), literal(c.title()))
                                   for c in CHARACTERS if c.title() != c.upper()])
for name, test in (
        ("kUnprintable", lambda c: not c.isprintable()),
        ("kAlphabetic", str.isalpha),
        ("kNumeric", lambda c: c.isnumeric() or c.isdigit() or c.isdecimal()),
        ("kDigit", str.isdigit),
        ("kIsLower", str.islower),
        ("kIsUpper", str.isupper),
        ("kTitlecase", lambda c: u.category(c) == "Lt")):
    table("Run", name, runs([ord(c) for c in CHARACTERS if test(c)]))
