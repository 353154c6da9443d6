//===- Presets.h - Options in a bundle --------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `--preset NAME` stands for options that a command has anyway. What a bundle
// holds was measured to make a difference (docs/Options.md).
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_PRESETS_H
#define KF_TOOLS_KF_RUN_PRESETS_H

#include <span>
#include <string>
#include <string_view>

namespace kf {

/// An option of a preset, for the commands that have it.
struct PresetSetting {
  std::string_view option, value;
  std::string_view commands; ///< with blanks around each; empty: all

  bool isOf(std::string_view command) const;
};

struct Preset {
  std::string_view name, about;
  std::span<const PresetSetting> settings;
};

/// Null where there is none of that name.
const Preset *findPreset(std::string_view name);

/// What `kf-run help presets` prints.
std::string presetsText();

} // namespace kf

#endif // KF_TOOLS_KF_RUN_PRESETS_H
