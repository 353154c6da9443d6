//===- Training.h - The programs that train a decoder -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What training asks its compiler for, and what import builds. A batch is B
// rows of T tokens, N = B * T; P tensors are trained, W1 to WP, which are
// arguments of the programs. All but what has a type is f32.
//
//   gradient: the loss of a batch, and its derivatives
//     ids, positions, examples, labels   [N] i32    (TrainingBatch)
//     draw                               [4] i32    of kf.dropout, of adapters
//                                                   that have dropout: word 1
//                                                   is the first module's, and
//                                                   each one's is 1 more
//     W1 .. WP
//     G1 .. GP                           of their shapes
//     -> loss                            []         summed over labels
//     -> G1 + dW1 .. GP + dWP            each in the place of its argument
//
//   loss: that alone
//     ids, positions, examples, labels   [N] i32
//     W1 .. WP
//     -> loss                            []
//
//   update: what an optimizer makes of the gradients
//     rate                               [1]        the learning rate
//     share                              [1]        1 / labels
//     step                               [2]        of AdamW alone: 1 / (1 -
//                                                   beta1^t), 1 / (1 - beta2^t)
//     G1 .. GP
//     W1 .. WP                           updated
//     M1 .. MP                           the first moments, updated
//     V1 .. VP                           the second ones, of AdamW, updated
//     -> norm                            []         of all gradients * share
//     -> W1 .. WP, M1 .. MP, V1 .. VP    each in the place of its argument;
//                                        unchanged where norm is not finite
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_TRAINING_H
#define KF_RUNTIME_MODEL_TRAINING_H

#include "runtime/model/LoraConfig.h"
#include "runtime/model/ModelConfig.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// How weights are changed. Decay is by a share of the weight, beside the
/// gradient (AdamW; Loshchilov and Hutter, "Decoupled Weight Decay
/// Regularization", 2019), and in SGD a part of the gradient, as PyTorch has
/// both.
struct OptimizerOptions {
  enum class Kind {
    AdamW, ///< with bias correction
    Sgd    ///< with momentum: m = momentum * m + g, w = w - rate * m
  };
  Kind kind = Kind::AdamW;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8; ///< AdamW
  double momentum = 0.9;                             ///< Sgd
  double weightDecay = 0.01;
  /// Of norms and biases, too.
  bool decaysAll = false;
  /// Gradients whose global norm is more are made so long; 0: never.
  double clipNorm = 1;

  /// Moments of a gradient that it keeps.
  int64_t states() const { return kind == Kind::AdamW ? 2 : 1; }
  /// An error that names a number of this kind's, as kf-run's option, that no
  /// update can be made with: as f32, which programs compute in, betas are at
  /// least 0 and below 1, epsilon is above 0, momentum from 0 to 1, and the
  /// others are at least 0, and finite.
  Status validate() const;
  bool operator==(const OptimizerOptions &) const = default;
};

enum class TrainingPart { Gradient, Loss, Update };

/// What gradients are computed of, where it is not kept in memory since the
/// loss was: the same, by the same ops.
enum class Recompute {
  Cheap, ///< norms, activations and the like, where that leaves less in memory
  Layers ///< all but what each layer reads, of which its products are made
         ///< again
};

/// What a program of training is compiled for.
struct TrainingShape {
  TrainingPart part = TrainingPart::Gradient;
  int64_t rows = 1, length = 1; ///< B and T
  /// What is trained: the adapters, or without them all weights.
  std::optional<LoraConfig> lora = {};
  OptimizerOptions optimizer = {};        ///< of the update alone
  Recompute recompute = Recompute::Cheap; ///< of the gradient alone

  int64_t tokens() const { return rows * length; }
  /// Whether some of what adapters read is left out: where gradients are.
  bool dropsOut() const {
    return part == TrainingPart::Gradient && lora && lora->dropout > 0;
  }
  /// Inputs before W1 of the programs that read a batch.
  size_t batchInputs() const;
  /// Errors: no rows or no tokens, more than 2^31 - 1 in all, and those of the
  /// optimizer.
  Status validate() const;
};

/// The function's and the program's name: "gradient_4x128", "update".
std::string nameOf(const TrainingShape &shape);
/// All that a program depends on beside the model, as text.
std::string describe(const TrainingShape &shape);

/// Inputs of a batch, in their order.
enum TrainingInput : size_t {
  kTrainIds,
  kTrainPositions,
  kTrainExamples,
  kTrainLabels,
  kTrainInputCount,
  kTrainDraw = kTrainInputCount ///< where TrainingShape::dropsOut()
};
inline constexpr size_t kDrawWords = 4;

inline size_t TrainingShape::batchInputs() const {
  return kTrainInputCount + (dropsOut() ? 1 : 0);
}

/// A tensor that is trained, of f32.
struct TrainedTensor {
  /// As files have it: a checkpoint's, or PEFT's "base_model.model.<module>
  /// .lora_A.weight".
  std::string name;
  /// Of a model's tensor, ListedTensor's; empty: of an adapter.
  std::string key;
  std::vector<int64_t> shape;
  bool decays = false;
};

/// An error where adapters cannot be trained with `dropout`, which is from 0 to
/// below 1 as f32, which programs compute in.
Status checkDropout(double dropout);

/// What `shape` trains, in the order of its programs' arguments. Errors: those
/// of its validate() and of findLoraModules(), and adapters that cannot be
/// trained: of a rank that is not positive, with a dropout that is not from 0
/// to below 1.
Result<std::vector<TrainedTensor>> listTrained(const ModelConfig &config,
                                               const TrainingShape &shape);

/// An error that names the field where `config` has what no derivative is
/// built of.
Status checkTrains(const ModelConfig &config);

/// An error where a model of `config` is not written with new weights.
Status checkSaves(const ModelConfig &config);

} // namespace kf

#endif // KF_RUNTIME_MODEL_TRAINING_H
