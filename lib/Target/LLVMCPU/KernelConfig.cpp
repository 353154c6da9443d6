//===- KernelConfig.cpp - Schedules for CPUs ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The policy of the CPU target: which tile sizes a kernel gets. Mechanism is in
// what reads `#kf.vector`.
//
//===----------------------------------------------------------------------===//

#include "KernelConfig.h"
#include "ProductTiles.h"
#include "Workers.h"

#include "kf/Conversion/KernelSupport.h"
#include "kf/Conversion/VectorSchedule.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kf;

namespace {

/// The most rows and the fewest columns of a workgroup of a product of many
/// rows. Rows are fewer by half where workers share them.
constexpr int64_t rowsPerGroup = 512;
constexpr int64_t columnsPerGroup = 256;
/// Multiply-adds that a workgroup should hold to be worth handing out.
constexpr int64_t workPerGroup = 128 * 1024;
/// Rows of a register tile of 8-bit products: with more, sums are spilled.
constexpr int64_t int8Rows = 8;
/// The same with sub-blocks of 16 elements, whose scales come twice as often,
/// and the fewest rows whose last tile is little beside the others.
constexpr int64_t int8RowsOfShortBlocks = 7, fewestRowsOfShortBlocks = 128;
/// Of products of tiles: the most elements of K that one worker sums up without
/// parts, where a panel and the rows of a workgroup stay in the second-level
/// cache; those of a part; these rows; and third-level caches that they take at
/// most.
constexpr int64_t tileReductionAlone = 2048, tileReduction = 512;
constexpr int64_t tileRowsPerGroup = 256;
constexpr int64_t tileRowCaches = 4;
/// Tokens of a workgroup of a product of experts, which sorts their numbers.
constexpr int64_t expertTokens = 8192;
/// Rows of a tile of kf.matmul_wgrad, and of a workgroup of kf.scatter_add.
constexpr int64_t wgradRows = 8, scatterRows = 64;
/// How many rows a reduction over a size of the step is taken to have.
constexpr int64_t rowsOfReduction = 128;
/// Keys of one softmax block.
constexpr int64_t keyTile = 64;
/// Query rows of a workgroup of attention, of vectors and of tiles: all share
/// what is made of a block of keys for tiles; and the fewest that are worth it.
constexpr int64_t attentionRows = 32, attentionTileRows = 256,
                  fewestAttentionTileRows = 32;
/// Tokens of a step of several sequences from which on some are taken to share
/// one: of fewer most are generated, each alone in its sequence.
constexpr int64_t fewestSharedTokens = 64;
/// Elements that a worker rounds to codes in the time that one more dispatch
/// takes.
constexpr int64_t elementsPerDispatch = 8192;
/// Columns that products of tiles have in one group if there is one worker,
/// whatever their rows are: half of those whose sums fill the cache.
constexpr int64_t loneTileColumns = 512;

using Draft = VectorDraft;

class Selector {
public:
  explicit Selector(CpuTargetAttr target)
      : target(target), context(target.getContext()), lanes(target.getLanes()),
        manyRegisters(target.countRegisters() == 32),
        threads(threadsOf(target)), caches(describeCpuMachine(target).caches) {}

  /// What `op` may read its rows in. Where its kernel rounds them, each group
  /// of columns does so anew, unless they are rounded before, to the same.
  SmallVector<Type> getRowTypes(ProductOpInterface op, int64_t rows) {
    auto w = cast<RankedTensorType>(op.getW().getType());
    const bool isMatmul = isa<MatmulOp>(op.getOperation());
    const int64_t lines = w.getShape().end()[-2],
                  columns = lines * (op.getGlu() ? 2 : 1);
    Type rounded;
    bool pays = false;
    if (isMatmul && usesTiles(target, w, rows)) {
      rounded = BFloat16Type::get(context);
      pays = threads > 1 || columns > loneTileColumns;
    } else if (isMatmul && usesPairs(target, w, rows)) {
      // Of one worker, or a single panel, there is one group.
      rounded = BFloat16Type::get(context);
      pays = threads > 1 && lines > panelOf(target);
    } else if (isQuantized(op) && multipliesBytes(dotOf(w))) {
      rounded = IntegerType::get(context, 8);
      pays = paysToQuantize(op, rows, columns);
    }
    const Type whole = Float32Type::get(context);
    if (!rounded)
      return {whole};
    return pays ? SmallVector<Type>{rounded, whole}
                : SmallVector<Type>{whole, rounded};
  }

