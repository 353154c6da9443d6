//===- MissingKernels.cpp - What devices have no code for -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MissingKernels.h"

#include <string_view>
#include <vector>

namespace {

struct Missing {
  /// Beginnings of devices' names.
  std::vector<std::string_view> devices;
  std::string_view file;
  /// The function, or with a '*' at the end all that begin so.
  std::string_view function;
  std::string_view error; ///< a part of it
};

/// f64, and how CPUs and matrix units of NVIDIA lay out weights.
const std::vector<Missing> missing = {
    {{"vulkan", "cuda"}, "arithmetic.mlir", "chain_f64", "xf64>"},
    {{"vulkan", "cuda"}, "arithmetic.mlir", "extf_f32_f64", "xf64>"},
    {{"vulkan", "cuda"}, "arithmetic.mlir", "fptosi_f64_i64", "xf64>"},
    {{"vulkan", "cuda"}, "arithmetic.mlir", "sitofp_i64_f64", "xf64>"},
    {{"vulkan", "cuda"}, "arithmetic.mlir", "truncf_f64_f32", "xf64>"},
    {{"vulkan", "cuda"}, "reductions.mlir", "sum_f64", "xf64>"},
    {{"vulkan", "cuda"}, "matmul.mlir", "packed", "'kf.pack'"},
    {{"vulkan", "cuda"}, "matmul.mlir", "packed_gate", "'kf.pack'"},
    {{"vulkan", "cuda"}, "matmul.mlir", "interleaved", "'kf.pack'"},
    {{"vulkan", "cuda"}, "matmul.mlir", "interleaved_gate", "'kf.pack'"},
    {{"vulkan", "cuda"},
     "matmul.mlir",
     "packed_weight",
     "#kf.layout<panel = 32>"},
    {{"cpu", "x86", "cortex", "neoverse"},
     "streams.mlir",
     "fragments*",
     "#kf.fragments>' yet; use --device=reference"},
    {{"cpu", "x86", "cortex", "neoverse"},
     "block_streams.mlir",
     "fragments*",
     "#kf.fragments>' yet; use --device=reference"},
    {{"cpu", "x86", "cortex", "neoverse"},
     "block_tiles.mlir",
     "fragments*",
     "#kf.fragments>' yet; use --device=reference"},
    // Halves that lie 8 apart are no vectors of 4.
    {{"cortex", "neoverse"},
     "matmul.mlir",
     "interleaved",
     "that interleave the weight's layout (8)"},
};

bool matches(std::string_view name, std::string_view pattern) {
  return pattern.ends_with('*')
             ? name.starts_with(pattern.substr(0, pattern.size() - 1))
             : name == pattern;
}

} // namespace

std::string kf::test::missingKernel(const std::string &device,
                                    const std::string &file,
                                    const std::string &function) {
  for (const Missing &entry : missing) {
    if (entry.file != file || !matches(function, entry.function))
      continue;
    for (std::string_view beginning : entry.devices)
      if (device.starts_with(beginning))
        return std::string(entry.error);
  }
  return "";
}
