"""Kernels of a CUDA executable, as kf-run emit-mlir --compile-to=binary makes
it.

  ptx.py print FILE                 each kernel's name, threads, shared memory
                                    and PTX
  ptx.py assemble PTXAS FILE CHIP.. has ptxas take every kernel for each chip,
                                    and prints registers, shared memory and
                                    spills; fails where it refuses one, where
                                    shared memory is not what the executable
                                    says, or where more registers are
                                    spilled than a few
  ptx.py functions PTXAS FILE.mlir CHIP..
                                    compiles every function of the file for each
                                    chip and assembles it; what there is no code
                                    for is named
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile

# ptxas trades a few registers of attention for another block.
MOST_SPILLED = 16  # bytes

EXECUTABLE = os.path.join(
    os.path.dirname(os.path.abspath(__file__)),
    "../../../../runtime/program/Executable.h",
)


def read_magic():
    """What files of executables begin with, and the number of their form."""
    with open(EXECUTABLE) as file:
        (version,) = re.findall(r"kFileVersion = (\d+);", file.read())
    return b"KFEXEC\0" + bytes([int(version)])


MAGIC = read_magic()


def read_kernels(path):
    with open(path, "rb") as file:
        data = file.read()
    assert data.startswith(MAGIC), path + " is no executable"
    at = len(MAGIC) + 4
    (length,) = struct.unpack_from("<Q", data, at)
    head = json.loads(data[at + 8 : at + 8 + length])
    assert head["target"] == "cuda", path + " is for " + head["target"]
    at += 8 + length + 8
    for kernel in head["kernels"]:
        (length,) = struct.unpack_from("<Q", data, at)
        text = data[at + 8 : at + 8 + length]
        at += 8 + length
        assert text.endswith(b"\0") and text.count(b"\0") == 1, kernel
        yield kernel, text[:-1].decode()
    assert at + 4 == len(data), "there is more than the kernels"


def assemble(ptxas, name, kernel, text, chip):
    # PTX of an architecture of its own assembles for that alone.
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        done = subprocess.run(
            [ptxas, "-v", "-arch=" + chip, file.name, "-o", "/dev/null"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    if done.returncode:
        print(f"{name} {chip}: {done.stdout.strip()}")
        return False

    def number(pattern):
        found = re.search(r"(\d+) " + pattern, done.stdout)
        return int(found.group(1)) if found else 0

    spilled = number("bytes spill stores")
    shared = number("bytes smem")
    print(
        f"{name} {chip}: {number('registers')} registers, {shared} bytes shared,"
        f" {spilled} bytes spilled"
    )
    static = kernel["scratch_bytes"] - kernel["dynamic_bytes"]
    if shared != static:
        print(f"  but the executable says {static} bytes shared")
    return spilled <= MOST_SPILLED and shared == static


def assemble_file(ptxas, path, chips):
    good = True
    for kernel, text in read_kernels(path):
        for chip in chips:
            good &= assemble(ptxas, kernel["name"], kernel, text, chip)
    return good


def assemble_functions(ptxas, source, chips):
    with open(source) as file:
        functions = re.findall(r"^func\.func @(\w+)\(", file.read(), re.MULTILINE)
    good = bool(functions)
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        for function in functions:
            for chip in chips:
                done = subprocess.run(
                    ["kf-run", "emit-mlir", source, "--function", function]
                    + ["--device", "cuda", "--target-cpu", chip]
                    + ["--compile-to", "binary", "-o", out],
                    stderr=subprocess.PIPE,
                    text=True,
                )
                if done.returncode == 0:
                    good &= assemble_file(ptxas, out, [chip])
                    continue
                print(f"no code for {function}: {done.stderr.strip()}")
                good &= "no CUDA kernel for" in done.stderr
                break
    return good


def main(command, *arguments):
    if command == "print":
        for kernel, text in read_kernels(arguments[0]):
            print(
                f"kernel @{kernel['name']} threads {kernel['workgroup_size']}"
                f" shared {kernel['scratch_bytes']}"
                + (" of its launch" if kernel["dynamic_bytes"] else "")
                + (", waits" if kernel["waits"] else "")
            )
            print(text)
        return 0
    ptxas, path, *chips = arguments
    run = assemble_functions if command == "functions" else assemble_file
    return 0 if run(ptxas, path, chips) else 1


sys.exit(main(*sys.argv[1:]))