  VectorScheduleAttr select(KernelOp kernel, int64_t rows) {
    if (auto matmul = find<MatmulOp>(kernel))
      return selectMatmul(matmul, rows);
    if (auto product = find<ExpertMatmulOp>(kernel))
      return selectExperts(product, rows);
    if (auto attention = find<CacheAttentionInterface>(kernel))
      return selectAttention(attention, rows);
    if (auto pack = find<PackOp>(kernel))
      return selectPack(pack);
    if (auto product = find<MatmulWgradOp>(kernel))
      return selectWgrad(product);
    if (find<ScatterAddOp>(kernel))
      return selectScatter();
    return selectRows(kernel);
  }

private:
  template <typename OpTy> OpTy find(KernelOp kernel) {
    auto ops = kernel.getBody().getOps<OpTy>();
    return ops.empty() ? OpTy() : *ops.begin();
  }

  static bool isQuantized(ProductOpInterface op) {
    return isa<QuantType>(
        cast<RankedTensorType>(op.getW().getType()).getElementType());
  }

  /// What products with the block-quantized weight multiply in.
  DotKind dotOf(RankedTensorType w) {
    if (!target.getInt8Dot())
      return DotKind::F32;
    return hasCodesOf8Bits(w) && !target.takesUnsignedBytes() ? DotKind::S8
                                                              : DotKind::I8;
  }

  /// Whether rounding in every group of columns takes longer than rounding
  /// once, in parallel if there are rows enough, and one more dispatch.
  bool paysToQuantize(ProductOpInterface op, int64_t rows, int64_t columns) {
    const int64_t groups = int8ColumnGroups(rows, columns, threads);
    const int64_t elements =
        rows * cast<RankedTensorType>(op.getX().getType()).getDimSize(1);
    const int64_t apart = elements * groups / threads;
    const int64_t once =
        elements / std::min(threads, rows) + elementsPerDispatch;
    return threads > 1 && apart > once;
  }

  /// The most rows of a register tile of 8-bit products.
  static int64_t int8RowsOf(RankedTensorType w, int64_t rows) {
    auto quant = cast<QuantType>(w.getElementType());
    bool isShort =
        getStorage(quant.getFormat()).subBlock < ::kf::PackedBlock::unit;
    return isShort && rows >= fewestRowsOfShortBlocks ? int8RowsOfShortBlocks
                                                      : int8Rows;
  }

  /// Rows of a workgroup that read each panel of the weight once: as many as
  /// leave columns enough to be worth making the rows ready for.
  int64_t rowsOfGroup(int64_t rows, int64_t columns, int64_t tileRows) {
    if (threads == 1)
      return rowsPerGroup;
    int64_t columnGroups = std::max<int64_t>(columns / columnsPerGroup, 1);
    int64_t rowGroups = llvm::divideCeil(wantedGroups(), columnGroups);
    return std::clamp<int64_t>(rows / rowGroups, 4 * tileRows,
                               rowsPerGroup / 2);
  }

  /// Steps of K at a time: more of many rows, where what is left over is little
  /// beside them.
  static int64_t unrollOf(int64_t extent, bool hasManyRows) {
    if (hasManyRows && extent >= 64)
      return 8;
    return extent % 4 == 0 ? 4 : extent % 2 == 0 ? 2 : 1;
  }

  /// Of a kernel with enough work for them.
  int64_t wantedGroups() { return groupsPerWorker * threads; }

  /// A weight that is packed by a person has its panels, and its halves.
  int64_t panelOfWeight(RankedTensorType w) {
    LayoutAttr layout = getLayout(w);
    return layout ? layout.getPanel() : panelOf(target);
  }

