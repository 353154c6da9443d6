//===- VectorSchedule.cpp - What vector code asks of a schedule -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Conversion/VectorSchedule.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Lanes of a vector of pairs of bf16.
constexpr int64_t pairLanes = 16;

/// Rows of a batch's product whose sums are unrolled.
constexpr int64_t mostBatchRows = 16;

/// Elements of the widest head whose tiles attention multiplies, and keys of
/// the largest block: code for all tiles of a row of either is unrolled.
constexpr int64_t mostTileColumns = 1024, mostTileKeys = 1024;

class Verifier {
public:
  Verifier(KernelOp kernel, ScheduleAttrInterface schedule,
           function_ref<InFlightDiagnostic()> emitError)
      : kernel(kernel), emitError(emitError),
        schedule(dyn_cast_if_present<VectorScheduleAttr>(schedule)) {}

  LogicalResult verify() {
    if (!schedule)
      return fail("it is no #kf.vector");
    if (schedule.getLanes() > 16 &&
        llvm::any_of(kernel.getArgumentTypes(), isRowsOfBlocks))
      return fail("rows of blocks are read in at most 16 lanes");
    if (auto product = find<ProductOpInterface>())
      return verifyMatmul(product);
    auto attention = find<CacheAttentionInterface>();
    if (schedule.getDot() == DotKind::BF16 ? !attention
                                           : schedule.getDot() != DotKind::F32)
      return fail(dot() + " is for matmuls");
    if (schedule.getUnroll() != 1)
      return fail("unroll is for matmuls");
    if (schedule.getPrefetch() != PrefetchKind::Twice)
      return fail("prefetch is for matmuls");
    if (schedule.getPanels() != PanelUse::Apart ||
        schedule.getRowTiles() != RowDivision::Whole ||
        schedule.getGroups() != GroupOrder::Together)
      return fail("panels, row_tiles and groups are for matmuls");
    if (attention)
      return verifyAttention(attention);
    if (schedule.getReduction() != 0)
      return fail("reduction is for matmuls and attention");
    const bool hasBatches = bool(find<BatchMatmulOp>());
    if (hasBatches && !schedule.getTile().empty() && failed(verifyBatches()))
      return failure();
    if (!hasBatches && !schedule.getTile().empty())
      return fail("tile is for matmuls, batch_matmul and attention");
    if (find<QuantizeRowsOp>() &&
        (schedule.getLanes() < 4 || schedule.getLanes() > 16))
      return fail("rows in 8 bits need lanes = 4, 8 or 16");
    if (find<GatedDeltaOp>() &&
        !llvm::equal(schedule.getWorkgroup(), ArrayRef<int64_t>{1, 1}))
      return fail(
          "gated_delta needs workgroup = [1, 1], a sequence and a head");
    if (auto append = find<KVAppendOp>())
      return verifyCacheBlocks(append.getCache().getType());
    if (auto pack = find<PackOp>())
      return verifyPack(pack);
    return success();
  }

private:
  static bool isRowsOfBlocks(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && isa<QuantType>(tensor.getElementType()) &&
           !getLayout(tensor);
  }

  LogicalResult fail(const Twine &message) {
    if (emitError)
      emitError() << message;
    return failure();
  }

  /// The kernel's op of this type, in its tile if it has one; or null.
  template <typename OpTy> OpTy find() {
    for (Operation &op : kernel.getBody().front()) {
      if (auto found = dyn_cast<OpTy>(op))
        return found;
      if (auto forall = dyn_cast<scf::ForallOp>(op))
        for (auto found : forall.getBody()->getOps<OpTy>())
          return found;
    }
    return nullptr;
  }

  /// "dot = i8"
  std::string dot() {
    return ("dot = " + stringifyDotKind(schedule.getDot())).str();
  }

  /// The tile of workgroup loop `dim`; 0 leaves it whole.
  int64_t workgroup(size_t dim) {
    ArrayRef<int64_t> sizes = schedule.getWorkgroup();
    return dim < sizes.size() ? sizes[dim] : 0;
  }

