//===- RenamedWeights.cpp - Tensors by other names ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/RenamedWeights.h"

#include "runtime/core/Quote.h"

using namespace kf;

const std::string *RenamedWeights::nameOf(const std::string &name) const {
  auto found = renamed.find(name);
  return found == renamed.end() ? nullptr : &found->second;
}

static Status noTensor(const std::string &name) {
  return Status::error("the checkpoint has no tensor " + inQuotes(name));
}

Result<TensorView> RenamedWeights::find(const std::string &name) const {
  const std::string *own = nameOf(name);
  return own ? source->find(*own) : noTensor(name);
}

Result<TensorView> RenamedWeights::describe(const std::string &name) const {
  const std::string *own = nameOf(name);
  return own ? source->describe(*own) : noTensor(name);
}

void RenamedWeights::release(const std::string &name) const {
  if (const std::string *own = nameOf(name))
    source->release(*own);
}

void RenamedWeights::releasePart(const std::string &name, uint64_t first,
                                 uint64_t bytes) const {
  if (const std::string *own = nameOf(name))
    source->releasePart(*own, first, bytes);
}

std::vector<std::string> RenamedWeights::names() const {
  std::vector<std::string> names; // a map's are sorted
  for (const auto &[name, own] : renamed)
    names.push_back(name);
  return names;
}
