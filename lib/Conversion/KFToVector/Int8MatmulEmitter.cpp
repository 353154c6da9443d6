//===- Int8MatmulEmitter.cpp - Products in 8 bits -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// dot = i8 or s8: rows of x are rounded to 8 bits with a scale for every 32
// elements (a unit), here or before by kf.quantize_rows. A quad's products are
// added up in integers; scales are applied once a sub-block.
//
// Rows that are divided evenly make tiles of any height.
//
// Integers are added to the bits of 1.5 * 2^23, where one is the unit in the
// last place: read as a float, a sum is that number and the integer, exactly.
// One multiply-add then takes the number off and applies the weight's scale,
// which has few enough bits for its product with the number to be exact, so
// that the result is that of a conversion and a multiplication. A sum is less
// than 2^19, and may be 2^22. CPUs without a fused multiply-add (x86-64 before
// v3) would round that product: there the number is taken off before, which is
// exact.
//
//===----------------------------------------------------------------------===//

#include "PackedPanel.h"
#include "RowQuantizer.h"
#include "VectorMatmulEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

constexpr int64_t unit = PackedPanel::unit;

class Int8MatmulEmitter : public VectorMatmulEmitter {
public:
  Int8MatmulEmitter(KernelEmitter &e, const ::kf::BlockFormat &format)
      : VectorMatmulEmitter(e), blocks(e, format), format(format) {
    // The product of kIntegerBase and a scale of 8 bits of exponent overflows.
    fuses = getMachine(op).fusesMultiplyAdd &&
            format.scale == ::kf::BlockScale::Half;
  }

private:
  /// What a sub-block's codes are multiplied with and by: vectors of the panel.
  struct SubBlock {
    SmallVector<Value> scales, mins;
    SmallVector<Value> offsets; // -kIntegerBase * scales; none if !fuses
    std::function<SmallVector<Value>(int64_t quad)> codes;
  };

  //===--- Rows -----------------------------------------------------------===//

  void computeRows(int64_t most) override {
    blocks.bind(weights, panel, extent, prefetches());
    int64_t subBlocks = extent / format.subBlock;
    if (op.getScales()) {
      bindRows();
      if (tileRows > 1 || hasExperts())
        copyRows(most);
    } else {
      x.codes = e.scratch({most, rowStride(64)}, b.getI8Type());
      x.scales = e.scratch({most, extent / unit});
      x.sums = e.scratch({most, subBlocks}, b.getI32Type());
      x.firstRow = e.index(0);
      e.loop(rows, [&](Value row) {
        quantizeRow(e, op.getX(), xRow(row), row, format.subBlock, x);
      });
    }
    if (blocks.packed.zero && !isSigned())
      starts = e.scratch({most, subBlocks}, b.getI32Type());
    if (blocks.hasMins())
      totals = e.scratch({most, subBlocks});
    if (starts || totals)
      e.loop(rows, [&](Value row) { prepareSums(row); });
  }

  /// Takes rows that kf.quantize_rows rounded.
  void bindRows() {
    SmallVector<Value> at;
    x.codes = e.sourceMemref(op.getX(), at);
    x.firstRow = at[0];
    x.scales = e.sourceMemref(op.getScales(), at);
    x.sums = e.sourceMemref(op.getSums(), at);
  }

  /// Of row `row`, in what holds its codes.
  Value sourceRow(Value row) {
    return e.add(x.firstRow, op.getScales() ? xRow(row).front() : row);
  }

  /// Copies codes and scales to where rows of a register tile do not share sets
  /// of the nearest cache.
  void copyRows(int64_t most) {
    Value codes = e.scratch({most, rowStride(64)}, b.getI8Type());
    Value scales = e.scratch({most, extent / unit});
    e.loop(rows, [&](Value row) {
      Value from = sourceRow(row);
      auto copy = [&](Value source, Value target, int64_t count) {
        Type element = cast<MemRefType>(source.getType()).getElementType();
        e.forPieces(e.index(count), [&](Value at, unsigned width) {
          Value piece =
              vector::LoadOp::create(b, loc, e.vectorType(width, element),
                                     source, ValueRange{from, at});
          vector::StoreOp::create(b, loc, piece, target, ValueRange{row, at});
        });
      };
      copy(x.codes, codes, extent);
      copy(x.scales, scales, extent / unit);
    });
    x.codes = codes;
    x.scales = scales;
    rowsAreCopied = true;
  }

