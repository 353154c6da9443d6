//===- ModelOps.h - The ops that a model's layers are made of ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_IMPORT_MODELOPS_H
#define KF_LIB_IMPORT_MODELOPS_H

#include "Checkpoint.h"

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/IR/Builders.h"

namespace mlir::kf {

/// Writes single ops of a step, with a model's weights, by name, and its
/// features. T is the step's number of rows.
class ModelOps {
public:
  /// `rowCount` is T, or ShapedType::kDynamic; `activation` the element type of
  /// what layers hand on.
  ModelOps(MLIRContext *context, const ::kf::ModelConfig &config,
           const Checkpoint &checkpoint, FloatType activation, int64_t rowCount,
           StringRef place)
      : config(config), names(::kf::tensorNames(config)), b(context),
        loc(NameLoc::get(b.getStringAttr(place))), checkpoint(checkpoint),
        activation(activation), rowCount(rowCount) {}
  virtual ~ModelOps() = default;

  /// Says which part of the model the next ops belong to.
  void setPlace(const Twine &place) {
    loc = NameLoc::get(b.getStringAttr(place));
  }
  /// Makes T available, from an argument that has T rows.
  void setRows(Value argument);

  //===--- Ranks ----------------------------------------------------------===//

  /// The sum of what all ranks have.
  Value summed(Value x);
  /// The columns of all ranks, `columns` in all.
  Value gathered(Value x, int64_t columns);

  //===--- Norms ----------------------------------------------------------===//

  /// The model's norm, "<name>.weight" and ".bias".
  Value norm(Value x, const Twine &name);
  Value rmsNorm(Value x, const Twine &name);
  Value rmsNorm(Value x, Value weight);
  /// The same where the factor is the weight in any case, not 1 more.
  Value scaleNorm(Value x, Value weight);
  /// RMS norm of the rows of x without a weight.
  Value plainNorm(Value x);
  /// The norm of rows of which each rank has some elements, as many as others,
  /// and has those of the weight: x / sqrt(mean(x * x) + eps) * weight, whose
  /// mean is that of the ranks' means. Squares are summed in f32.
  Value widthNorm(Value x, const Twine &name);

  //===--- Products and elementwise ---------------------------------------===//

  /// x W^T + bias, with "<name>.weight" and ".bias".
  virtual Value linear(Value x, const Twine &name);
  /// Whether nothing but linear() may read "<name>.weight": one op for a whole
  /// block would not know of what is beside it.
  virtual bool isProductAlone(const Twine &name);
  Value rope(Value x, Value positions, const ::kf::RopeConfig &rope);
  /// The factor of q k^T. Queries and keys that are turned as a whole, by
  /// cosines and sines of some magnitude, are those of 1 times that.
  FloatAttr attentionScale(const ::kf::LayerConfig &layer, int64_t headDim);
  ActivationKindAttr activationAttr();
  /// x as f32.
  Value widened(Value x);
  /// x, of f32, as what layers hand on.
  Value rounded(Value x);
  /// x times a sigmoid of `gate`, of as many elements.
  Value gatedBy(Value x, Value gate);
  /// x [T, columns] times `factor`, [columns], [T, 1], or [1] for all.
  Value scaledBy(Value x, Value factor);
  /// `factor` times x [rows, columns]: f32 multiplies, and the product alone is
  /// rounded to what x has.
  Value scaled(Value x, double factor);
  /// cap * tanh(x / cap) of x [rows, columns]; x where cap is 0.
  Value capped(Value x, double cap);

  //===--- Weights --------------------------------------------------------===//

  /// [values] of f32.
  Value constant(ArrayRef<float> values);
  /// The kf.weight of "<name>.weight".
  Value weight(const Twine &name);
  /// The kf.weight of "<name>.bias"; null where the model has none.
  Value bias(const Twine &name);
  /// The kf.weight of the tensor `name`, or what stands in its place; null
  /// where the model has none.
  virtual Value weightOf(StringRef name);

  /// The kf.weight [parts, members, ...] of the tensors of each part's names,
  /// one a member, which are alike.
  Value stack(ArrayRef<SmallVector<std::string>> parts);

  //===--- Shapes ---------------------------------------------------------===//

  /// x [T, columns] in a kernel of its own: a sum of one. What a view shows, or
  /// all layers read, would be in the text of the kernel that reads it: no
  /// other layer's product could be the same kernel, and all would compute it.
  Value inMemory(Value x);
  /// [T, heads * dim] -> [T, heads, dim].
  Value toHeads(Value x, int64_t heads, int64_t dim);
  /// [T, heads, dim] -> [T, heads * dim].
  Value fromHeads(Value x);
  /// [T] -> [T, 1].
  Value asColumn(Value x);
  /// Columns [first, first + count) of x, or of each of its heads.
  Value columns(Value x, int64_t first, int64_t count);

  const ::kf::ModelConfig &config;
  const ::kf::TensorNames &names;
  OpBuilder b;
  Location loc; ///< says which part of the model an op belongs to

protected:
  const Checkpoint &checkpoint;
  FloatType activation; ///< elements of what the layers hand on
  int64_t rowCount;

private:
  FloatAttr eps();
  /// Whether "<name>.weight" is in 8 bits.
  bool hasScales(const Twine &name);
  /// The factors of the rows of "<name>.weight"; null where it has none.
  Value scales(const Twine &name);

  OpFoldResult rows; ///< T
};

} // namespace mlir::kf

#endif // KF_LIB_IMPORT_MODELOPS_H
