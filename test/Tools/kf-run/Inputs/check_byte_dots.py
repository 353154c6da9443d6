"""Products of block-quantized weights with every instruction that multiplies
bytes on this machine: all give the exact sums.

check_byte_dots.py KF_RUN FOLDER

Rows have a largest magnitude of 127 in each 32 elements, and weights have
powers of two as scales, so that rounding rows changes nothing and all sums are
integers that a float holds: instructions, widths and orders must not matter.
Some are as large as bytes allow, where sums of 16 bits saturate.
"""
import pathlib
import random
import struct
import subprocess
import sys

# What is compiled for, and what it multiplies bytes with.
CPUS = {
    "x86-64": "pmaddwd",
    "x86-64-v2": "pmaddubsw, 128 bits",
    "x86-64-v3": "pmaddubsw, 256 bits",
    "x86-64-v4": "pmaddubsw, 512 bits",
    "alderlake": "vpdpbusd, 256 bits",
    "cascadelake": "vpdpbusd, 512 bits",
    "native": "the best",
}
# Without a fused multiply-add, a sum of 32 elements may be off by one, which a
# scale of up to 15 multiplies, and there are 8 of them.
UNFUSED = {"x86-64": 8 * 15, "x86-64-v2": 8 * 15}
K, N = 256, 48
random.seed(1)


def codes(n, low, high):
    """Row n of weights: the extremes first, then anything."""
    if n == 0:
        return [low] * K
    if n == 1:
        return [high] * K
    if n == 2:
        return [low, high] * (K // 2)
    return [random.randint(low, high) for _ in range(K)]


def q8_0(n):
    values = codes(n, -128, 127)
    blocks = [values[i : i + 32] for i in range(0, K, 32)]
    return b"".join(struct.pack("<e32b", 1, *block) for block in blocks), values


def q4_0(n):
    values = codes(n, 0, 15)
    packed = b""
    for i in range(0, K, 32):
        block = values[i : i + 32]
        packed += struct.pack("<e", 0.5)
        packed += bytes(block[j] | block[j + 16] << 4 for j in range(16))
    return packed, [(value - 8) * 0.5 for value in values]


def q4_k(n):
    values = codes(n, 0, 15)
    scales = [15 if n < 3 else random.randint(0, 15) for _ in range(8)]
    mins = [0 if n == 0 else random.randint(0, 15) for _ in range(8)]
    packed = struct.pack("<ee", 1, 2) + bytes(scales[:4]) + bytes(mins[:4])
    packed += bytes(scales[j] | mins[j] << 4 for j in range(4, 8))
    for i in range(0, K, 64):
        packed += bytes(values[i + j] | values[i + j + 32] << 4 for j in range(32))
    return packed, [
        scales[k // 32] * value - 2 * mins[k // 32] for k, value in enumerate(values)
    ]


def q6_k(n):
    values = codes(n, 0, 63)
    scales = [-7 if n < 3 else random.randint(-7, 7) for _ in range(16)]
    low, high = b"", b""
    for half in (0, 128):
        v = values[half : half + 128]
        low += bytes((v[j] & 15) | (v[j + 64] & 15) << 4 for j in range(64))
        high += bytes(
            sum((v[j + 32 * part] >> 4) << 2 * part for part in range(4))
            for j in range(32)
        )
    packed = low + high + struct.pack("<16be", *scales, 1)
    return packed, [scales[k // 16] * (value - 32) for k, value in enumerate(values)]


TYPES = {"q4_0": (2, q4_0), "q8_0": (8, q8_0), "q4_k": (12, q4_k), "q6_k": (14, q6_k)}


def rows(count):
    """Numbers that 8 bits hold as they are."""
    result = []
    for m in range(count):
        row = [random.randint(-127, 127) for _ in range(K)]
        if m < 2:
            row = [127 if m == 0 or k % 2 else -127 for k in range(K)]
        row[::32] = [127] * (K // 32)
        result.append(row)
    return result


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def write_gguf(path, tensors):
    head, data = b"", b""
    for name, kind, packed in tensors:
        head += text(name) + struct.pack("<IQQIQ", 2, K, N, kind, len(data))
        data += packed + bytes(-len(packed) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 0) + head
    path.write_bytes(head + bytes(-len(head) % 32) + data)


def main(kf_run, folder):
    folder.mkdir(parents=True, exist_ok=True)
    tensors, weights = [], {}
    for name, (kind, make) in TYPES.items():
        made = [make(n) for n in range(N)]
        weights[name] = [values for _, values in made]
        tensors.append((name, kind, b"".join(packed for packed, _ in made)))
    write_gguf(folder / "weights.gguf", tensors)

    # One row, and several, are different kernels.
    inputs = {1: rows(1), 7: rows(7)}
    arguments, results, body, names = [], [], [], []
    options = []
    for m, x in inputs.items():
        arguments.append(f"%x{m}: tensor<{m}x{K}xf32>")
        file = folder / f"x{m}.bin"
        file.write_bytes(struct.pack(f"<{m * K}f", *sum(x, [])))
        options += ["--input", f"{m}x{K}xf32=@{file}"]
    for name in TYPES:
        w = f"tensor<{N}x{K}x!kf.quant<{name}>>"
        body.append(f'%{name} = kf.weight ["{name}"] : {w}')
        for m, x in inputs.items():
            y = f"tensor<{m}x{N}xf32>"
            names.append(f"%{name}_{m}")
            results.append(y)
            body.append(
                f"{names[-1]} = kf.matmul %x{m}, %{name} : tensor<{m}x{K}xf32>, {w}"
            )
            sums = [
                sum(a * b for a, b in zip(row, weight))
                for row in x
                for weight in weights[name]
            ]
            assert max(map(abs, sums)) * 2 < 1 << 24
            file = folder / f"{name}_{m}.bin"
            file.write_bytes(struct.pack(f"<{len(sums)}f", *sums))
            options += ["--expected", f"{m}x{N}xf32=@{file}"]
    program = folder / "products.mlir"
    program.write_text(
        f"func.func @products({', '.join(arguments)}) -> ({', '.join(results)}) {{\n  "
        + "\n  ".join(body)
        + f"\n  return {', '.join(names)} : {', '.join(results)}\n}}\n"
    )
    ran = []
    for cpu in CPUS:
        command = [kf_run, "exec", str(program), "--target-cpu", cpu, "-t", "1"]
        command += ["--weights", str(folder / "weights.gguf"), "--tuning-db", "none"]
        command += ["--atol", str(UNFUSED.get(cpu, 0)), "--rtol", "0", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode and "this machine cannot run" in done.stderr:
            continue
        assert done.returncode == 0, (cpu, CPUS[cpu], done.stdout, done.stderr)
        ran.append(cpu)
    assert {"x86-64", "native"} <= set(ran), ran
    print("ran", ", ".join(ran))


main(sys.argv[1], pathlib.Path(sys.argv[2]))
