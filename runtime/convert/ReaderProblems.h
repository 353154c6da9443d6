//===- ReaderProblems.h - What llama.cpp does not read ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CONVERT_READERPROBLEMS_H
#define KF_RUNTIME_CONVERT_READERPROBLEMS_H

#include "runtime/model/ModelConfig.h"

#include <string>
#include <vector>

namespace kf {

/// What readers that go by ggml's definitions do not load, or do not heed, of a
/// file with `config`: a line each, with the name of the key or tensor.
std::vector<std::string> listReaderProblems(const ModelConfig &config);

} // namespace kf

#endif // KF_RUNTIME_CONVERT_READERPROBLEMS_H