  /// Register tile of a product of `rows` rows at a time, or where they are
  /// `few` as many or fewer, and how it is computed: as many independent sums
  /// as registers hold, less two for the panel row and one for the broadcast.
  Draft draftTile(ProductOpInterface op, int64_t rows, bool few) {
    auto x = cast<RankedTensorType>(op.getX().getType());
    auto w = cast<RankedTensorType>(op.getW().getType());
    int64_t extent = x.getShape().back(), groups = op.getGlu() ? 2 : 1;
    Draft draft;
    draft.lanes = lanes;
    LayoutAttr layout = getLayout(w);
    int64_t panel = panelOfWeight(w);
    if (layout && llvm::isPowerOf2_64(layout.getInterleave()))
      draft.lanes = std::min<int64_t>(lanes, layout.getInterleave());
    int64_t registers = manyRegisters ? 28 : 12;
    int64_t perRow = std::max<int64_t>(groups * panel / draft.lanes, 1);
    if (isQuantized(op)) {
      // Codes, scales and minimums take registers too, and each sum of 8-bit
      // products one beside the sum of blocks.
      draft.dot = dotOf(w);
      registers = draft.dot == DotKind::F32 ? registers * 5 / 7
                  : manyRegisters           ? 16
                                            : 5;
    }
    // The lanes, and pairs of K, that a person's layout has.
    bool pairs = draft.lanes == lanes && usesPairs(target, w, rows);
    if (pairs)
      draft.dot = DotKind::BF16Pairs;
    bool int8 = multipliesBytes(draft.dot);
    // Of 8-bit products, of one row, of a few at a time, and where registers
    // are few, a group after the other is summed up.
    if (int8 || rows == 1 || few || !manyRegisters)
      perRow = std::max<int64_t>(panel / draft.lanes, 1);
    int64_t tileRows =
        std::clamp<int64_t>(registers / perRow, 1,
                            int8 ? std::min(rows, int8RowsOf(w, rows)) : rows);
    if (sharesUnits(op, draft, rows))
      tileRows = mostRowsOfSharingTile;
    else // even tiles rather than a last one of few rows
      tileRows = llvm::divideCeil(rows, llvm::divideCeil(rows, tileRows));
    if (!isQuantized(op))
      draft.unroll = unrollOf(pairs ? extent / 2 : extent, rows > tileRows);
    draft.accumulators =
        std::clamp<int64_t>(8 / (tileRows * perRow), 1, draft.unroll);
    while (draft.unroll % draft.accumulators != 0)
      --draft.accumulators;
    draft.tile = {tileRows, panel};
    return draft;
  }

  /// Whether tiles are as high as share the units of a panel.
  bool sharesUnits(ProductOpInterface op, const Draft &draft, int64_t rows) {
    auto x = cast<RankedTensorType>(op.getX().getType());
    return multipliesBytes(draft.dot) && !manyRegisters && x.isDynamicDim(0) &&
           rows > mostRowsOfSharingTile;
  }

  /// Rows of x that are ready in scratch at once: in 8 bits they stay in the
  /// second-level cache, and floats stream through the third, as many for each
  /// panel of the weight as there are.
  int64_t rowsOfCaches(const Draft &draft, int64_t extent) {
    const bool int8 = multipliesBytes(draft.dot);
    const int64_t bytes = int8 ? 1 : draft.dot == DotKind::BF16Pairs ? 2 : 4;
    return (int8 ? caches.second : caches.third) / (extent * bytes);
  }

