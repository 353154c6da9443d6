//===- PoolingConfig.h - How a model's embeddings are made ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_POOLINGCONFIG_H
#define KF_RUNTIME_MODEL_POOLINGCONFIG_H

#include "runtime/core/Status.h"
#include "runtime/io/Gguf.h"

#include <optional>
#include <string>
#include <string_view>

namespace kf {

/// What becomes of the rows of a text's tokens.
enum class Pooling {
  None, ///< all of them
  Mean, ///< their mean
  Cls,  ///< the first one
  Last  ///< the last one
};
/// "none", "mean", "cls", "last".
std::string_view nameOf(Pooling pooling);
/// Nothing for any other name.
std::optional<Pooling> poolingOfName(std::string_view name);

/// What a model's files say of it. Who only generates need not know, so that
/// nothing in them keeps a model from being opened.
struct PoolingConfig {
  std::optional<Pooling> pooling = {}; ///< none: they do not say
  std::optional<bool> normalizes = {}; ///< embeddings have the length 1
  /// Why what they say cannot be done; nothing else is said then. It names
  /// files without their folder.
  Status unsupported = {};
};

/// Of a folder: sentence-transformers' modules.json and the config.json of its
/// Pooling module. Without a modules.json, nothing is said.
PoolingConfig loadPoolingConfig(const std::string &folder);
/// Of a GGUF file: `<architecture>.pooling_type`, where 0 says nothing.
PoolingConfig readPoolingConfig(const Gguf &gguf);

} // namespace kf

#endif // KF_RUNTIME_MODEL_POOLINGCONFIG_H
