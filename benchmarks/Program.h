//===- Program.h - A function of kf ops as a contender ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_BENCHMARKS_PROGRAM_H
#define KF_BENCHMARKS_PROGRAM_H

#include "benchmarks/Comparison.h"
#include "runtime/core/Tensor.h"

#include <map>
#include <string>
#include <vector>

namespace kf::bench {

struct ProgramOptions {
  int threads = 1;
  int64_t copies = 1;  ///< of the weights, each run with the next
  int64_t context = 1; ///< positions that caches have room for
};

/// Compiles the function in `text` for this CPU, and runs it on `inputs`. Its
/// result() is the function's first one, of f32.
Result<std::unique_ptr<Contender>> compileProgram(
    const std::string &text, const std::map<std::string, HostTensor> &weights,
    const std::vector<HostTensor> &inputs, const ProgramOptions &options);

} // namespace kf::bench

#endif // KF_BENCHMARKS_PROGRAM_H