  /// Rows share a workgroup up to the bytes and numbers above. Every workgroup
  /// makes the rows ready that it reads, so columns are split no further than
  /// the workers ask.
  VectorScheduleAttr selectMatmul(MatmulOp op, int64_t tokens) {
    auto x = cast<RankedTensorType>(op.getX().getType());
    auto w = cast<RankedTensorType>(op.getW().getType());
    int64_t extent = x.getDimSize(1), columns = w.getShape().end()[-2];
    int64_t rows = x.isDynamicDim(0) ? tokens : x.getDimSize(0);
    int64_t groups = op.getGlu() ? 2 : 1;
    int64_t panel = panelOfWeight(w);
    if (usesTiles(target, w, rows))
      return selectTiles(op, rows, panel);
    Draft draft = draftTile(op, rows, x.isDynamicDim(0) && areFewRows(rows));
    const int64_t tileRows = draft.tile[0];

    int64_t rowTiles = llvm::divideCeil(rows, tileRows);
    int64_t mostTiles = llvm::divideCeil(rowsOfCaches(draft, extent), tileRows);
    int64_t wantedRows = rowsOfGroup(rows, columns * groups, tileRows);
    int64_t groupTiles = std::clamp<int64_t>(
        mostTiles, 1,
        std::min<int64_t>(rowTiles, llvm::divideCeil(wantedRows, tileRows)));
    int64_t groupRows = groupTiles * tileRows;
    int64_t panels = llvm::divideCeil(columns, panel);
    int64_t fewestPanels =
        llvm::divideCeil(workPerGroup, extent * panel * groups * groupRows);
    // Each group makes its rows ready anew: in 8 bits, unless somebody did
    // before, that takes long.
    int64_t wanted = wantedGroups();
    if (multipliesBytes(draft.dot) && !op.getScales())
      wanted = int8ColumnGroups(rows, columns * groups, threads);
    else if (threads == 1 && rows > 1)
      wanted = 1;
    int64_t columnGroups = std::clamp<int64_t>(
        llvm::divideCeil(panels, fewestPanels), 1,
        llvm::divideCeil(wanted, llvm::divideCeil(rowTiles, groupTiles)));
    panels = llvm::divideCeil(panels, columnGroups);
    // Steps of fewer rows have as few groups of columns, so that these are no
    // fewer where groups of rows become more.
    if (sharesUnits(op, draft, rows))
      groupRows = std::min(groupRows, mostSharingRows / tileRows * tileRows);
    draft.workgroup = {groupRows, panels * panel};
    return get(draft, op);
  }

  /// The schedule of a product whose tile and workgroup are chosen.
  VectorScheduleAttr get(Draft &draft, ProductOpInterface op) {
    setSharing(draft, op, target.countRegisters());
    setPrefetch(draft, op, target);
    return draft.get(context);
  }

  /// Of one token, a workgroup has columns of one of its experts. Of more, it
  /// has columns of all experts of all tokens: each expert's weight is read
  /// once, for those of its rows that there are. These are taken as many at a
  /// time as an expert has if all have as many, four times over. Where columns
  /// are too few for all workers and the caches keep the weight, as those of
  /// adapters, workers share the tokens, too, and read it again.
  VectorScheduleAttr selectExperts(ExpertMatmulOp op, int64_t tokens) {
    auto chosen = cast<RankedTensorType>(op.getExperts().getType());
    auto w = cast<RankedTensorType>(op.getW().getType());
    const int64_t groups = op.getGlu() ? 2 : 1, top = chosen.getDimSize(1);
    const int64_t columns = w.getShape().end()[-2],
                  extent = w.getShape().back();
    const int64_t rows = std::min(
        chosen.isDynamicDim(0) ? tokens : chosen.getDimSize(0), expertTokens);
    const int64_t each = llvm::divideCeil(rows * top, op.countExperts());
    const int64_t most = rows == 1 ? 1 : std::min(4 * each, rows);
    Draft draft = draftTile(op, most, areFewRows(most));
    const int64_t tileRows = draft.tile[0], panel = draft.tile[1];
    const int64_t ready =
        std::clamp<int64_t>(rowsOfCaches(draft, extent), 1, most);
    draft.tile.push_back(llvm::alignTo(ready, tileRows));
    const int64_t panels = llvm::divideCeil(columns, panel);
    const int64_t work = extent * panel * groups *
                         (rows == 1 ? 1 : std::min(rows * top, workPerGroup));
    const int64_t fewestPanels = llvm::divideCeil(workPerGroup, work);
    const int64_t wanted =
        rows == 1 ? llvm::divideCeil(wantedGroups(), top) : wantedGroups();
    const int64_t columnGroups =
        std::clamp<int64_t>(llvm::divideCeil(panels, fewestPanels), 1,
                            std::max<int64_t>(wanted, 1));
    const int64_t ofGroup = llvm::divideCeil(panels, columnGroups) * panel;
    if (rows == 1) {
      draft.workgroup = {1, 1, ofGroup};
      return get(draft, op);
    }
    const int64_t worthwhile =
        llvm::divideCeil(extent * ofGroup * groups * rows * top, workPerGroup);
    const int64_t rowGroups =
        staysInCaches(w) ? std::clamp<int64_t>(wanted / columnGroups, 1,
                                               std::min(worthwhile, rows))
                         : 1;
    const int64_t groupRows = llvm::divideCeil(rows, rowGroups);
    draft.workgroup = {groupRows, 0, ofGroup};
    draft.tile[2] = std::min(draft.tile[2], static_cast<int64_t>(llvm::alignTo(
                                                groupRows * top, tileRows)));
    return get(draft, op);
  }

