#!/usr/bin/env python3
"""Splits a GGUF file as llama-gguf-split does.

usage: split_gguf.py IN.gguf PREFIX TENSORS

Writes PREFIX-00001-of-0000N.gguf and so on, each with TENSORS tensors at most.
The first has IN's metadata, and all have what says which part they are.
"""

import struct
import sys

ALIGNMENT = 32
STRING, ARRAY = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def text(raw):
    return struct.pack("<Q", len(raw)) + raw


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize(code)))[0]

    def string(self):
        return self.take(self.number("Q"))

    def skip(self, kind):
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            kind, count = self.number("I"), self.number("Q")
            for _ in range(count):
                self.skip(kind)
        else:
            self.take(SIZES[kind])


def padded(data):
    return data + b"\0" * (-len(data) % ALIGNMENT)


with open(sys.argv[1], "rb") as file:
    reader = Reader(file.read())
prefix, most = sys.argv[2], int(sys.argv[3])
reader.take(8)
tensor_count, entry_count = reader.number("Q"), reader.number("Q")
begin = reader.at
for _ in range(entry_count):
    reader.string()
    reader.skip(reader.number("I"))
metadata = reader.data[begin:reader.at]
tensors = []  # name, what follows it but for the offset, offset
for _ in range(tensor_count):
    name, begin = reader.string(), reader.at
    reader.take(8 * reader.number("I") + 4)
    tensors.append((name, reader.data[begin:reader.at], reader.number("Q")))
data = reader.data[len(padded(reader.data[:reader.at])):]
ends = [offset for _, _, offset in tensors[1:]] + [len(data)]

groups = [range(i, min(i + most, tensor_count))
          for i in range(0, tensor_count, most)]
for number, group in enumerate(groups):
    entries = b"" if number else metadata
    for key, kind, code, value in (("no", 2, "H", number),
                                   ("count", 2, "H", len(groups)),
                                   ("tensors.count", 5, "i", tensor_count)):
        entries += text(b"split." + key.encode())
        entries += struct.pack("<I" + code, kind, value)
    infos, body = b"", b""
    for i in group:
        name, info, offset = tensors[i]
        infos += text(name) + info + struct.pack("<Q", len(body))
        body += padded(data[offset:ends[i]])
    out = b"GGUF" + struct.pack("<IQQ", 3, len(group),
                                3 + (0 if number else entry_count))
    path = f"{prefix}-{number + 1:05}-of-{len(groups):05}.gguf"
    with open(path, "wb") as file:
        file.write(padded(out + entries + infos) + body)
