//===- SamplingDefaults.h - How a model wants to be sampled -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a model's makers recommend for choosing tokens: generation_config.json's
// fields, and the general.sampling.* metadata that llama.cpp's converter makes
// of them. Nothing of it changes what the model computes, so a value that is of
// no use is a warning that names it, and counts as absent.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_SAMPLINGDEFAULTS_H
#define KF_RUNTIME_MODEL_SAMPLINGDEFAULTS_H

#include "runtime/io/Gguf.h"
#include "runtime/model/ConfigReader.h"
#include "runtime/model/ModelConfig.h"

#include <string>
#include <vector>

namespace kf {

/// Reads generation_config.json's do_sample, temperature, top_k, top_p, min_p,
/// repetition_penalty and max_new_tokens. Adds a line to `warnings` for each
/// value that is of no use, and for each other field that would change which
/// tokens are chosen, such as typical_p, unless its value asks for nothing.
SamplingDefaults readSamplingDefaults(const ConfigReader &reader,
                                      std::vector<std::string> &warnings);

/// Reads general.sampling.{temp,top_k,top_p,min_p,penalty_repeat,
/// penalty_last_n}. There is no do_sample. Warnings are as above; of other
/// general.sampling.* metadata, all that asks for something is named.
SamplingDefaults readSamplingDefaults(const Gguf &gguf,
                                      std::vector<std::string> &warnings);

/// The metadata's keys, for who writes a GGUF file.
inline constexpr const char *kGgufTemperature = "general.sampling.temp";
inline constexpr const char *kGgufTopK = "general.sampling.top_k";
inline constexpr const char *kGgufTopP = "general.sampling.top_p";
inline constexpr const char *kGgufMinP = "general.sampling.min_p";
inline constexpr const char *kGgufRepetitionPenalty =
    "general.sampling.penalty_repeat";
inline constexpr const char *kGgufPenaltyWindow =
    "general.sampling.penalty_last_n";

} // namespace kf

#endif // KF_RUNTIME_MODEL_SAMPLINGDEFAULTS_H
