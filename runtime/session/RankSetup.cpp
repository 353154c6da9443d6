//===- RankSetup.cpp - What a rank needs to open its part -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/RankSetup.h"

#include "runtime/collective/MessageBytes.h"
#include "runtime/core/Exceptions.h"

using namespace kf;

/// Calls `field` with each field, in their order: to write them, or to read
/// them.
template <typename Setup, typename Field>
static void forEachText(Setup &setup, Field field) {
  field(setup.model.path);
  field(setup.model.dummy.weightType);
  field(setup.model.dummy.tokenizer);
  field(setup.device.device);
}

std::string kf::encode(const RankSetup &setup) {
  std::string message;
  MessageWriter writer(message);
  forEachText(setup, [&](const std::string &text) {
    writer.put(std::string_view(text));
  });
  writer.put(static_cast<uint8_t>(setup.model.dummy.seed.has_value()));
  writer.put(std::string_view(setup.model.dummy.seed.value_or("")));
  writer.put(static_cast<uint8_t>(setup.model.float8));
  writer.put(setup.device.threads);
  writer.put(setup.context);
  writer.put(static_cast<uint8_t>(setup.parallelism));
  return message;
}

Result<RankSetup> kf::decodeSetup(std::string_view message) try {
  RankSetup setup;
  MessageReader reader(message);
  uint8_t hasSeed = 0, float8 = 0, parallelism = 0;
  std::string seed;
  forEachText(setup, [&](std::string &text) { reader.get(text); });
  reader.get(hasSeed);
  reader.get(seed);
  reader.get(float8);
  reader.get(setup.device.threads);
  reader.get(setup.context);
  reader.get(parallelism);
  if (reader.failed() || !reader.atEnd() || hasSeed > 1 ||
      (hasSeed == 0 && !seed.empty()) ||
      float8 > static_cast<uint8_t>(Float8Weights::KeptIfAny) ||
      parallelism > static_cast<uint8_t>(Parallelism::Context))
    return Status::error("the leading rank begins with what says no model",
                         StatusCode::Internal);
  if (hasSeed)
    setup.model.dummy.seed = std::move(seed);
  setup.model.float8 = static_cast<Float8Weights>(float8);
  setup.parallelism = static_cast<Parallelism>(parallelism);
  return setup;
} catch (...) {
  return statusOfException();
}