  LogicalResult verifyMatmul(ProductOpInterface op) {
    auto weight = cast<RankedTensorType>(op.getW().getType());
    bool quantized = isa<QuantType>(weight.getElementType());
    int64_t lanes = schedule.getLanes();
    if (schedule.getDot() == DotKind::BF16)
      return verifyTiles(op, weight);
    if (schedule.getDot() == DotKind::BF16Pairs) {
      if (lanes != pairLanes)
        return fail(dot() + " needs lanes = " + Twine(pairLanes));
      if (!fitsPairs(weight))
        return fail(dot() +
                    " is for weights of bf16 with an even K, whose "
                    "layout interleaves " +
                    Twine(pairLanes) + " or nothing");
    }
    if (multipliesBytes(schedule.getDot())) {
      if (lanes < 4 || lanes > 16)
        return fail(dot() + " needs lanes = 4, 8 or 16");
      if (!quantized)
        return fail(dot() + " is for matmuls with block-quantized weights");
    }
    if (schedule.getDot() == DotKind::S8 && !hasCodesOf8Bits(weight))
      return fail("dot = s8 is for codes of 8 bits; dot = i8 takes others");
    if (quantized && schedule.getUnroll() != 1)
      return fail("unroll must be 1 for block-quantized weights, whose blocks "
                  "are unrolled whole");
    if (schedule.getReduction() != 0)
      return fail("a matmul's reduction is not tiled; reduction must be 0");
    if (failed(verifySizes(op, weight)) || failed(verifySharing(op, weight)) ||
        failed(verifyPrefetch(op)))
      return failure();
    ArrayRef<int64_t> tile = schedule.getTile();
    int64_t vectors = tile[0] * tile[1] / lanes * (op.getGlu() ? 2 : 1);
    if (failed(verifyRegisters("tile and accumulators",
                               vectors * schedule.getAccumulators())))
      return failure();
    int64_t products =
        vectors * (quantized ? ::kf::PackedBlock::unit : schedule.getUnroll());
    if (products > maxUnrolledProducts)
      return fail("tile and unroll make " + Twine(products) +
                  " products of vectors a step; at most " +
                  Twine(maxUnrolledProducts) + " are accepted");
    if (schedule.getRowTiles() == RowDivision::Even)
      return verifyEvenTiles(products);
    return success();
  }

  /// There is code for tiles of every height up to the tile's; where they share
  /// a panel nearly as much again, for workgroups of more rows than a tile.
  LogicalResult verifyEvenTiles(int64_t products) {
    const bool shares = schedule.getPanels() == PanelUse::Shared;
    const int64_t all =
        (shares ? 2 : 1) * products * (schedule.getTile()[0] + 1) / 2;
    if (all <= maxEvenProducts)
      return success();
    return fail("row_tiles = even makes tiles of all heights" +
                Twine(shares ? ", panels = shared twice" : "") + ", with " +
                Twine(all) + " products of vectors a step; at most " +
                Twine(maxEvenProducts) + " are accepted");
  }

  LogicalResult verifySharing(ProductOpInterface op, RankedTensorType weight) {
    if (schedule.getGroups() == GroupOrder::InTurn && !op.getGlu())
      return fail("groups = in_turn is for matmuls with glu");
    if (schedule.getPanels() == PanelUse::Unpacked &&
        weight.getElementType().isF32())
      return fail("panels = unpacked is not for weights of f32, which are read "
                  "as they are");
    const int64_t rows = mostRowsAtOnce(op), tileRows = schedule.getTile()[0];
    if (schedule.getPanels() == PanelUse::Shared && rows <= tileRows)
      return fail("panels = shared needs more rows of a workgroup than of a "
                  "tile, found " +
                  Twine(rows) + " and " + Twine(tileRows));
    return success();
  }

