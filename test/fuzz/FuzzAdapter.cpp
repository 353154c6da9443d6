//===- FuzzAdapter.cpp - adapter_config.json ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/adapter/PeftAdapter.h"

#include <cmath>
#include <cstdlib>

/// A model of Llama's modules, and one whose modules are several tensors.
static kf::ModelConfig modelOf(const char *type) {
  return kf::parseModelConfig(
             R"({"hidden_size": 8, "num_hidden_layers": 2,
                 "num_attention_heads": 2, "num_key_value_heads": 1,
                 "intermediate_size": 6, "vocab_size": 10, "model_type": ")" +
             std::string(type) + "\"}")
      .take();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const kf::ModelConfig models[] = {modelOf("llama"), modelOf("phi3")};
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  for (const kf::ModelConfig &model : models) {
    const auto modules = kf::parsePeftConfig(text, model);
    if (!modules.ok()) {
      if (modules.message().find('\n') != std::string::npos)
        std::abort();
      continue;
    }
    if (modules->empty())
      std::abort();
    for (const kf::AdaptedModule &each : *modules)
      if (each.rank < 1 || !std::isfinite(static_cast<float>(each.scale)) ||
          each.module.in < 1)
        std::abort();
  }
  return 0;
}
