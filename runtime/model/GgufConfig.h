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

/// The key, behind the architecture's name, of how many of the layers guess
/// further tokens: the last ones, which are not read.
inline constexpr std::string_view kGgufGuessingLayers = "nextn_predict_layers";

/// Reads the configuration of a model of an architecture that
/// isGgufArchitecture() knows; Mistral's and Mixtral's files say llama, and
/// OLMo 3's olmo2.
Result<ModelConfig> readGgufConfig(const Gguf &gguf);

/// What goes without saying in files of an architecture: the activation,
/// whether rows of q and k are in the order of interleaved rotation, which
/// layers turn queries and keys, whether yarn's bounds are whole numbers, and
/// the factor of q k^T, by `config`'s heads, layers and hidden size.
Activation ggufActivation(Architecture architecture);
bool isInterleavedInGguf(Architecture architecture);
bool isTurnedInGguf(Architecture architecture, int64_t layer, bool hasWindow);
bool isYarnTruncatedInGguf(Architecture architecture);
/// Of how many layers with a window the last one has none, where a file does
/// not say it; 0: all are alike.
int64_t ggufFullLayers(Architecture architecture);
/// Whether queries and keys have the norms of the architecture.
bool hasGgufQkNorm(const ModelConfig &config);
double ggufAttentionScale(const ModelConfig &config);

/// Whether readGgufConfig knows the architecture of that name.
bool isGgufArchitecture(std::string_view name);
/// What general.architecture calls it; empty where files of it are not read,
/// or where they are those of another one.
std::string_view ggufNameOf(Architecture architecture);

/// The metadata and tables that readGgufConfig depends on but for token ids and
/// sampling, as text to hash.
std::string ggufConfigText(const Gguf &gguf);

} // namespace kf

#endif // KF_RUNTIME_MODEL_GGUFCONFIG_H