  bool staysInCaches(RankedTensorType w) const {
    auto element = dyn_cast<FloatType>(w.getElementType());
    return element &&
           w.getNumElements() * element.getWidth() / 8 <= caches.third;
  }

  /// Parts of K of whole blocks, even ones where K is not of whole turns: with
  /// these, what is left over is the last part. 0: all of it.
  int64_t tileReductionOf(RankedTensorType w) {
    const int64_t extent = w.getShape().back();
    if (threads == 1 && extent <= tileReductionAlone)
      return 0;
    auto quant = dyn_cast<QuantType>(w.getElementType());
    const int64_t block =
        quant ? getStorage(quant.getFormat()).elements : 2 * amxTile;
    const int64_t step = 2 * amxTile, turn = amxTurn * step;
    const int64_t parts = llvm::divideCeil(extent, tileReduction);
    const int64_t part =
        llvm::alignTo(llvm::divideCeil(extent, parts),
                      std::max(block, extent % turn == 0 ? turn : step));
    return part < extent ? part : 0;
  }

  /// Tiles of 32 rows and 32 columns, four sums: as many as there are registers
  /// for, beside what is multiplied. Every workgroup converts its rows and its
  /// panels, so that there are about as many as workers, or as many as keep
  /// rows and sums as small as said above.
  VectorScheduleAttr selectTiles(MatmulOp op, int64_t rows, int64_t panel) {
    auto x = cast<RankedTensorType>(op.getX().getType());
    auto w = cast<RankedTensorType>(op.getW().getType());
    int64_t groups = op.getGlu() ? 2 : 1;
    int64_t columns = w.getShape().end()[-2], extent = x.getDimSize(1);
    Draft draft;
    draft.lanes = lanes;
    draft.dot = DotKind::BF16;
    draft.tile = {2 * amxTile, panel};
    draft.reduction = tileReductionOf(w);
    int64_t mostRows =
        std::clamp<int64_t>(tileRowCaches * caches.third / (extent * 2),
                            draft.tile[0], tileRowsPerGroup);
    int64_t rowGroups = llvm::divideCeil(rows, mostRows);
    int64_t groupRows =
        llvm::alignTo(llvm::divideCeil(rows, rowGroups), draft.tile[0]);
    int64_t panels = llvm::divideCeil(columns, panel);
    // Sums of parts wait in the second-level cache; of one worker in half of
    // it.
    int64_t ofSums = threads == 1 ? caches.second / 2 : caches.second;
    int64_t mostPanels =
        draft.reduction
            ? std::max<int64_t>(ofSums / (groupRows * panel * groups * 4), 1)
            : panels;
    int64_t columnGroups = std::max<int64_t>(
        llvm::divideCeil(panels, mostPanels),
        threads > 1 ? llvm::divideCeil(threads, rowGroups) : 1);
    columnGroups = std::min(columnGroups, panels);
    panels = llvm::divideCeil(panels, columnGroups);
    draft.workgroup = {groupRows, panels * panel};
    return draft.get(context);
  }

  static bool hasSeveralSequences(CacheAttentionInterface op) {
    return cast<RankedTensorType>(op.getPageTable().getType()).getDimSize(0) !=
           1;
  }

  /// Whether `group` query rows of a KV head for each of several tokens are
  /// enough for tiles. Where tokens are alone in their sequences, vectors
  /// multiply them, and larger workgroups would only be fewer.
  bool attendsInTiles(CacheAttentionInterface op, int64_t tokens, int64_t group,
                      int64_t keys) {
    if (hasSeveralSequences(op) && tokens < fewestSharedTokens)
      return false;
    return target.getAmx() && fitsTiles(op) && keys % (2 * amxTile) == 0 &&
           !isa<AttentionPartialOp>(op.getOperation()) && tokens > 1 &&
           tokens * group >= fewestAttentionTileRows;
  }