  /// Lines are asked for one by one where a panel is read for one register
  /// tile, of one row in 8 bits; otherwise in shares.
  LogicalResult verifyPrefetch(ProductOpInterface op) {
    const int64_t tiles = countTiles(op), tileRows = schedule.getTile()[0];
    const bool hasShares =
        tiles > 1 || (multipliesBytes(schedule.getDot()) && tileRows > 1);
    const std::string found = (", found tiles of " + Twine(tileRows) +
                               " rows, and " + Twine(tiles) + " in a workgroup")
                                  .str();
    if (schedule.getPrefetch() == PrefetchKind::Once && hasShares)
      return fail("prefetch = once is for panels that one register tile reads, "
                  "of one row in 8 bits" +
                  found);
    if (schedule.getHardwareRows() != 0 && !hasShares)
      return fail("hardware_rows is for register tiles that ask for the panel "
                  "behind, of several rows or several in a workgroup" +
                  found);
    if (schedule.getHardwareRows() != 0 &&
        !canHaveLoneTile(op, workgroup(0), tileRows,
                         schedule.getHardwareRows()))
      return fail("hardware_rows = " + Twine(schedule.getHardwareRows()) +
                  " is for a register tile of at most so many rows that is "
                  "the only one of its workgroup; none can be" +
                  found);
    return success();
  }

  /// Register tiles of a workgroup's rows, or of those of an expert that are
  /// multiplied at a time. verifyRows() has seen that these are known.
  int64_t countTiles(ProductOpInterface op) {
    ArrayRef<int64_t> tile = schedule.getTile();
    if (isa<ExpertMatmulOp>(op.getOperation()))
      return tile[2] / tile[0];
    const int64_t rows =
        workgroup(0) != 0
            ? workgroup(0)
            : cast<RankedTensorType>(op.getX().getType()).getDimSize(0);
    return llvm::divideCeil(rows, tile[0]);
  }

  /// Of loop `dim`, whose extent is `size`, in a workgroup.
  int64_t mostOf(size_t dim, int64_t size) {
    const int64_t tile = workgroup(dim);
    if (tile == 0)
      return size;
    return ShapedType::isDynamic(size) ? tile : std::min(tile, size);
  }

  /// The most rows that a workgroup multiplies at a time: of one expert, or all
  /// that it has. verifyRows() has seen that they are known.
  int64_t mostRowsAtOnce(ProductOpInterface op) {
    auto x = cast<RankedTensorType>(op.getX().getType());
    const int64_t rows = mostOf(0, x.getDimSize(0));
    if (!isa<ExpertMatmulOp>(op.getOperation()))
      return rows;
    auto result = cast<RankedTensorType>(op.getResult().getType());
    const int64_t most = schedule.getTile()[2];
    int64_t all;
    if (llvm::MulOverflow(rows, mostOf(1, result.getDimSize(1)), all))
      return most;
    return std::min(most, all);
  }

  /// Tiles of AMX: a step of K is 32 elements, two of which share 32 bits.
  LogicalResult verifyTiles(ProductOpInterface op, RankedTensorType weight) {
    constexpr int64_t step = 2 * amxTile;
    if (isa<ExpertMatmulOp>(op.getOperation()))
      return fail(dot() + " is not for products of experts");
    if (!fitsTiles(weight))
      return fail("dot = bf16 is for weights of blocks, and of bf16 whose "
                  "layout interleaves " +
                  Twine(amxTile) + "; panels have " + Twine(amxTile) + " or " +
                  Twine(step) + " rows");
    if (schedule.getLanes() != amxTile)
      return fail("dot = bf16 needs lanes = " + Twine(amxTile));
    if (schedule.getUnroll() != 1)
      return fail("unroll must be 1 with dot = bf16, whose steps are tiles");
    if (schedule.getPrefetch() != PrefetchKind::Twice)
      return fail("prefetch is not for dot = bf16");
    if (failed(verifySizes(op, weight)))
      return failure();
    for (int64_t size : schedule.getTile())
      if (size != amxTile && size != step)
        return fail("dot = bf16 needs a tile of 16 or 32 rows and columns");
    auto quant = dyn_cast<QuantType>(weight.getElementType());
    int64_t block = quant ? getStorage(quant.getFormat()).elements : step;
    if (schedule.getReduction() % std::max(block, step) != 0)
      return fail("reduction (" + Twine(schedule.getReduction()) +
                  ") must be a multiple of " + Twine(std::max(block, step)));
    return success();
  }

