//===- QuantizationField.h - How a checkpoint was quantized -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_QUANTIZATIONFIELD_H
#define KF_RUNTIME_MODEL_QUANTIZATIONFIELD_H

#include "runtime/model/ConfigReader.h"

namespace kf {

/// Accepts a `quantization_config` whose weights ScaledWeights
/// (runtime/io/ScaledWeights.h) reads from the tensors alone: quant_method fp8
/// and fbgemm_fp8, and compressed-tensors with symmetric 8-bit weights; or
/// PackedWeights (runtime/io/PackedWeights.h): bitsandbytes with 4 bits, and
/// NVFP4 of modelopt and compressed-tensors; or ExpertStacks
/// (runtime/io/ExpertStacks.h): mxfp4. How they would have activations rounded
/// does not matter, for none are rounded here. Any other is an error that names
/// the field.
Status checkQuantization(const ConfigReader &reader);

} // namespace kf

#endif // KF_RUNTIME_MODEL_QUANTIZATIONFIELD_H
