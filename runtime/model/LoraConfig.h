//===- LoraConfig.h - Low-rank additions to a model's matrices --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An adapter has two thin matrices for some of a model's: y = W x + scale * B
// (A x), with A [rank, in] and B [out, rank] (E. Hu et al., "LoRA: Low-Rank
// Adaptation of Large Language Models", 2021). What it says of itself, and
// which of the model's tensors it is for, under the names that PEFT has for
// them.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_LORACONFIG_H
#define KF_RUNTIME_MODEL_LORACONFIG_H

#include "runtime/model/ModelConfig.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

struct LoraConfig {
  int64_t rank = 0;
  double alpha = 0;
  bool rankStabilized = false;
  /// Modules, by their names or the ends of them from a dot on: "q_proj",
  /// "mlp.c_proj"; kAllLinear alone: every one that there is.
  std::vector<std::string> targets;
  double dropout = 0; ///< of x, before A, in training alone

  /// alpha / rank or, with rankStabilized, alpha / sqrt(rank)
  /// (D. Kalajdzievski, "A Rank Stabilization Scaling Factor", 2023).
  double scale() const;
};

inline constexpr std::string_view kAllLinear = "all-linear";

/// A module of the model's Hugging Face form that an adapter may add to.
struct LoraModule {
  /// Of the model's tensors, one whose rows are some of the module's. Modules
  /// of some families are stored as one and are several tensors here: Phi-3's
  /// qkv_proj and gate_up_proj.
  struct Part {
    std::string key;                ///< ListedTensor's
    int64_t firstRow = 0, rows = 0; ///< in the module's out
    /// Rows of a head whose two halves are taken in turns, as in GGUF: row 2 i
    /// + j of a head is the module's row j * pairedRows / 2 + i. 0: they are in
    /// the module's order.
    int64_t pairedRows = 0;
  };

  std::string name; ///< "model.layers.0.self_attn.q_proj"
  int64_t layer = 0;
  int64_t in = 0, out = 0;
  /// It is stored [in, out], which PEFT calls fan_in_fan_out. A and B are as
  /// they are for others.
  bool transposed = false;
  std::vector<Part> parts; ///< in the order of their rows

  /// PEFT's names of A [rank, in] and B [out, rank]:
  /// "base_model.model.<name>.lora_A.weight".
  std::string nameOfA() const;
  std::string nameOfB() const;
};

/// What PEFT puts before a module's name in its files.
inline constexpr std::string_view kPeftPrefix = "base_model.model.";

/// The modules of `config`'s model that adapters may add to, in the order of
/// its layers: products of attention and of feed-forward blocks. Those of
/// experts, of latent and of linear attention are not among them.
std::vector<LoraModule> loraModules(const ModelConfig &config);

/// Whether `target` names `module`: it is all of the name, or its end behind a
/// dot.
bool isLoraTarget(std::string_view target, std::string_view module);

/// Those modules that `targets` name. Errors: no targets, or one that names
/// none, with the names that there are.
Result<std::vector<LoraModule>>
findLoraModules(const ModelConfig &config,
                const std::vector<std::string> &targets);

} // namespace kf

#endif // KF_RUNTIME_MODEL_LORACONFIG_H