  LogicalResult verifySizes(ProductOpInterface op, RankedTensorType weight) {
    ArrayRef<int64_t> tile = schedule.getTile();
    int64_t lanes = schedule.getLanes();
    const bool hasExperts = isa<ExpertMatmulOp>(op.getOperation());
    if (hasExperts && (tile.size() != 3 || tile[2] % tile[0] != 0))
      return fail(
          "a product of experts needs tile = [rows, columns, rows of an "
          "expert], the last a multiple of the first");
    if (!hasExperts && tile.size() != 2)
      return fail("a matmul needs tile = [rows, columns]");
    if (tile[1] % lanes != 0)
      return fail("tile columns must be a multiple of lanes");
    LayoutAttr layout = getLayout(weight);
    if (layout && layout.getPanel() != tile[1])
      return fail("tile columns (" + Twine(tile[1]) +
                  ") must be the panel of the weight's layout (" +
                  Twine(layout.getPanel()) + ")");
    if (layout && layout.getInterleave() != 0 &&
        layout.getInterleave() != lanes)
      return fail("lanes (" + Twine(lanes) +
                  ") must be those that interleave the weight's layout (" +
                  Twine(layout.getInterleave()) + ")");
    if (hasExperts && failed(verifyPlaces(op)))
      return failure();
    const int64_t columns = workgroup(hasExperts ? 2 : 1);
    if (columns % tile[1] != 0)
      return fail("workgroup columns (" + Twine(columns) +
                  ") must be a multiple of tile columns (" + Twine(tile[1]) +
                  ")");
    return verifyRows(op.getX());
  }

  /// A workgroup has whole tokens, or as many places of each as divide them;
  /// the numbers of its rows are sorted in scratch.
  LogicalResult verifyPlaces(ProductOpInterface op) {
    auto result = cast<RankedTensorType>(op.getResult().getType());
    const int64_t places = workgroup(1), top = result.getDimSize(1);
    if (places != 0 && places < top && top % places != 0)
      return fail("workgroup places (" + Twine(places) +
                  ") must divide the experts of a row (" + Twine(top) + ")");
    int64_t rows;
    if (llvm::MulOverflow(std::max<int64_t>(workgroup(0), 1), top, rows) ||
        rows > maxScratchBytes / 4)
      return fail("a workgroup of " + Twine(workgroup(0)) + " tokens with " +
                  Twine(top) + " experts each is too large; tile fewer tokens");
    return success();
  }

  LogicalResult verifyAttention(CacheAttentionInterface op) {
    ArrayRef<int64_t> tile = schedule.getTile();
    if (tile.empty() || tile.size() > 2)
      return fail("attention needs tile = [query rows] or [query rows, those "
                  "of one token]");
    KVCacheType cache = op.getCache().getType();
    int64_t lanes = schedule.getLanes(), keys = schedule.getReduction();
    if (keys == 0 || keys % lanes != 0 || cache.getPage() % keys != 0)
      return fail("attention needs a reduction that divides the cache's page "
                  "(" +
                  Twine(cache.getPage()) +
                  ") and is a multiple of lanes, found " + Twine(keys));
    if (cache.getKeyBlock() != lanes)
      return fail("lanes (" + Twine(lanes) +
                  ") must be the cache's key_block (" +
                  Twine(cache.getKeyBlock()) +
                  "), which kf-set-layouts makes those of the target");
    if (failed(verifyCacheBlocks(cache)))
      return failure();
    const bool hasTiles = schedule.getDot() == DotKind::BF16;
    if (hasTiles && failed(verifyTiles(op)))
      return failure();
    ArrayRef<int64_t> vectorRows = hasTiles ? tile.drop_front() : tile;
    if (!vectorRows.empty() &&
        failed(verifyRegisters("tile and reduction",
                               *llvm::max_element(vectorRows) * keys / lanes)))
      return failure();
    if (failed(verifyHeads(op)))
      return failure();
    return verifyRows(op.getQ());
  }

