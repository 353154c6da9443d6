//===- MadeWeights.cpp - Tensors that are made of others ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/MadeWeights.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"

using namespace kf;

MadeWeights::Tensor::~Tensor() = default;

void MadeWeights::Tensor::released(const WeightSource &source) const {
  (void)source;
}

MadeWeights::MadeWeights(std::unique_ptr<WeightSource> source)
    : source(std::move(source)) {}
MadeWeights::~MadeWeights() = default;

Result<TensorView> MadeWeights::find(const std::string &name) const try {
  const auto it = made.find(name);
  if (it == made.end())
    return source->find(name);
  Tensor &tensor = *it->second;
  std::lock_guard lock(tensor.making);
  if (!tensor.memory) {
    Result<AlignedBuffer> room = AlignedBuffer::allocate(tensor.bytes);
    if (!room.ok())
      return room.status().in("tensor " + inQuotes(name));
    KF_RETURN_IF_ERROR(tensor.make(*source, name, room->data()));
    tensor.memory = room.take();
  }
  return TensorView{tensor.type, tensor.shape, tensor.memory->data(),
                    tensor.bytes};
} catch (...) {
  return statusOfException();
}

Result<TensorView> MadeWeights::describe(const std::string &name) const try {
  const auto it = made.find(name);
  if (it == made.end())
    return source->describe(name);
  const Tensor &tensor = *it->second;
  return TensorView{tensor.type, tensor.shape, nullptr, tensor.bytes};
} catch (...) {
  return statusOfException();
}

void MadeWeights::release(const std::string &name) const {
  const auto it = made.find(name);
  if (it == made.end())
    return source->release(name);
  Tensor &tensor = *it->second;
  {
    std::lock_guard lock(tensor.making);
    tensor.memory.reset();
  }
  tensor.released(*source);
}

void MadeWeights::releasePart(const std::string &name, uint64_t first,
                              uint64_t bytes) const {
  if (!isMade(name))
    source->releasePart(name, first, bytes);
}

Result<bool> MadeWeights::keepFloat8(const std::string &name) {
  if (isMade(name))
    return false;
  return source->keepFloat8(name);
}

std::vector<FileIdentity> MadeWeights::mappedFiles() const {
  return source->mappedFiles();
}