  /// Row `row` of what a sub-block's sum begins with, and of what its minimums
  /// are multiplied by: the sum of (code - zero) * q is that of code * q less
  /// zero times that of q, which is in `x.sums`.
  void prepareSums(Value row) {
    Value from = sourceRow(row);
    int64_t perUnit = blocks.subBlocksPerUnit();
    e.forPieces(e.index(extent / unit), [&](Value u, unsigned units) {
      unsigned width = units * perUnit;
      Value sub = e.mul(u, e.index(perUnit));
      VectorType type = e.vectorType(width, b.getI32Type());
      Value sums =
          vector::LoadOp::create(b, loc, type, x.sums, ValueRange{from, sub});
      auto splat = [&](int32_t value) -> Value {
        return arith::ConstantOp::create(
            b, loc, DenseElementsAttr::get(type, b.getI32IntegerAttr(value)));
      };
      if (starts) {
        Value less =
            arith::MulIOp::create(b, loc, sums, splat(blocks.packed.zero));
        Value start =
            arith::SubIOp::create(b, loc, splat(kIntegerBaseBits), less);
        vector::StoreOp::create(b, loc, start, starts, ValueRange{row, sub});
      }
      if (!totals)
        return;
      Value scales =
          e.loadMemref(x.scales, {rowsAreCopied ? row : from, u}, units);
      for (int64_t count = 1; count < perUnit; count *= 2)
        scales = vector::InterleaveOp::create(b, loc, scales, scales);
      Value floats = arith::SIToFPOp::create(b, loc, e.vectorType(width), sums);
      e.store(e.mul(scales, floats), totals, {row, sub});
    });
  }

  //===--- Panels ---------------------------------------------------------===//

  /// Writes a byte for each code of the panel, and floats for its scales.
  void unpackPanel(Value p) override {
    int64_t all = vectorsPerRow();
    makeRoom(extent / unit, all);
    blocks.forUnits(p, {0, all}, {}, [&](Value u, ValueRange) {
      for (int64_t sub = 0; sub < blocks.subBlocksPerUnit(); ++sub) {
        SubBlock kept = keptSubBlock(u, sub);
        for (int64_t quad = 0; quad < blocks.quadsPerSubBlock(); ++quad)
          kept.codes(quad);
      }
      return SmallVector<Value>();
    });
  }

  /// Makes room for `units` units of `vectors` vectors.
  void makeRoom(int64_t units, int64_t vectors) {
    int64_t subBlocks = units * blocks.subBlocksPerUnit();
    unpackedCodes = e.scratch(
        {units * PackedPanel::quadsPerUnit, vectors, 4 * lanes}, b.getI8Type());
    unpackedScales =
        e.scratch({subBlocks, 1 + fuses + blocks.hasMins(), vectors, lanes});
  }

  /// Sub-block `sub` of the unit that PackedPanel reads, written as one of
  /// number `u` of those: its scales at once, codes as they are taken.
  SubBlock keptSubBlock(Value u, int64_t sub) {
    SubBlock result = packedSubBlock(sub);
    auto put = [&](int64_t field, ArrayRef<Value> values) {
      for (auto [v, value] : llvm::enumerate(values))
        e.store(value, unpackedScales,
                {subBlockIndex(u, sub), e.index(field),
                 e.index(static_cast<int64_t>(v)), e.index(0)});
    };
    put(0, result.scales);
    put(1, result.offsets);
    put(1 + fuses, result.mins);
    result.codes = [=, this, take = result.codes](int64_t quad) {
      SmallVector<Value> codes = take(quad);
      for (auto [v, value] : llvm::enumerate(codes))
        vector::StoreOp::create(b, loc, bytesOf(value), unpackedCodes,
                                ValueRange{quadIndex(u, sub, quad),
                                           e.index(static_cast<int64_t>(v)),
                                           e.index(0)});
      return codes;
    };
    return result;
  }

