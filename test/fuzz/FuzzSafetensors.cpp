//===- FuzzSafetensors.cpp - Any bytes as a safetensors file --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/PackedWeights.h"
#include "runtime/io/Safetensors.h"
#include "runtime/io/ScaledWeights.h"
#include "runtime/weights/RowScales.h"

#include <cstdlib>

using namespace kf;

/// Reads every byte of every tensor.
static uint64_t readAll(const WeightSource &source) {
  uint64_t sum = 0;
  for (const std::string &name : source.names()) {
    auto view = source.find(name);
    if (!view.ok())
      continue;
    auto count = checkedElementCount(view->shape, sizeOf(view->type));
    if (!count.ok() || uint64_t(*count) * sizeOf(view->type) != view->bytes)
      std::abort();
    for (uint64_t i = 0; i < view->bytes; ++i)
      sum += static_cast<const uint8_t *>(view->data)[i];
    source.release(name);
  }
  return sum;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto file =
      Safetensors::fromMemory(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file.ok())
    return 0;
  // Whatever is accepted must lie within the input.
  uint64_t sum = readAll(**file);
  std::unique_ptr<WeightSource> source = file.take();
  if (PackedWeights::isNeeded(*source)) {
    auto packed = PackedWeights::create(std::move(source));
    if (!packed.ok())
      return 0;
    sum += readAll(**packed);
    source = packed.take();
  }
  if (ScaledWeights::isNeeded(*source)) {
    auto scaled = ScaledWeights::create(std::move(source));
    if (scaled.ok()) {
      sum += readAll(**scaled);
      for (const std::string &name : (*scaled)->names()) {
        auto kept = (*scaled)->keepFloat8(name);
        if (kept.ok() && *kept && !(*scaled)->find(scaleName(name)).ok())
          std::abort();
      }
      sum += readAll(**scaled);
    }
  }
  return sum == ~uint64_t(0);
}
