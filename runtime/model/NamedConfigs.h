//===- NamedConfigs.h - Well-known models' sizes ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The configurations of models that people measure, so that a benchmark needs
// no download: with dummy weights, speed and memory are those of the real
// model.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_NAMEDCONFIGS_H
#define KF_RUNTIME_MODEL_NAMEDCONFIGS_H

#include <span>
#include <string_view>

namespace kf {

struct NamedConfig {
  std::string_view name;   ///< "llama-3.2-1b"
  std::string_view origin; ///< the model whose published config.json it is
  std::string_view json;   ///< what parseModelConfig reads
};

/// All of them, the smallest of each family first.
std::span<const NamedConfig> namedConfigs();

/// The one called `name`; null if there is none.
const NamedConfig *findNamedConfig(std::string_view name);

} // namespace kf

#endif // KF_RUNTIME_MODEL_NAMEDCONFIGS_H