  /// A KV head and a few tokens to a workgroup.
  VectorScheduleAttr selectAttention(CacheAttentionInterface op,
                                     int64_t tokens) {
    auto q = cast<RankedTensorType>(op.getQ().getType());
    KVCacheType cache = op.getCache().getType();
    int64_t group = q.getDimSize(1) / cache.getKvHeads();
    // A tile of keys lies in one page.
    int64_t keys = std::gcd(keyTile, cache.getPage());
    int64_t rows = q.isDynamicDim(0) ? tokens : q.getDimSize(0);
    const bool inTiles = attendsInTiles(op, rows, group, keys);
    const int64_t mostRows = inTiles ? attentionTileRows : attentionRows;
    int64_t rowsOfGroup =
        std::min<int64_t>(rows, std::max<int64_t>(1, mostRows / group));
    int64_t vectors =
        std::max<int64_t>(keys / lanes, 1); // of scores, for each query row
    int64_t registers = manyRegisters ? 24 : 12;
    int64_t tileRows =
        std::clamp<int64_t>(registers / vectors, 1, rowsOfGroup * group);
    const int64_t fewestRows = inTiles ? fewestAttentionTileRows : tileRows;
    // Even tiles of a token's heads.
    int64_t tileOfToken =
        llvm::divideCeil(group, llvm::divideCeil(group, tileRows));
    // Few rows make few workgroups: less than a tile is not worth one, though.
    while (rowsOfGroup / 2 * group >= fewestRows &&
           static_cast<int64_t>(cache.getKvHeads() *
                                llvm::divideCeil(rows, rowsOfGroup)) <
               wantedGroups())
      rowsOfGroup /= 2;
    Draft draft;
    draft.lanes = lanes;
    draft.workgroup = {rowsOfGroup, group};
    draft.reduction = keys;
    if (isa<AttentionPartialOp>(op.getOperation())) {
      // A part of a token's keys to a workgroup.
      draft.workgroup = {1, group, 1};
      draft.tile = {tileOfToken};
      return draft.get(context);
    }
    // Of several sequences, many rows may be alone in theirs.
    const bool severalSequences = hasSeveralSequences(op);
    if (inTiles) {
      draft.dot = DotKind::BF16;
      draft.tile = {amxTile};
      if (severalSequences)
        draft.tile.push_back(tileOfToken);
      return draft.get(context);
    }
    if (rows == 1)
      draft.tile = {tileOfToken};
    else if (severalSequences && tileOfToken != tileRows)
      draft.tile = {tileRows, tileOfToken};
    else
      draft.tile = {tileRows};
    return draft.get(context);
  }

  /// A panel to a workgroup.
  VectorScheduleAttr selectPack(PackOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    Draft draft;
    draft.workgroup.assign(type.getRank() - 1, 0);
    draft.workgroup.back() = getLayout(type).getPanel();
    return draft.get(context);
  }

  /// Rows of the result in as many workgroups as workers ask for: each reads
  /// all of x.
  VectorScheduleAttr selectWgrad(MatmulWgradOp op) {
    Draft draft;
    draft.lanes = lanes;
    const int64_t rows = cast<RankedTensorType>(op.getType()).getDimSize(0);
    const int64_t tiles =
        llvm::divideCeil(llvm::divideCeil(rows, wantedGroups()), wgradRows);
    draft.workgroup = {tiles * wgradRows};
    return draft.get(context);
  }

  /// Each workgroup looks at all ids.
  VectorScheduleAttr selectScatter() {
    Draft draft;
    draft.lanes = lanes;
    draft.workgroup = {scatterRows};
    return draft.get(context);
  }

