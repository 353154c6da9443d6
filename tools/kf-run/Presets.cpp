//===- Presets.cpp - Options in a bundle ----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Presets.h"

using namespace kf;

namespace {

constexpr PresetSetting kLatency[] = {
    {"parallel", "2", " serve batch "},
};

constexpr PresetSetting kThroughput[] = {
    {"parallel", "0", " serve "},
};

constexpr PresetSetting kMemory[] = {
    {"parallel", "1", " serve batch "},
    {"cache-type", "q8_0", ""},
};

constexpr Preset kPresets[] = {
    {"latency", "tokens of a text follow one another fast, whoever else asks",
     kLatency},
    {"throughput", "most tokens a second of all texts together", kThroughput},
    {"memory", "least memory", kMemory},
};

} // namespace

bool PresetSetting::isOf(std::string_view command) const {
  return commands.empty() ||
         commands.find(" " + std::string(command) + " ") != commands.npos;
}

const Preset *kf::findPreset(std::string_view name) {
  for (const Preset &preset : kPresets)
    if (preset.name == name)
      return &preset;
  return nullptr;
}

std::string kf::presetsText() {
  std::string out = "--preset NAME sets options that are not given:\n";
  for (const Preset &preset : kPresets) {
    out += "\n" + std::string(preset.name) + ": " + std::string(preset.about) +
           "\n";
    for (const PresetSetting &setting : preset.settings) {
      out += "  --" + std::string(setting.option) + " " +
             std::string(setting.value);
      if (!setting.commands.empty())
        out += "  (of" +
               std::string(
                   setting.commands.substr(0, setting.commands.size() - 1)) +
               ")";
      out += "\n";
    }
  }
  return out;
}