  Value subBlockIndex(Value u, int64_t sub) {
    return e.add(e.mul(u, e.index(blocks.subBlocksPerUnit())), e.index(sub));
  }
  Value quadIndex(Value u, int64_t sub, int64_t quad) {
    return e.add(e.mul(u, e.index(PackedPanel::quadsPerUnit)),
                 e.index(sub * blocks.quadsPerSubBlock() + quad));
  }

  /// Sub-block `sub` of the unit that PackedPanel reads.
  SubBlock packedSubBlock(int64_t sub) {
    SubBlock result;
    std::tie(result.scales, result.mins) = blocks.scales(sub);
    Value base = e.splat(e.f32(-kIntegerBase), lanes);
    for (Value scale : fuses ? ArrayRef(result.scales) : ArrayRef<Value>())
      result.offsets.push_back(e.mul(scale, base));
    result.codes = [=, this](int64_t quad) {
      SmallVector<Value> codes =
          blocks.codes(sub * blocks.quadsPerSubBlock() + quad);
      if (format.table)
        for (Value &code : codes)
          code = lookUpBytes(code);
      else if (isSigned())
        for (Value &code : codes)
          code = arith::XOrIOp::create(
              b, loc, code, blocks.splatInt(static_cast<int32_t>(0x80808080u)));
      return codes;
    };
    return result;
  }

  /// Field `field` of sub-block `number` of what keptSubBlock() wrote.
  SmallVector<Value> loadField(Value number, int64_t field,
                               PackedPanel::Vectors vectors) {
    SmallVector<Value> values;
    for (int64_t i = 0; i < vectors.count; ++i)
      values.push_back(e.loadMemref(
          unpackedScales,
          {number, e.index(field), e.index(vectors.first + i), e.index(0)},
          lanes));
    return values;
  }

  /// Sub-block `sub` of unit `u` of what keptSubBlock() wrote.
  SubBlock unpackedSubBlock(Value u, int64_t sub,
                            PackedPanel::Vectors vectors) {
    SubBlock result;
    Value number = subBlockIndex(u, sub);
    result.scales = loadField(number, 0, vectors);
    if (fuses)
      result.offsets = loadField(number, 1, vectors);
    if (blocks.hasMins())
      result.mins = loadField(number, 1 + fuses, vectors);
    result.codes = [=, this](int64_t quad) {
      SmallVector<Value> codes;
      for (int64_t i = 0; i < vectors.count; ++i)
        codes.push_back(vector::LoadOp::create(
            b, loc, e.vectorType(4 * lanes, b.getI8Type()), unpackedCodes,
            ValueRange{quadIndex(u, sub, quad), e.index(vectors.first + i),
                       e.index(0)}));
      return codes;
    };
    return result;
  }

  //===--- Sums -----------------------------------------------------------===//

  /// With several rows a unit takes so long that memory would idle between the
  /// lines of one and of the next, were they all asked for by it.
  bool prefetchesMeanwhile() const override {
    return !isLeftToHardware() && (tileRows > 1 || mostTiles > 1);
  }

  /// Not where scales come twice as often: of 7 rows, sums are spilled then.
  bool prefetchesTileByTheWay() const override {
    return blocks.subBlocksPerUnit() == 1;
  }

  /// A group after the other: of many rows, the sums of one are in registers
  /// alone; of one row, memory is read from one end to the other.
  SmallVector<Value> sumTile(Value p, RegisterTile tile) override {
    int64_t count = vectorsPerRow() / groups;
    return sumInTurn(tile, [&](int64_t group) {
      return sumVectors(p, tile, {group * count, count}, e.index(group));
    });
  }

  /// Sums of a row of the tile, a vector each.
  using Sums = MutableArrayRef<Value>;
  /// Calls `add` with those of row `row` of the tile, which it changes.
  using SumsOf =
      function_ref<void(int64_t row, function_ref<void(Sums sums)> add)>;