  /// Rows to a workgroup, so that one holds some thousand elements.
  VectorScheduleAttr selectRows(KernelOp kernel) {
    Draft draft;
    draft.lanes = lanes;
    Type type = kernel.getNumResults() ? kernel.getResultTypes()[0] : Type();
    if (auto append = find<KVAppendOp>(kernel))
      type = append.getK().getType();
    if (auto argmax = find<ArgmaxOp>(kernel))
      type = argmax.getLogits().getType();
    int64_t wanted = 8192; // elements
    if (auto sample = find<SampleOp>(kernel)) {
      type = sample.getLogits().getType();
      wanted = 2048; // which filters read again and again
    }
    if (find<GatedDeltaOp>(kernel)) { // a sequence and a head
      draft.workgroup = {1, 1};
      return draft.get(context);
    }
    auto tensor = dyn_cast_or_null<RankedTensorType>(type);
    if (!tensor || tensor.getRank() == 0) // nothing to tile: one workgroup
      return draft.get(context);
    Operation *root = kernel.getNumResults()
                          ? kernel.getYield().getOperand(0).getDefiningOp()
                          : nullptr;
    if (auto reduce = dyn_cast_or_null<ReduceOp>(root))
      return selectReduce(reduce);
    if (auto product = dyn_cast_or_null<BatchMatmulOp>(root))
      return selectBatches(product);
    if (tensor.getRank() == 1) {
      // Rows have one dimension: a norm is one row, elementwise ops split it.
      bool whole = llvm::any_of(kernel.getBody().front(), [](Operation &op) {
        auto loops = dyn_cast<LoopOpInterface>(op);
        return loops &&
               loops.getLoopTypes()[0] != utils::IteratorType::parallel;
      });
      draft.workgroup = {whole ? 0 : 4096};
      return draft.get(context);
    }
    int64_t elements = 1;
    for (int64_t extent : tensor.getShape().drop_front())
      elements *= extent;
    draft.workgroup = {
        std::clamp<int64_t>(wanted / std::max<int64_t>(elements, 1), 1, 64)};
    return draft.get(context);
  }

  /// The first loop that is not reduced, in steps of some thousand elements of
  /// the operand.
  VectorScheduleAttr selectReduce(ReduceOp op) {
    Draft draft;
    draft.lanes = lanes;
    auto type = cast<RankedTensorType>(op.getX().getType());
    int64_t elements = 1, loop = -1;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (loop < 0 && !op.isReduced(dim))
        loop = dim;
      else
        elements *=
            type.isDynamicDim(dim) ? rowsOfReduction : type.getDimSize(dim);
    }
    if (loop < 0)
      return draft.get(context);
    draft.workgroup.assign(loop + 1, 0);
    draft.workgroup[loop] =
        std::clamp<int64_t>(8192 / std::max<int64_t>(elements, 1), 1, 4096);
    return draft.get(context);
  }

  /// Rows of a batch to a workgroup, with enough work for it.
  VectorScheduleAttr selectBatches(BatchMatmulOp op) {
    Draft draft;
    draft.lanes = lanes;
    auto w = cast<RankedTensorType>(op.getW().getType());
    int64_t rank = w.getRank();
    int64_t work = w.getDimSize(rank - 2) * w.getDimSize(rank - 1);
    draft.workgroup.assign(rank - 1, 1);
    draft.workgroup.back() =
        std::clamp<int64_t>(workPerGroup / std::max<int64_t>(work, 1), 1, 64);
    // Sums of these rows by four vectors, and the vectors, stay in registers.
    const int64_t rows = manyRegisters ? 4 : 2;
    draft.workgroup.back() = llvm::alignTo(draft.workgroup.back(), rows);
    draft.tile = {rows};
    return draft.get(context);
  }

  CpuTargetAttr target;
  MLIRContext *context;
  int64_t lanes;
  bool manyRegisters; // 32, not 16
  int64_t threads;    // that share the workgroups
  CacheSizes caches;
};

} // namespace

SmallVector<Type> mlir::kf::getCpuRowTypes(Operation *op, CpuTargetAttr target,
                                           int64_t rows) {
  if (auto product = dyn_cast<ProductOpInterface>(op))
    return Selector(target).getRowTypes(product, rows);
  return {Float32Type::get(op->getContext())};
}

VectorScheduleAttr mlir::kf::selectCpuSchedule(KernelOp kernel,
                                               CpuTargetAttr target,
                                               int64_t rows) {
  if (failed(checkVectorSupport(kernel)))
    return {};
  return Selector(target).select(kernel, rows);
}
