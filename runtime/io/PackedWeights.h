//===- PackedWeights.h - Tensors of 4-bit codes and their scales -*- C++
//-*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Folders of bitsandbytes' 4 bits (NF4 and FP4) and of NVFP4 hold a matrix as
// bytes of two codes each and, beside it, what their values are multiplied by.
// Seen through PackedWeights such a matrix is a bf16 tensor like any other, and
// what scales it is not there.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_PACKEDWEIGHTS_H
#define KF_RUNTIME_IO_PACKEDWEIGHTS_H

#include "runtime/io/MadeWeights.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// Presents each matrix `x` [N, K] of 4-bit codes as bf16: the product of a
/// code's value and its block's scale, computed in f32 and rounded once, to
/// nearest even. Blocks are runs of elements, row after row. Of bitsandbytes:
///   x                 ui8, N K / 2: the first of two codes in the high half
///   x.quant_map       f32 [16], the codes' values
///   x.absmax          f32, one for each block; or, of scales that are codes
///                     themselves, ui8, which stand for
///                     nested_quant_map[code] * nested_absmax[block / nested
///                     block size] + nested offset
///   x.nested_absmax   f32, and
///   x.nested_quant_map f32 [256]
///   x.quant_state.bitsandbytes__nf4 or ...__fp4
///                     ui8, JSON: the shape, and sizes of blocks
/// Of NVFP4, E2M1 in blocks of 16 as ModelOpt and compressed-tensors store it:
///   x or x_packed     ui8 [N, K / 2]: the first of two codes in the low half
///   x_scale           F8_E4M3 [N, K / 16], one for each block
///   x_scale_2         f32, one that multiplies all of them; or
///   x_global_scale    f32, one that divides them
/// Other tensors pass as they are. Scales of activations (`.input_scale`,
/// `.input_global_scale`) are hidden: activations are not rounded here.
class PackedWeights : public MadeWeights {
public:
  /// Errors, which name a tensor: parts that are missing, or of another shape
  /// or type than the others want. Scales that are not finite, or whose
  /// product with the largest of the codes' values is not finite in bf16, are
  /// an error of find().
  static Result<std::unique_ptr<PackedWeights>>
  create(std::unique_ptr<WeightSource> source);
  /// Whether `source` has tensors that need this.
  static bool isNeeded(const WeightSource &source);
  ~PackedWeights() override;

  /// A line for the user: how many matrices there are of 4 bits, and in how
  /// many times their memory.
  std::string note() const;
  std::vector<std::string> names() const override;

private:
  struct Entry;
  explicit PackedWeights(std::unique_ptr<WeightSource> source);
  /// Takes in the matrix `name` of bitsandbytes, whose quant_state is `state`.
  Status addQuantState(const std::string &name, const std::string &state);
  /// Takes in the matrix `name` of NVFP4, of the codes in `codes`.
  Status addNvfp4(const std::string &name, const std::string &codes);

  std::vector<std::string> visible; ///< sorted
};

} // namespace kf

#endif // KF_RUNTIME_IO_PACKEDWEIGHTS_H
