//===- BlockMatmulEmitter.cpp - Products with block-quantized weights -----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// dot = f32: a code becomes (d * scale) * value + min in registers, and is
// multiplied by the broadcast element of x.
//
//===----------------------------------------------------------------------===//

#include "FloatMatmulEmitter.h"
#include "PackedPanel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class BlockMatmulEmitter : public FloatMatmulEmitter {
public:
  BlockMatmulEmitter(KernelEmitter &e, const ::kf::BlockFormat &format)
      : FloatMatmulEmitter(e), blocks(e, format), format(format) {}

private:
  void computeRows(int64_t most) override {
    blocks.bind(weights, panel, extent, prefetches());
    FloatMatmulEmitter::computeRows(most);
  }

  SmallVector<Value> loadPanelRow(Value, Value, Groups) override {
    llvm_unreachable("blocks are read a sub-block at a time");
  }

  void unpackPanel(Value p) override {
    beginUnpacking();
    forElements(p, {0, vectorsPerRow()}, {},
                [&](Value k, ArrayRef<Value> w, MutableArrayRef<Value>) {
                  storeUnpacked(k, w);
                });
  }

  SmallVector<Value> sumTile(Value p, RegisterTile tile) override {
    if (unpacks())
      return FloatMatmulEmitter::sumTile(p, tile);
    auto sum = [&](PackedPanel::Vectors vectors) {
      SmallVector<Value> zeros(tile.rows * vectors.count,
                               e.splat(e.f32(0.0), lanes));
      return forElements(
          p, vectors, zeros,
          [&](Value k, ArrayRef<Value> w, MutableArrayRef<Value> sums) {
            step(tile, k, w, sums);
          });
    };
    if (!takesGroupsInTurn())
      return sum({0, vectorsPerRow()});
    int64_t count = vectorsPerRow() / groups;
    return sumInTurn(
        tile, [&](int64_t group) { return sum({group * count, count}); });
  }

  /// Calls `body` for each k, with `vectors` of that row of the panel and what
  /// the loop carries.
  SmallVector<Value> forElements(
      Value p, PackedPanel::Vectors vectors, ValueRange inits,
      function_ref<void(Value, ArrayRef<Value>, MutableArrayRef<Value>)> body) {
    return blocks.forUnits(p, vectors, inits, [&](Value u, ValueRange args) {
      SmallVector<Value> state(args);
      Value first = e.mul(u, e.index(PackedPanel::unit));
      for (int64_t quad = 0; quad < PackedPanel::quadsPerUnit; ++quad) {
        int64_t perSubBlock = blocks.quadsPerSubBlock();
        if (quad % perSubBlock == 0)
          std::tie(scales, mins) = blocks.scales(quad / perSubBlock);
        SmallVector<Value> codes = blocks.codes(quad);
        for (int64_t j = 0; j < 4; ++j)
          body(e.add(first, e.index(quad * 4 + j)), valuesOf(codes, j), state);
      }
      return state;
    });
  }

  /// Element `j` of a quad's `codes`.
  SmallVector<Value> valuesOf(ArrayRef<Value> codes, int64_t j) {
    SmallVector<Value> w;
    for (auto [v, code] : llvm::enumerate(codes)) {
      Value value = e.mul(scales[v], valueOf(code, j));
      w.push_back(mins.empty() ? value : e.add(value, mins[v]));
    }
    return w;
  }

  /// value(code) of element `j` of a quad, as floats.
  Value valueOf(Value codes, int64_t j) {
    Value code = blocks.code(codes, j);
    if (format.table)
      return e.lookUp(format.table, code);
    if (blocks.packed.zero)
      code = arith::SubIOp::create(b, loc, code,
                                   blocks.splatInt(blocks.packed.zero));
    return blocks.toFloat(code);
  }

  PackedPanel blocks;
  const ::kf::BlockFormat &format;
  SmallVector<Value> scales, mins; // of the current sub-block
};

} // namespace

void mlir::kf::emitBlockMatmulKernel(KernelEmitter &emitter) {
  auto type = cast<RankedTensorType>(
      emitter.find<ProductOpInterface>().getW().getType());
  const ::kf::BlockFormat &format =
      getStorage(cast<QuantType>(type.getElementType()).getFormat());
  if (emitter.schedule.getDot() != DotKind::F32)
    return emitInt8MatmulKernel(emitter, format);
  BlockMatmulEmitter(emitter, format).emit();
}