  /// Sums of `vectors`, which are those of group `group`.
  SmallVector<Value> sumVectors(Value p, RegisterTile tile,
                                PackedPanel::Vectors vectors, Value group) {
    SmallVector<Value> zeros(tile.rows * vectors.count,
                             e.splat(e.f32(0.0), lanes));
    auto sumUnit = [&](Value u, ValueRange state) {
      if (prefetchesMeanwhile())
        prefetchBehind(p, tile, group, u);
      SmallVector<Value> sums(state);
      auto sumsOf = [&](int64_t row, function_ref<void(Sums)> add) {
        add(Sums(sums).slice(row * vectors.count, vectors.count));
      };
      addUnit(
          tile, u,
          [&](int64_t sub) {
            return unpacks() ? unpackedSubBlock(u, sub, vectors)
                             : packedSubBlock(sub);
          },
          sumsOf);
      return sums;
    };
    if (!unpacks())
      return blocks.forUnits(p, vectors, zeros, sumUnit);
    auto loop =
        e.loop(e.index(0), e.index(extent / unit), e.index(1), zeros, sumUnit);
    return SmallVector<Value>(loop.getResults());
  }

  /// The groups of several rows, one after the other, are parts of one tile.
  void prefetchBehind(Value p, RegisterTile tile, Value group, Value u) {
    auto prefetch = [&] {
      int64_t units = extent / unit;
      prefetchMeanwhile(p, tile, e.add(u, e.mul(group, e.index(units))),
                        units * groups);
    };
    if (tile.rows > e.schedule.getHardwareRows())
      return prefetch();
    // A tile beside others has its part in what they prefetch.
    e.ifThen(e.isLess(e.index(tile.rows), rows), prefetch);
  }

  //===--- Few rows -------------------------------------------------------===//

  /// There is code for tiles of every height, of which sums wait in memory for
  /// what is done with them: once for all heights, a group after the other.
  void computePanel(Value weightPanel, Value p) override {
    if (!dividesEvenly())
      return VectorMatmulEmitter::computePanel(weightPanel, p);
    int64_t count = vectorsPerRow() / groups;
    waiting = e.scratch({groups, mostTiles * tileRows, count, lanes});
    auto sumGroup = [&](Value group) {
      if (!sharesParts())
        return sumApart(weightPanel, group, evenTiles);
      e.ifThen(e.isLess(rows, e.index(tileRows + 1)),
               [&] { sumApart(weightPanel, group, evenTiles); });
      e.ifThen(e.isLess(e.index(tileRows), rows),
               [&] { sumTogether(weightPanel, group); });
    };
    if (groups == 1)
      sumGroup(e.index(0));
    else
      e.loop(e.index(groups), sumGroup);
    e.loop(rows, [&](Value row) {
      storeRow(row, p, [&](int64_t group, int64_t v) {
        return e.loadMemref(waiting, placeOfSum(e.index(group), row, v), lanes);
      });
    });
  }

  SmallVector<Value> placeOfSum(Value group, Value row, int64_t v) {
    return {group, row, e.index(v), e.index(0)};
  }

  /// Of each register tile by itself.
  void sumApart(Value p, Value group, const TileCounts &counts) {
    int64_t count = vectorsPerRow() / groups;
    forEvenTiles(counts, e.index(0), 1, [&](RegisterTile tile) {
      SmallVector<Value> sums = sumVectors(p, tile, {0, count, group}, group);
      for (int64_t row = 0; row < tile.rows; ++row)
        for (int64_t v = 0; v < count; ++v)
          e.store(sums[row * count + v], waiting,
                  placeOfSum(group, e.add(tile.first, e.index(row)), v));
    });
  }

  /// Of all register tiles, unit by unit: the first one takes the unit's codes
  /// apart, and leaves them to the others in the nearest cache. Of each row,
  /// registers hold the sums of a unit alone.
  void sumTogether(Value p, Value group) {
    int64_t count = vectorsPerRow() / groups, firstRows = tileRows / 2;
    makeRoom(1, count);
    Value zero = e.splat(e.f32(0.0), lanes);
    e.loop(rows, [&](Value row) {
      for (int64_t v = 0; v < count; ++v)
        e.store(zero, waiting, placeOfSum(group, row, v));
    });
    RegisterTile first = {e.index(0), firstRows, e.index(0)};
    TileCounts others = countEvenTiles(e.sub(rows, e.index(firstRows)));
    blocks.forUnits(p, {0, count, group}, {}, [&](Value u, ValueRange) {
      prefetchBehind(p, first, group, u);
      addToWaiting(first, group, u,
                   [&](int64_t sub) { return keptSubBlock(e.index(0), sub); });
      forEvenTiles(others, e.index(firstRows), (tileRows + 1) / 2,
                   [&](RegisterTile tile) {
                     addToWaiting(tile, group, u, [&](int64_t sub) {
                       return unpackedSubBlock(e.index(0), sub, {0, count});
                     });
                   });
      return SmallVector<Value>();
    });
  }

