//===- ModelMetadata.h - A configuration as GGUF metadata -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CONVERT_MODELMETADATA_H
#define KF_RUNTIME_CONVERT_MODELMETADATA_H

#include "runtime/io/GgufWriter.h"
#include "runtime/model/ModelConfig.h"

#include <cstdint>
#include <optional>
#include <string>

namespace kf {

/// The architecture that the GGUF file of a Hugging Face model is of, for
/// readers that go by ggml's definitions: llama for Mistral, Mixtral, and a
/// Qwen2 with what their qwen2 does not have (isBeyondQwen2), and OLMo 2 for
/// OLMo 3.
Architecture ggufArchitecture(const ModelConfig &config);

/// Whether `config` is a Qwen2 whose heads do not make up the hidden size, or
/// whose RoPE is scaled as Llama 3's. Architecture llama has both, and biases.
bool isBeyondQwen2(const ModelConfig &config);

/// The RoPEs that files have the numbers of. Null where no layer turns.
struct GgufRopePlan {
  /// Of all layers that turn, or, where those with a window have one of their
  /// own, of the others.
  const RopeConfig *full = nullptr;
  const RopeConfig *sliding = nullptr; ///< of layers with a window
};
GgufRopePlan ggufRopes(const ModelConfig &config);

/// The period p of layers of which every p-th, as counted from 1, sees
/// everything, and all others have a window; nothing where there is none. Files
/// say it so because llama.cpp reads no array of truth values there.
std::optional<int64_t> slidingPeriod(const ModelConfig &config);

/// Whether `config` scales RoPE's frequencies as Llama 3 does, which files have
/// a tensor for.
bool isScaledAsLlama3(const ModelConfig &config);

/// Whether the factor of q k^T goes without saying in a file.
bool isUsualScale(const ModelConfig &config);

/// Adds general.architecture, general.name, general.sampling and the
/// architecture's own keys.
/// What GGUF cannot say about a model (a window of some layers where the
/// architecture has it in all, an activation other than the architecture's,
/// numbers beyond F32) is an error that names it.
Status addModelMetadata(const ModelConfig &config, const std::string &name,
                        GgufMetadata &metadata);

} // namespace kf

#endif // KF_RUNTIME_CONVERT_MODELMETADATA_H
