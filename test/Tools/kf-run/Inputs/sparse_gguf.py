#!/usr/bin/env python3
"""Writes GGUF files of more than 4 GiB that take next to no disk: most of their
values are zeros that nobody has written.

sparse_gguf.py table OUT   a table F32 [1572864, 1024], of 6 GiB, and a matrix
                           F32 [4, 1024] behind it. Of the table four rows are
                           not zero: 0, those at both sides of 4 GiB, and the
                           last; the k-th has k * (1 + column % 4). The matrix
                           takes the first four columns.
sparse_gguf.py stretch IN OUT   the GPT-2 model IN with a table of positions of
                           5 GiB in front of most of its other tensors; what IN
                           has no positions for is zero
"""

import struct
import sys

ALIGNMENT = 32


def text(raw):
    return struct.pack("<Q", len(raw)) + raw


def entry(name, sizes, kind, offset):
    """Of a tensor; the innermost size first."""
    head = text(name) + struct.pack("<I", len(sizes))
    return head + struct.pack(f"<{len(sizes)}QIQ", *sizes, kind, offset)


def write(path, entries, metadata, tensors, pieces, size):
    """`pieces` are offsets into the data, which have `size` bytes, and bytes."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), entries)
    head += metadata + b"".join(tensors)
    head += b"\0" * (-len(head) % ALIGNMENT)
    with open(path, "wb") as file:
        file.write(head)
        for offset, raw in pieces:
            file.seek(len(head) + offset)
            file.write(raw)
        file.truncate(len(head) + size)


def table(path):
    columns, rows = 1024, 3 << 19
    pieces = []
    for k, row in enumerate((0, (1 << 20) - 1, 1 << 20, rows - 1), 1):
        values = [k * (1 + column % 4) for column in range(columns)]
        pieces.append((row * columns * 4, struct.pack(f"<{columns}f", *values)))
    matrix = [float(row == column) for row in range(4) for column in range(columns)]
    end = rows * columns * 4
    pieces.append((end, struct.pack(f"<{len(matrix)}f", *matrix)))
    tensors = [
        entry(b"table", [columns, rows], 0, 0),
        entry(b"matrix", [columns, 4], 0, end),
    ]
    write(path, 0, b"", tensors, pieces, end + 4 * len(matrix))


def stretch(source, path):
    with open(source, "rb") as file:
        whole = file.read()
    sizes = [1, 1, 2, 2, 4, 4, 4, 1, None, None, 8, 8, 8]
    at = 24

    def number(form):
        nonlocal at
        (value,) = struct.unpack_from("<" + form, whole, at)
        at += struct.calcsize("<" + form)
        return value

    def string():
        nonlocal at
        length = number("Q")
        at += length
        return whole[at - length : at]

    def skip(kind):
        nonlocal at
        if kind == 8:
            string()
        elif kind == 9:
            kind = number("I")
            for _ in range(number("Q")):
                skip(kind)
        else:
            at += sizes[kind]

    rows = 20 << 20
    count, entries = struct.unpack_from("<QQ", whole, 8)
    metadata = b""
    for _ in range(entries):
        begin = at
        key = string()
        skip(number("I"))
        if key == b"gpt2.context_length":
            metadata += text(key) + struct.pack("<II", 4, rows)
        else:
            metadata += whole[begin:at]
    tensors, cut, added = [], 0, 0
    for _ in range(count):
        name = string()
        shape = [number("Q") for _ in range(number("I"))]
        kind, offset = number("I"), number("Q")
        tensors.append(entry(name, shape, kind, offset + added))
        if name == b"position_embd.weight":
            tensors[-1] = entry(name, [shape[0], rows], kind, offset)
            cut = offset + shape[0] * shape[1] * 4
            added = shape[0] * (rows - shape[1]) * 4
    data = whole[at + -at % ALIGNMENT :]
    pieces = [(0, data[:cut]), (cut + added, data[cut:])]
    write(path, entries, metadata, tensors, pieces, len(data) + added)


{"table": table, "stretch": stretch}[sys.argv[1]](*sys.argv[2:])
