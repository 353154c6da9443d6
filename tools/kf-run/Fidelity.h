//===- Fidelity.h - How near a device's logits are --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_FIDELITY_H
#define KF_TOOLS_KF_RUN_FIDELITY_H

#include "ModelFlags.h"

#include "runtime/measure/EvalReport.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// KL divergence of the distributions that two rows of finite logits stand for:
/// sum of p (log p - log q), p being those of `reference`. Not negative.
double klDivergence(std::span<const float> reference,
                    std::span<const float> device);

/// Reads `texts` of token ids, each by itself, on the device that `options`
/// name and on the reference, and compares what follows each id. Needs no
/// tokenizer. Errors: logits that are not finite, a text that the context has
/// no room for.
Result<FidelityResult>
measureFidelity(const ModelFlags &options,
                std::span<const std::vector<int32_t>> texts);

/// Ids to measure with, `count` of them at most: those of the texts of `file`
/// (readDocuments), or, where that is empty, of a text that comes with kf-run;
/// of a model without a tokenizer, random ones.
Result<std::vector<std::vector<int32_t>>>
fidelityTexts(const ModelFlags &options, const std::string &file,
              int64_t count);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_FIDELITY_H
