//===- QuantizationField.h - How a checkpoint was quantized -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_QUANTIZATIONFIELD_H
#define KF_RUNTIME_MODEL_QUANTIZATIONFIELD_H

#include "runtime/core/Json.h"
#include "runtime/model/ConfigReader.h"

#include <string>
#include <vector>

namespace kf {

/// Accepts a `quantization_config` whose weights ScaledWeights
/// (runtime/io/ScaledWeights.h) reads from the tensors alone: quant_method fp8
/// and fbgemm_fp8, and compressed-tensors with symmetric 8-bit weights; or
/// PackedWeights (runtime/io/PackedWeights.h): bitsandbytes with 4 bits, and
/// NVFP4 of modelopt and compressed-tensors; or ExpertStacks
/// (runtime/io/ExpertStacks.h): mxfp4. FP8 of modelopt, with a scale for the
/// tensor or for a row, is of the first, too; without an algorithm, modelopt
/// has quantized no weights. How they would have activations rounded does not
/// matter, for none are rounded here. Any other is an error that names the
/// field.
Status checkQuantization(const ConfigReader &reader);

/// Whether that of modelopt or compressed-tensors is of a KV cache, too
/// (kv_cache_scheme, kv_cache_quant_algo): the checkpoint may then have scales
/// of keys and values. Adds a line to `warnings` where it is. Errors name the
/// field, which is neither what these write nor null.
Result<bool> readCacheScales(const ConfigReader &reader,
                             std::vector<std::string> &warnings);

/// The same of a folder whose config.json has no `quantization_config` and
/// which ModelOpt has written hf_quant_config.json beside: what the latter's
/// object `quantization` says. Errors name its field.
Result<bool> readModelOptFile(const nlohmann::json &file,
                              std::vector<std::string> &warnings);

} // namespace kf

#endif // KF_RUNTIME_MODEL_QUANTIZATIONFIELD_H
