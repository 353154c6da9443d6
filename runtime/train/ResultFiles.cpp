//===- ResultFiles.cpp - What a training writes ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ResultFiles.h"

#include "runtime/core/Lines.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

using namespace kf;

/// Of the weights that a model had, in 8 or 4 bits: false of new ones.
static constexpr const char *kQuantizationFile = "hf_quant_config.json";

/// "model-00001-of-00002.safetensors"
static bool isShard(std::string_view name) {
  constexpr std::string_view form = "model-00000-of-00000.safetensors";
  return std::ranges::equal(name, form, [](char c, char expected) {
    return expected == '0' ? c >= '0' && c <= '9' : c == expected;
  });
}

std::vector<std::string> kf::resultFilesIn(const std::string &folder,
                                           bool ofModel) {
  std::vector<std::string> names = {"adapter_config.json",
                                    "adapter_model.safetensors"};
  if (ofModel) {
    names = {"config.json", kWeightsFile, "model.safetensors.index.json",
             kQuantizationFile};
    names.insert(names.end(), std::begin(kFilesBesideWeights),
                 std::end(kFilesBesideWeights));
  }
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::erase_if(names, [&](const std::string &name) {
    return !fs::exists(fs::symlink_status(fs::path(folder) / name, ignored));
  });
  if (ofModel)
    for (const fs::directory_entry &entry :
         fs::directory_iterator(folder, ignored))
      if (std::string name = entry.path().filename().string(); isShard(name))
        names.push_back(std::move(name));
  return names;
}

Status kf::removeFilesOfOthers(const std::string &folder,
                               const std::string &model) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const std::string &name : resultFilesIn(folder, /*ofModel=*/true)) {
    const fs::path path = fs::path(folder) / name;
    if (name == kWeightsFile ||
        (name != kQuantizationFile && !model.empty() &&
         fs::equivalent(fs::path(model) / name, path, error)))
      continue;
    fs::remove(path, error);
    if (error)
      return Status::error("cannot remove " + quotePath(path.string()) + ": " +
                           error.message());
  }
  return Status();
}
