#!/usr/bin/env python3
"""Writes NfcTables.inc from Python's Unicode database:
python3 generate_nfc_tables.py > NfcTables.inc"""
import sys
import unicodedata as u

HANGUL = range(0xAC00, 0xAC00 + 11172)  # composed by arithmetic

decompositions, compositions, classes = [], [], []
for c in range(0x110000):
    k = u.combining(chr(c))
    if k:
        if classes and classes[-1][1] == c - 1 and classes[-1][2] == k:
            classes[-1][1] = c
        else:
            classes.append([c, c, k])
    d = u.decomposition(chr(c))
    if not d or d.startswith("<") or c in HANGUL:
        continue
    parts = [int(x, 16) for x in d.split()]
    decompositions.append((c, parts[0], parts[1] if len(parts) == 2 else 0))
    # Composition exclusions are what NFC does not put together again.
    if len(parts) == 2 and u.normalize("NFC", chr(c)) == chr(c):
        compositions.append((parts[0], parts[1], c))
compositions.sort()


def table(kind, name, rows):
    print(f"\nconstexpr {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        item = " {" + ", ".join(f"{x:#x}" for x in row) + "},"
        if len(line) + len(item) > 80:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


print(f"// Unicode {u.unidata_version}, by generate_nfc_tables.py. Do not edit.")
table("Decomposition", "kDecompositions", decompositions)
table("Composition", "kCompositions", compositions)
table("ClassRange", "kClassRanges", classes)