  /// Adds the products of a tile's rows and unit `u`, whose sub-blocks
  /// `subBlock` takes, to what waits.
  void addToWaiting(RegisterTile tile, Value group, Value u,
                    function_ref<SubBlock(int64_t)> subBlock) {
    int64_t count = vectorsPerRow() / groups;
    auto sumsOf = [&](int64_t number, function_ref<void(Sums)> add) {
      Value row = e.add(tile.first, e.index(number));
      SmallVector<Value> sums;
      for (int64_t v = 0; v < count; ++v)
        sums.push_back(e.loadMemref(waiting, placeOfSum(group, row, v), lanes));
      add(sums);
      for (int64_t v = 0; v < count; ++v)
        e.store(sums[v], waiting, placeOfSum(group, row, v));
    };
    addUnit(tile, u, subBlock, sumsOf);
  }

  //===--- Units ----------------------------------------------------------===//

  /// Adds what a row's minimums of sub-block `number` make.
  void addMins(Value row, Value number, ArrayRef<Value> mins, Sums sums) {
    Value total = e.splat(
        memref::LoadOp::create(b, loc, totals, ValueRange{row, number}), lanes);
    for (size_t v = 0; v < mins.size(); ++v)
      sums[v] = vector::FMAOp::create(b, loc, mins[v], total, sums[v]);
  }

  /// Four neighbouring bytes of row `row`, on every lane.
  Value loadQuad(Value row, Value number) {
    Value bytes =
        vector::LoadOp::create(b, loc, e.vectorType(4, b.getI8Type()), x.codes,
                               ValueRange{row, e.mul(number, e.index(4))});
    Value quad = vector::BitCastOp::create(
        b, loc, e.vectorType(1, b.getI32Type()), bytes);
    return bytesOf(
        e.splat(vector::ExtractOp::create(b, loc, quad, int64_t(0)), lanes));
  }

  /// Adds the products of a tile's rows and unit `u`, whose sub-blocks
  /// `subBlock` takes, to the sums. Those of the unit's sub-blocks are put
  /// together first: additions leave the multipliers alone on some CPUs, and
  /// the scale of x is one for all.
  void addUnit(RegisterTile tile, Value u,
               function_ref<SubBlock(int64_t)> subBlock, SumsOf sumsOf) {
    SmallVector<Value> rowIndices;
    for (int64_t row = 0; row < tile.rows; ++row) {
      Value index = e.add(tile.first, e.index(row));
      rowIndices.push_back(rowsAreCopied ? index : e.add(x.firstRow, index));
    }
    SubBlock last;
    SmallVector<Value> products;            // of the last sub-block
    SmallVector<Value> scaled;              // sums of those before it
    SmallVector<SmallVector<Value>> minima; // of all
    const int64_t subBlocks = blocks.subBlocksPerUnit();
    for (int64_t sub = 0; sub < subBlocks; ++sub) {
      for (auto [i, product] : llvm::enumerate(products)) {
        Value sum = scaledSum(product, last, i % last.scales.size());
        if (sub == 1)
          scaled.push_back(sum);
        else
          scaled[i] = e.add(scaled[i], sum);
      }
      last = subBlock(sub);
      products = multiply(tile, rowIndices, u, sub, last);
      minima.push_back(last.mins);
    }
    const size_t vectors = last.scales.size();
    for (int64_t row = 0; row < tile.rows; ++row) {
      Value factor =
          e.splat(memref::LoadOp::create(b, loc, x.scales,
                                         ValueRange{rowIndices[row], u}),
                  lanes);
      sumsOf(row, [&](Sums sums) {
        for (size_t v = 0; v < vectors; ++v) {
          const size_t i = row * vectors + v;
          Value sum = scaledSum(products[i], last, v);
          if (subBlocks > 1)
            sum = e.add(scaled[i], sum);
          sums[v] = vector::FMAOp::create(b, loc, sum, factor, sums[v]);
        }
        for (auto [sub, values] : llvm::enumerate(minima))
          if (!values.empty())
            addMins(e.add(tile.first, e.index(row)),
                    subBlockIndex(u, static_cast<int64_t>(sub)), values, sums);
      });
    }
  }