  /// Tiles of AMX multiply 32 elements at a time: of a head, and of the keys.
  LogicalResult verifyTiles(CacheAttentionInterface op) {
    KVCacheType cache = op.getCache().getType();
    if (isa<AttentionPartialOp>(op.getOperation()))
      return fail("dot = bf16 is not for parts of attention, which have few "
                  "rows");
    if (!fitsTiles(op))
      return fail("dot = bf16 is for caches of 16 bits and of blocks, and for "
                  "heads of a multiple of " +
                  Twine(2 * amxTile) + " elements, at most " +
                  Twine(mostTileColumns) + "; this one has " +
                  Twine(cache.getHeadDim()));
    if (schedule.getLanes() != amxTile)
      return fail("dot = bf16 needs lanes = " + Twine(amxTile));
    if (schedule.getTile()[0] != amxTile)
      return fail("attention with dot = bf16 needs a tile of " +
                  Twine(amxTile) + " rows");
    if (schedule.getReduction() % (2 * amxTile) != 0 ||
        schedule.getReduction() > mostTileKeys)
      return fail("reduction (" + Twine(schedule.getReduction()) +
                  ") must be a multiple of " + Twine(2 * amxTile) +
                  ", at most " + Twine(mostTileKeys));
    return success();
  }

  LogicalResult verifyCacheBlocks(KVCacheType cache) {
    auto quant = dyn_cast<QuantType>(cache.getType());
    int64_t lanes = schedule.getLanes();
    int64_t block = quant ? getStorage(quant.getFormat()).elements : lanes;
    if (block % lanes == 0)
      return success();
    return fail("lanes (" + Twine(lanes) +
                ") must divide the blocks of the cache (" + Twine(block) +
                " elements)");
  }

  LogicalResult verifyHeads(CacheAttentionInterface op) {
    auto q = cast<RankedTensorType>(op.getQ().getType());
    int64_t kvHeads = op.getCache().getType().getKvHeads();
    int64_t heads = q.getDimSize(1), group = heads / kvHeads;
    if (!op.getKvHead() && kvHeads > 1 && workgroup(1) != group)
      return fail("workgroup heads (" + Twine(workgroup(1)) + ") must be the " +
                  Twine(group) + " that share a KV head");
    auto partial = dyn_cast<AttentionPartialOp>(op.getOperation());
    if (partial && partial.getSplits() > 1 && workgroup(2) != 1)
      return fail("workgroup splits (" + Twine(workgroup(2)) + ") must be 1");
    int64_t rows = workgroup(0) ? workgroup(0) : 1, most;
    if (llvm::MulOverflow(rows, heads, most) || most > maxScratchBytes)
      return fail("a workgroup of " + Twine(rows) + " tokens and " +
                  Twine(heads) + " heads is too large; tile fewer tokens");
    return success();
  }

  LogicalResult verifyRegisters(const Twine &fields, int64_t vectors) {
    if (vectors <= maxTileVectors)
      return success();
    return fail(fields + " need " + Twine(vectors) +
                " vector registers; 32 are there, and " +
                Twine(maxTileVectors) + " are accepted");
  }

