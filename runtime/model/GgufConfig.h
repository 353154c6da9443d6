//===- GgufConfig.h - What a GGUF file says about its model -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arithmetic of a decoder, read from a GGUF file's metadata. What the file
// leaves out takes the default of the GGUF specification and of llama.cpp.
// Every key that begins with the architecture's name is either known or an
// error that names it: such keys are there to change the arithmetic. What else
// looks like a mistake is a warning (GgufOddities.h).
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_GGUFCONFIG_H
#define KF_RUNTIME_MODEL_GGUFCONFIG_H

#include "runtime/io/Gguf.h"
#include "runtime/model/ModelConfig.h"

#include <string>
#include <string_view>

namespace kf {

/// Reads the configuration of a model of the architecture llama (Mistral's
/// files say llama too), qwen2, qwen3 or gpt2. Files of llama have the rows of
/// their q and k matrices in the order of interleaved rotation.
Result<ModelConfig> readGgufConfig(const Gguf &gguf);

/// Whether readGgufConfig knows the architecture of that name.
bool isGgufArchitecture(std::string_view name);

/// The metadata that readGgufConfig depends on but for token ids and sampling,
/// as text to hash.
std::string ggufConfigText(const Gguf &gguf);

} // namespace kf

#endif // KF_RUNTIME_MODEL_GGUFCONFIG_H
