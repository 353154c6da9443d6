"""GGUF files as bytes, for scripts that make others of them."""

import struct

ALIGNMENT = 32
STRING, ARRAY = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def text(raw):
    """A string as files have it."""
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


class Tensor:
    def __init__(self, name, sizes, kind, data):
        """`sizes` has the innermost first; `kind` is ggml's number."""
        self.name, self.sizes, self.kind, self.data = name, sizes, kind, data


def read(path):
    """The metadata's bytes, the number of its entries, and the tensors; what
    pads a tensor is in its data."""
    with open(path, "rb") as file:
        reader = Reader(file.read())
    reader.take(8)
    tensor_count, entry_count = reader.number("Q"), reader.number("Q")
    begin = reader.at
    for _ in range(entry_count):
        reader.string()
        reader.skip(reader.number("I"))
    metadata = reader.data[begin:reader.at]
    tensors, offsets = [], []
    for _ in range(tensor_count):
        name = reader.string()
        sizes = [reader.number("Q") for _ in range(reader.number("I"))]
        tensors.append(Tensor(name, sizes, reader.number("I"), b""))
        offsets.append(reader.number("Q"))
    data = reader.data[len(padded(reader.data[:reader.at])):]
    for tensor, begin, end in zip(tensors, offsets, offsets[1:] + [len(data)]):
        tensor.data = data[begin:end]
    return metadata, entry_count, tensors


def write(path, metadata, entry_count, tensors):
    infos, body = b"", b""
    for tensor in tensors:
        infos += text(tensor.name) + struct.pack("<I", len(tensor.sizes))
        infos += struct.pack(f"<{len(tensor.sizes)}Q", *tensor.sizes)
        infos += struct.pack("<IQ", tensor.kind, len(body))
        body += padded(tensor.data)
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), entry_count)
    with open(path, "wb") as file:
        file.write(padded(out + metadata + infos) + body)
