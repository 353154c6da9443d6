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

struct ProgramText {
  std::string text; ///< one function of kf ops
  std::vector<HostTensor> inputs;
};

struct ProgramOptions {
  int threads = 1;
  int64_t copies = 1;  ///< of the weights, each run with the next
  int64_t context = 1; ///< positions that caches have room for
  /// Runs once, before the program, on the same caches; none where empty.
  ProgramText before;
};

/// Compiles `program` for this CPU, with a device of its own. Its result() is
/// the function's first one, of f32.
Result<std::unique_ptr<Contender>>
compileProgram(const ProgramText &program,
               const std::map<std::string, HostTensor> &weights,
               const ProgramOptions &options);

} // namespace kf::bench

#endif // KF_BENCHMARKS_PROGRAM_H
