//===- ResultFilesTest.cpp - What a training writes -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ResultFiles.h"

#include "../TempFile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

using namespace kf;
using namespace kf::test;

namespace {

constexpr const char *kFiles[] = {"config.json",
                                  "hf_quant_config.json",
                                  "model-00001-of-00001.safetensors",
                                  "model.safetensors",
                                  "notes.txt",
                                  "tokenizer.json"};

std::vector<std::string> sortedFiles(const std::string &folder) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

} // namespace

TEST(ResultFiles, NothingStaysOfAnotherModel) {
  const TempFolder folder;
  for (const char *name : kFiles)
    folder.write(name, "{}");
  const Status status = removeFilesOfOthers(folder.path(), "");
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(sortedFiles(folder.path()),
            (std::vector<std::string>{"model.safetensors", "notes.txt"}));
}

/// Weights that take the place of quantized ones are not quantized.
TEST(ResultFiles, WhatSaysHowWeightsWereQuantizedIsOfNoResult) {
  const TempFolder folder;
  for (const char *name : kFiles)
    folder.write(name, "{}");
  const Status status = removeFilesOfOthers(folder.path(), folder.path());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(sortedFiles(folder.path()),
            (std::vector<std::string>{
                "config.json", "model-00001-of-00001.safetensors",
                "model.safetensors", "notes.txt", "tokenizer.json"}));
}

TEST(ResultFiles, WhatSaysHowWeightsWereQuantizedIsReplaced) {
  const TempFolder folder;
  folder.write("hf_quant_config.json", "{}");
  EXPECT_EQ(resultFilesIn(folder.path(), /*ofModel=*/true),
            std::vector<std::string>{"hf_quant_config.json"});
  EXPECT_TRUE(resultFilesIn(folder.path(), /*ofModel=*/false).empty());
}
