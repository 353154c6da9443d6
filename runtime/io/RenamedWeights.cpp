//===- RenamedWeights.cpp - Tensors by other names ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/RenamedWeights.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/weights/RowScales.h"

using namespace kf;

const std::string *RenamedWeights::nameOf(const std::string &name) const {
  for (const Names *names : {&renamed, &scales})
    if (auto found = names->find(name); found != names->end())
      return &found->second;
  return nullptr;
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

Result<bool> RenamedWeights::keepFloat8(const std::string &name) try {
  const std::string *own = nameOf(name);
  if (!own)
    return false;
  KF_ASSIGN_OR_RETURN(const bool isKept, source->keepFloat8(*own));
  if (isKept)
    scales[scaleName(name)] = scaleName(*own);
  return isKept;
} catch (...) {
  return statusOfException();
}

std::vector<std::string> RenamedWeights::names() const {
  std::vector<std::string> names; // a map's are sorted
  for (const auto &[name, own] : renamed)
    names.push_back(name);
  return names;
}
