# The lit suite: IR tests (.mlir) and command-line tests (.test).
#
#   %kf_models   models/ (kf-stories, the embedded model)
#   %kf_golden   test/golden/ (one small checkpoint per architecture)
#   %kf_tokenizers  test/runtime/text/data/ (small tokenizers of every kind)
#   %kf_source   the root of the checkout

import os

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
]

# kf-opt and kf-run of this build; FileCheck, not, split-file and count of
# the LLVM that it was built with.
config.environment["PATH"] = os.pathsep.join(
    [config.kf_tools_dir, config.llvm_tools_dir, os.environ.get("PATH", "")]
)
# Tests share no cache and no history with the person who runs them.
config.environment["XDG_CACHE_HOME"] = os.path.join(config.kf_test_dir, "cache")
config.environment["XDG_STATE_HOME"] = os.path.join(config.kf_test_dir, "state")
for name in ("HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "VK_ICD_FILENAMES"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