  /// Workgroups share no panel.
  LogicalResult verifyPack(PackOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    int64_t rows = workgroup(type.getRank() - 2);
    int64_t panel = getLayout(type).getPanel();
    if (rows % panel != 0)
      return fail("workgroup rows (" + Twine(rows) +
                  ") must be a multiple of the layout's panel (" +
                  Twine(panel) + ")");
    return success();
  }

  /// A product of batches sums up some rows at a time, of four vectors.
  LogicalResult verifyBatches() {
    ArrayRef<int64_t> tile = schedule.getTile();
    if (tile.size() != 1 || tile[0] < 1 || tile[0] > mostBatchRows)
      return fail("batch_matmul needs tile = [rows], 1 to " +
                  Twine(mostBatchRows));
    return success();
  }

  /// Rows of a workgroup lie in scratch, whose size has to be known.
  LogicalResult verifyRows(Value x) {
    if (workgroup(0) == 0 &&
        cast<RankedTensorType>(x.getType()).isDynamicDim(0))
      return fail("workgroup rows must be given, as their number is dynamic");
    return success();
  }

  KernelOp kernel;
  function_ref<InFlightDiagnostic()> emitError;
  VectorScheduleAttr schedule;
};

} // namespace

bool mlir::kf::fitsTiles(RankedTensorType weight) {
  LayoutAttr layout = getLayout(weight);
  if (layout && layout.getPanel() != amxTile &&
      layout.getPanel() != 2 * amxTile)
    return false;
  if (isa<QuantType>(weight.getElementType()))
    return true;
  return weight.getElementType().isBF16() &&
         (!layout || layout.getInterleave() == amxTile);
}

bool mlir::kf::unpacksAhead(int64_t rowTiles, int64_t panels, int64_t extent,
                            int64_t reduction) {
  constexpr int64_t turn = amxTurn * 2 * amxTile;
  const bool hasParts = reduction != 0 && reduction < extent;
  return rowTiles == amxTurn && (panels > 1 || hasParts) &&
         extent % turn == 0 && reduction % turn == 0;
}

bool mlir::kf::fitsTiles(CacheAttentionInterface op) {
  KVCacheType cache = op.getCache().getType();
  return !cache.getType().isF32() && cache.getHeadDim() <= mostTileColumns &&
         cache.getHeadDim() % (2 * amxTile) == 0;
}

bool mlir::kf::fitsPairs(RankedTensorType weight) {
  LayoutAttr layout = getLayout(weight);
  return weight.getElementType().isBF16() &&
         weight.getShape().back() % 2 == 0 &&
         (!layout || layout.getInterleave() == pairLanes ||
          layout.getInterleave() == 0);
}

bool mlir::kf::isSmallWeight(ProductOpInterface op, int64_t bytes,
                             const MachineDescription &machine) {
  return !isa<ExpertMatmulOp>(op.getOperation()) &&
         bytes < machine.caches.second;
}

bool mlir::kf::canHaveLoneTile(ProductOpInterface op, int64_t groupRows,
                               int64_t tileRows, int64_t most) {
  auto x = cast<RankedTensorType>(op.getX().getType());
  if (isa<ExpertMatmulOp>(op.getOperation()) || x.isDynamicDim(0))
    return true;
  int64_t rows = x.getDimSize(0);
  if (groupRows != 0 && groupRows < rows) {
    if (rows % groupRows != 0)
      return true;
    rows = groupRows;
  }
  // Of pairs, one that is left joins the last.
  const bool isAlone = rows <= tileRows || (tileRows == 2 && rows == 3);
  return isAlone && rows <= most;
}

bool mlir::kf::hasCodesOf8Bits(RankedTensorType weight) {
  auto quant = cast<QuantType>(weight.getElementType());
  return ::kf::PackedBlock(getStorage(quant.getFormat())).zero == 128;
}

LogicalResult
mlir::kf::verifyVectorSchedule(KernelOp kernel, ScheduleAttrInterface schedule,
                               function_ref<InFlightDiagnostic()> emitError) {
  return Verifier(kernel, schedule, emitError).verify();
}
