//===- KFStateOps.cpp - Layers that keep a state --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpChecks.h"

#include "runtime/model/ConfigLimits.h"

#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kf;

LogicalResult GatedDeltaOp::inferReturnTypes(MLIRContext *,
                                             std::optional<Location> loc,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  auto v = cast<RankedTensorType>(adaptor.getV().getType());
  if (v.getRank() != 3)
    return cannotInfer<GatedDeltaOp>(
        loc, "C1: v must be [T, V, dv] of float elements", v);
  const int64_t heads = adaptor.getTile().empty() ? v.getDimSize(1) : 1;
  types.push_back(getRowsOf(v, {heads, v.getDimSize(2)}, v.getElementType()));
  return success();
}

/// a * b + c * d; nothing where 64 bits have no room for it.
static std::optional<int64_t> addProducts(int64_t a, int64_t b, int64_t c,
                                          int64_t d) {
  const std::optional<int64_t> product = llvm::checkedMul(c, d);
  return product ? llvm::checkedMulAdd(a, b, *product) : std::nullopt;
}

LogicalResult GatedDeltaOp::verify() {
  RankedTensorType q = tensorType(getQ()), v = tensorType(getV()),
                   a = tensorType(getA());
  auto isHeads = [](RankedTensorType type) {
    return type.getRank() == 3 && isFloatTensor(type) &&
           !type.isDynamicDim(1) && !type.isDynamicDim(2);
  };
  if (!isHeads(q) || !isHeads(v))
    return emitOpError("C1: q, k and v must be [T, heads, D] of float "
                       "elements, the last two dimensions static, found ")
           << q << " and " << v;
  const int64_t keyHeads = getKeyHeads(), heads = getValueHeads();
  if (heads % keyHeads != 0)
    return emitOpError("C1: heads of v (")
           << heads << ") must be a multiple of those of q and k (" << keyHeads
           << ")";
  if (a.getRank() != 2 || !isFloatTensor(a) || a.getDimSize(1) != heads)
    return emitOpError("C2: a and b must be [T, ")
           << heads << "] of a float type, found " << a;
  RankedTensorType convolution = tensorType(getConvolution());
  // Twice: K * dk may be as large as 64 bits allow.
  std::optional<int64_t> rows =
      addProducts(keyHeads, getKeyDim(), heads, getValueDim());
  if (rows)
    rows = llvm::checkedMulAdd(keyHeads, getKeyDim(), *rows);
  const int64_t taps =
      convolution.getRank() == 3 ? convolution.getDimSize(2) : 0;
  if (!rows || taps < 2 || taps > ::kf::kMaxTaps ||
      !isFloatOfShape(convolution, {*rows, 1, taps}))
    return emitOpError("C3: convolution must be [")
           << (rows ? Twine(*rows) : Twine("2 * K * dk + V * dv"))
           << ", 1, taps] of a float type, with 2 to " << ::kf::kMaxTaps
           << " taps, found " << convolution;
  if (!isFloatOfShape(getDecay().getType(), {heads}) ||
      !isFloatOfShape(getBias().getType(), {heads}))
    return emitOpError("C4: decay and bias must be [")
           << heads << "] of a float type, found " << getDecay().getType()
           << " and " << getBias().getType();
  StateCacheType cache = getCache().getType();
  // No more channels than the convolution has rows.
  const std::optional<int64_t> elements =
      addProducts(getKeyDim(), getValueDim(), taps - 1, getChannels());
  if (!elements || cache.getHeads() != heads ||
      cache.getElements() != *elements)
    return emitOpError("C5: the cache must have ")
           << heads << " heads of "
           << (elements ? Twine(*elements)
                        : Twine("dk * dv + (taps - 1) * (2 * dk + dv)"))
           << " elements, found " << cache;
  const int64_t layer = static_cast<int64_t>(getLayer());
  if (layer < 0 || layer >= cache.getLayers())
    return emitOpError("C6: layer ")
           << layer << " is outside the cache's " << cache.getLayers();
  if (!isPerRow(getPositions(), q) || !haveSameRows(v, q) ||
      !haveSameRows(a, q))
    return emitOpError("C7: positions must be i32, one for each row of q, v "
                       "and a, found ")
           << getPositions().getType();
  RankedTensorType states = tensorType(getStates());
  if (states.getRank() != 1 || !states.getElementType().isInteger(32))
    return emitOpError("C8: states must be [S] of i32, found ") << states;
  if (!getTile().empty() && getTile().size() != 2)
    return emitOpError("C9: tile must name a sequence and a head, found ")
           << getTile().size() << " entries";
  return success();
}

RowBytes GatedDeltaOp::getCacheBytes() {
  StateCacheType cache = getCache().getType();
  return {getStates(), llvm::SaturatingMultiply<uint64_t>(
                           llvm::SaturatingMultiply<uint64_t>(
                               cache.getHeads(), cache.getElements()),
                           2 * sizeof(float))};
}

SmallVector<utils::IteratorType> GatedDeltaOp::getLoopTypes() {
  return {parallel(), parallel()};
}

/// A loop over sequences, and one over value heads.
SmallVector<AffineMap> GatedDeltaOp::getLoopMaps() {
  MLIRContext *c = getContext();
  const AffineMap matrix = loopMap(c, 2, {-1, -1}),
                  heads = loopMap(c, 2, {-1, -1, -1}),
                  vector = loopMap(c, 2, {-1}), none = loopMap(c, 2, {});
  SmallVector<AffineMap> maps = {heads,  heads,  heads,  matrix,
                                 matrix, heads,  vector, vector,
                                 none,   vector, vector, loopMap(c, 2, {0})};
  maps.append(getTile().size(), none);
  maps.push_back(loopMap(c, 2, {-1, 1, -1}));
  return maps;
}
