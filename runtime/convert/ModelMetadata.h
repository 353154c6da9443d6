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

#include <string>
#include <vector>

namespace kf {

/// The architecture that the GGUF file of a Hugging Face model is of, for
/// readers that go by ggml's definitions: llama for Mistral, and for a Qwen2
/// with what their qwen2 does not have (isBeyondQwen2).
Architecture ggufArchitecture(const ModelConfig &config);

/// Whether `config` is a Qwen2 whose heads do not make up the hidden size, or
/// whose RoPE is scaled as Llama 3's. Architecture llama has both, and biases.
bool isBeyondQwen2(const ModelConfig &config);

/// The RoPE that files have the numbers of: that of all layers that have one,
/// where `config` can be said; null where none has.
const RopeConfig *ggufRope(const ModelConfig &config);

/// What those readers do not load, or do not heed, of a file with `config`: a
/// line each, with the name of the key or tensor.
std::vector<std::string> listReaderProblems(const ModelConfig &config);

/// Adds general.architecture, general.name, general.sampling and the
/// architecture's own keys.
/// What GGUF cannot say about a model (a sliding window of some layers only, an
/// activation other than the architecture's, numbers beyond F32) is an error
/// that names it.
Status addModelMetadata(const ModelConfig &config, const std::string &name,
                        GgufMetadata &metadata);

} // namespace kf

#endif // KF_RUNTIME_CONVERT_MODELMETADATA_H