  /// The bits of the sums of products of sub-block `sub` of unit `u` with each
  /// row of the tile, a vector of the panel after the other.
  SmallVector<Value> multiply(RegisterTile tile, ArrayRef<Value> rowIndices,
                              Value u, int64_t sub, const SubBlock &w) {
    size_t vectors = w.scales.size();
    SmallVector<Value> products;
    for (int64_t row = 0; row < tile.rows; ++row) {
      Value start = blocks.splatInt(kIntegerBaseBits);
      if (starts)
        start = e.splat(
            memref::LoadOp::create(b, loc, starts,
                                   ValueRange{e.add(tile.first, e.index(row)),
                                              subBlockIndex(u, sub)}),
            lanes);
      products.append(vectors, start);
    }
    for (int64_t quad = 0; quad < blocks.quadsPerSubBlock(); ++quad) {
      SmallVector<Value> codes = w.codes(quad);
      for (int64_t row = 0; row < tile.rows; ++row) {
        Value bytes = loadQuad(rowIndices[row], quadIndex(u, sub, quad));
        for (size_t v = 0; v < vectors; ++v) {
          Value &product = products[row * vectors + v];
          product = Dp4aOp::create(b, loc, product, bytesOf(codes[v]), bytes,
                                   mostCode(), isSigned());
        }
      }
    }
    return products;
  }

  /// The sum of products of a sub-block whose bits are `product`, times the
  /// scale of vector `v`.
  Value scaledSum(Value product, const SubBlock &w, size_t v) {
    Value bits =
        vector::BitCastOp::create(b, loc, e.vectorType(lanes), product);
    if (fuses)
      return vector::FMAOp::create(b, loc, bits, w.scales[v], w.offsets[v]);
    Value base = e.splat(e.f32(kIntegerBase), lanes);
    return e.mul(e.sub(bits, base), w.scales[v]);
  }

  /// Whether products take codes with a sign, from which packing had taken it
  /// by adding packed.zero.
  bool isSigned() { return e.schedule.getDot() == DotKind::S8; }
  uint32_t mostCode() {
    if (blocks.packed.zero == 128)
      return 255;
    if (format.table)
      return *llvm::max_element(ArrayRef<int8_t>(format.table, 16)) +
             blocks.packed.zero;
    return (1u << format.codeBits()) - 1;
  }

  Value bytesOf(Value codes) {
    VectorType type = e.vectorType(4 * lanes, b.getI8Type());
    if (codes.getType() == type)
      return codes;
    return vector::BitCastOp::create(b, loc, type, codes);
  }

  /// The table's entries at the bytes of `codes`, with packed.zero added unless
  /// they keep their sign.
  Value lookUpBytes(Value codes) {
    SmallVector<int8_t> entries;
    for (int64_t i = 0; i < 16; ++i)
      entries.push_back(static_cast<int8_t>(
          format.table[i] + (isSigned() ? 0 : blocks.packed.zero)));
    return LookUpOp::create(b, loc, bytesOf(codes), entries);
  }

  PackedPanel blocks;
  const ::kf::BlockFormat &format;
  bool fuses; // whether a multiply-add of offsets rounds once
  QuantizedRows x;
  bool rowsAreCopied = false; // x.codes and x.scales, whose first row is 0 then
  Value starts;               // scratch [rows, K / sub-block] of i32; null: all
                              // kIntegerBaseBits
  Value totals; // scratch [rows, K / sub-block]: scale times sum of codes
  // Of a panel or, where register tiles share units, of one:
  Value unpackedCodes;  // scratch [quads, vectors, 4 * lanes] of i8
  Value unpackedScales; // scratch [sub-blocks, 1 to 3, vectors, lanes]
  Value waiting;        // sums, scratch [groups, rows, vectors, lanes]
};

} // namespace

void mlir::kf::emitInt8MatmulKernel(KernelEmitter &emitter,
                                    const ::kf::BlockFormat &format) {
  Int8MatmulEmitter(emitter, format).emit();
}
