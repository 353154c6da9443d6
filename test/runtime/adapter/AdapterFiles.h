//===- AdapterFiles.h - Adapters that tests write ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_ADAPTER_ADAPTERFILES_H
#define KF_TEST_RUNTIME_ADAPTER_ADAPTERFILES_H

#include "runtime/adapter/PeftAdapter.h"
#include "runtime/io/SafetensorsWriter.h"
#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

namespace kf::test {

using nlohmann::json;
using Tensors = std::map<std::string, HostTensor>;

/// Two layers of 2 heads of 4 elements, one of keys, D = 8, F = 6.
inline ModelConfig smallModel(const std::string &type = "llama") {
  const json config = {{"model_type", type},       {"hidden_size", 8},
                       {"num_hidden_layers", 2},   {"num_attention_heads", 2},
                       {"num_key_value_heads", 1}, {"intermediate_size", 6},
                       {"vocab_size", 10}};
  return parseModelConfig(config.dump()).take();
}

inline json smallConfig(std::vector<std::string> targets, int64_t rank = 2) {
  return {{"peft_type", "LORA"},
          {"r", rank},
          {"lora_alpha", 2 * rank},
          {"target_modules", std::move(targets)},
          {"bias", "none"}};
}

/// [rows, columns], counting from `first` on.
inline HostTensor counting(int64_t rows, int64_t columns, float first) {
  HostTensor tensor = HostTensor::zeros(DataType::F32, {rows, columns}).take();
  for (int64_t i = 0; i < rows * columns; ++i)
    tensor.data<float>()[i] = first + static_cast<float>(i);
  return tensor;
}

/// A, from `first` on, and B, from 100 more on, of the modules that a
/// configuration names.
inline Tensors tensorsFor(const json &config, const ModelConfig &model,
                          float first = 1) {
  Tensors tensors;
  const auto modules = parsePeftConfig(config.dump(), model);
  EXPECT_TRUE(modules.ok()) << modules.message();
  if (modules.ok())
    for (const AdaptedModule &each : *modules) {
      tensors[each.module.nameOfA()] =
          counting(each.rank, each.module.in, first);
      tensors[each.module.nameOfB()] =
          counting(each.module.out, each.rank, first + 100);
    }
  return tensors;
}

/// Writes an adapter into a folder.
inline std::string writeAdapter(const TempFolder &folder, const json &config,
                                const Tensors &tensors) {
  folder.write("adapter_config.json", config.dump());
  const Status status =
      writeSafetensors(folder.path("adapter_model.safetensors"), tensors, {});
  EXPECT_TRUE(status.ok()) << status.message();
  return folder.path();
}

} // namespace kf::test

#endif // KF_TEST_RUNTIME_ADAPTER_ADAPTERFILES_H
