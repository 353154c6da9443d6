//===- AdapterNames.cpp - What adapters' matrices are called --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/TensorList.h"

using namespace kf;

std::vector<AdapterGroup> kf::adapterGroups(const TensorNames &names) {
  std::vector<AdapterGroup> groups;
  auto add = [&](std::vector<std::string_view> products) {
    std::erase(products, std::string_view());
    if (!products.empty())
      groups.push_back({products.front(), products});
  };
  add({names.fusedQkv, names.query, names.key, names.value});
  add({names.output});
  add({names.gate, names.up});
  add({names.down});
  return groups;
}

std::string kf::adapterKeyOfA(std::string_view group, int64_t number) {
  return std::string(group) + ".lora_A." + std::to_string(number);
}

std::string kf::adapterKeyOfB(std::string_view product, int64_t number) {
  return std::string(product) + ".lora_B." + std::to_string(number);
}
