//===- ScheduleCandidates.cpp - Schedules to measure on CPUs --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every candidate is the default with some fields changed, so that what the
// weight's layout decides (panel, lanes) stays as it is. So does what a product
// multiplies in: 8-bit products round rows of x, and how much of that a model
// takes is not for a clock to decide.
//
//===----------------------------------------------------------------------===//

#include "ScheduleCandidates.h"
#include "KernelConfig.h"
#include "ProductTiles.h"
#include "VerifySchedule.h"
#include "Workers.h"

#include "kf/Conversion/VectorSchedule.h"

#include "llvm/ADT/SetVector.h"

#include <set>

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Of a third-level cache, what a workgroup's rows of x may take, beside what
/// the default gives them.
constexpr int64_t rowsOfCache = 4;
/// Products of vectors in the unrolled steps of a matmul beyond which unrolling
/// further only costs time to compile.
constexpr int64_t mostUnrolledProducts = 128;
/// Register tiles of different heights that are tried.
constexpr size_t mostTileHeights = 6;
/// Query rows of a register tile of attention.
constexpr int64_t mostAttentionRows = 32;
/// Elements of a workgroup of a kernel of rows.
constexpr int64_t mostElements = 256 * 1024;

class Candidates {
public:
  Candidates(KernelOp kernel, CpuTargetAttr target, int64_t rows)
      : kernel(kernel), target(target), tokens(rows),
        workers(threadsOf(target)),
        manyRegisters(target.countRegisters() == 32),
        mostRowBytes(describeCpuMachine(target).caches.third / rowsOfCache) {}

  SmallVector<ScheduleAttrInterface> list() {
    VectorScheduleAttr chosen = selectCpuSchedule(kernel, target, tokens);
    if (!chosen || failed(verifyCpuSchedule(kernel, chosen, target, [&] {
          return kernel.emitError("schedule cannot run on this CPU: ");
        })))
      return {};
    first = VectorDraft(chosen);
    schedules.insert(chosen);
    if (auto matmul = find<MatmulOp>())
      addMatmul(matmul);
    else if (auto attention = find<CacheAttentionInterface>())
      addAttention(attention);
    else if (auto product = find<ExpertMatmulOp>())
      addExperts(product);
    else
      addRows();
    return schedules.takeVector();
  }

private:
  template <typename OpTy> OpTy find() {
    auto ops = kernel.getBody().getOps<OpTy>();
    return ops.empty() ? OpTy() : *ops.begin();
  }

  /// A product's, whose tile and workgroup say what register tiles share.
  void add(VectorDraft draft, ProductOpInterface op) {
    setSharing(draft, op, target.countRegisters());
    setPrefetch(draft, op, target);
    add(draft);
  }

  /// What does not verify is left out.
  void add(const VectorDraft &draft) {
    VectorScheduleAttr schedule = draft.get(kernel.getContext());
    if (succeeded(verifyCpuSchedule(kernel, schedule, target, nullptr)))
      schedules.insert(schedule);
  }

  int64_t rowsOf(Value tensor) {
    auto type = cast<RankedTensorType>(tensor.getType());
    return type.isDynamicDim(0) ? tokens : type.getDimSize(0);
  }

  //===--- Products -------------------------------------------------------===//

  void addMatmul(MatmulOp op) {
    auto x = cast<RankedTensorType>(op.getX().getType());
    auto w = cast<RankedTensorType>(op.getW().getType());
    bool quantized = isa<QuantType>(w.getElementType());
    int64_t rows = rowsOf(op.getX()), extent = x.getDimSize(1);
    // Of a row, at a time: groups of one row and of few are summed up in turn,
    // and all where registers are few.
    bool inTurn =
        rows == 1 || (x.isDynamicDim(0) && areFewRows(rows)) || !manyRegisters;
    int64_t vectors =
        (op.getGlu() && !inTurn ? 2 : 1) * first.tile[1] / first.lanes;
    int64_t panels = llvm::divideCeil(w.getShape().end()[-2], first.tile[1]);
    if (first.dot == DotKind::BF16)
      return addTiles(rows, extent, panels);
    int64_t rowBytes = extent * (multipliesBytes(first.dot)        ? 1
                                 : first.dot == DotKind::BF16Pairs ? 2
                                                                   : 4);
    for (int64_t tileRows : tileHeights(rows, vectors)) {
      VectorDraft draft = first;
      draft.tile[0] = tileRows;
      if (!quantized)
        setAccumulators(draft, tileRows * vectors);
      for (int64_t groupRows : rowsOfGroups(rows, tileRows, rowBytes)) {
        draft.workgroup[0] = groupRows;
        for (int64_t groupPanels :
             panelsOfGroups(panels, first.workgroup[1] / first.tile[1])) {
          draft.workgroup[1] = groupPanels * draft.tile[1];
          add(draft, op);
        }
      }
      if (!quantized)
        addUnrolled(op, draft, rows,
                    first.dot == DotKind::BF16Pairs ? extent / 2 : extent,
                    vectors);
    }
    addSharing(op);
    addPrefetches(op);
  }

  /// The default, but that its groups are summed up in another order, and that
  /// register tiles share more of a panel, or less: of workgroups of at most
  /// `mostSharingRows`, whose number is unknown. Of more, apart is not tried,
  /// nor an unpacked panel where the default has none: where one can be, it is
  /// unpacked by default, which pays for so many rows, and few of them are left
  /// to smaller tiles.
  void addSharing(ProductOpInterface op) {
    const bool isOfBytes = multipliesBytes(first.dot);
    const bool hasExperts = first.tile.size() == 3;
    const int64_t rows = hasExperts ? first.tile[2] : first.workgroup[0];
    SmallVector<std::pair<PanelUse, RowDivision>> ways = {
        {first.panels, first.rowTiles}};
    if (first.tile[0] > 1 && rows <= mostSharingRows &&
        hasUnknownRows(op, first.workgroup[0])) {
      ways.push_back({PanelUse::Apart, RowDivision::Whole});
      ways.push_back({PanelUse::Apart, RowDivision::Even});
      if (rows > first.tile[0])
        ways.push_back({PanelUse::Unpacked, RowDivision::Whole});
      if (isOfBytes)
        ways.push_back({PanelUse::Shared, RowDivision::Even});
    }
    for (auto [panels, rowTiles] : ways) {
      VectorDraft draft = first;
      draft.panels = panels;
      draft.rowTiles = rowTiles;
      draft.groups = GroupOrder::Together;
      setPrefetch(draft, op, target);
      add(draft);
      if (isOfBytes)
        continue;
      draft.groups = GroupOrder::InTurn;
      add(draft);
    }
  }

  /// The default, but that lines of the weight are asked for in other ways,
  /// where memory is waited for. Of a small weight, once is as twice.
  void addPrefetches(ProductOpInterface op) {
    if (!waitsForMemory(first, op))
      return;
    for (PrefetchKind prefetch :
         {PrefetchKind::Twice, PrefetchKind::Once, PrefetchKind::Hardware}) {
      if (prefetch == PrefetchKind::Once && hasSmallWeight(op, target))
        continue;
      VectorDraft draft = first;
      draft.prefetch = prefetch;
      draft.hardwareRows = 0;
      add(draft);
    }
  }

  /// As many sums of each element as keep units busy beside `vectors` others.
  static void setAccumulators(VectorDraft &draft, int64_t vectors) {
    draft.accumulators = std::clamp<int64_t>(8 / vectors, 1, draft.unroll);
    while (draft.unroll % draft.accumulators != 0)
      --draft.accumulators;
  }

  /// Rows of an expert that are made ready at once, their tiles, and columns of
  /// a workgroup.
  void addExperts(ExpertMatmulOp op) {
    auto w = cast<RankedTensorType>(op.getW().getType());
    const int64_t vectors = (op.getGlu() ? 2 : 1) * first.tile[1] / first.lanes;
    const int64_t panels =
        llvm::divideCeil(w.getShape().end()[-2], first.tile[1]);
    for (int64_t tileRows : tileHeights(first.tile[2], vectors))
      for (int64_t most :
           {first.tile[2], first.tile[2] / 2, first.tile[2] * 2}) {
        VectorDraft draft = first;
        draft.tile[0] = tileRows;
        draft.tile[2] = llvm::alignTo(
            std::clamp<int64_t>(most, 1, first.workgroup[0]), tileRows);
        if (!isa<QuantType>(w.getElementType()))
          setAccumulators(draft, tileRows * vectors);
        for (int64_t ofGroup :
             panelsOfGroups(panels, first.workgroup[2] / first.tile[1])) {
          draft.workgroup[2] = ofGroup * draft.tile[1];
          add(draft, op);
        }
      }
    addSharing(op);
    addPrefetches(op);
  }

  /// Parts of K, and workgroups of as many rows as share a panel.
  void addTiles(int64_t rows, int64_t extent, int64_t panels) {
    for (int64_t tileRows : {2 * amxTile, amxTile})
      for (int64_t reduction : {0, 256, 512, 1024, 2048}) {
        if (reduction >= extent)
          continue;
        VectorDraft draft = first;
        draft.tile[0] = tileRows;
        draft.reduction = reduction;
        for (int64_t groupRows : rowsOfGroups(rows, tileRows, extent * 2)) {
          draft.workgroup[0] = groupRows;
          for (int64_t groupPanels :
               panelsOfGroups(panels, first.workgroup[1] / first.tile[1])) {
            draft.workgroup[1] = groupPanels * draft.tile[1];
            add(draft);
          }
        }
      }
  }

  /// Heights of register tiles whose sums fit in registers, the default's among
  /// them; heights that leave as many tiles are one, the evenest.
  std::set<int64_t> tileHeights(int64_t rows, int64_t vectors) {
    int64_t registers = manyRegisters ? 30 : 14;
    // Sums of 8-bit products have others of their sub-block beside them, of one
    // group at a time.
    if (multipliesBytes(first.dot)) {
      registers = manyRegisters ? 16 : 8;
      vectors = first.tile[1] / first.lanes;
    }
    int64_t most = std::clamp<int64_t>(registers / vectors, 1, rows);
    std::set<int64_t> heights = {first.tile[0]};
    for (int64_t height = most; height > 0 && heights.size() < mostTileHeights;
         --height)
      heights.insert(llvm::divideCeil(rows, llvm::divideCeil(rows, height)));
    return heights;
  }

  /// Whole tiles that a workgroup may have: every power of four, and all rows.
  std::set<int64_t> rowsOfGroups(int64_t rows, int64_t tileRows,
                                 int64_t rowBytes) {
    int64_t tiles = llvm::divideCeil(rows, tileRows);
    int64_t most =
        std::clamp<int64_t>(mostRowBytes / rowBytes / tileRows, 1, tiles);
    std::set<int64_t> groupRows = {most * tileRows};
    for (int64_t count = 1; count < most; count *= 4)
      groupRows.insert(count * tileRows);
    if (first.workgroup[0] % tileRows == 0)
      groupRows.insert(first.workgroup[0]);
    return groupRows;
  }

  /// Panels of a workgroup: `chosen`, and those for one, two, and more groups a
  /// worker.
  std::set<int64_t> panelsOfGroups(int64_t panels, int64_t chosen) {
    std::set<int64_t> counts = {chosen};
    for (int64_t groups :
         {int64_t(1), workers, 4 * workers, 16 * workers, 64 * workers})
      counts.insert(std::max<int64_t>(llvm::divideCeil(panels, groups), 1));
    return counts;
  }

  /// Other unrolling and sums, with the default's workgroup as nearly as the
  /// tile divides it.
  void addUnrolled(ProductOpInterface op, VectorDraft draft, int64_t rows,
                   int64_t extent, int64_t vectors) {
    int64_t tileRows = draft.tile[0];
    draft.workgroup = first.workgroup;
    draft.workgroup[0] =
        std::max<int64_t>(first.workgroup[0] / tileRows * tileRows, tileRows);
    for (int64_t unroll : {1, 2, 4, 8, 16}) {
      if (extent % unroll != 0 ||
          unroll * tileRows * vectors > mostUnrolledProducts)
        continue;
      draft.unroll = unroll;
      for (int64_t sums : {1, 2, 4, 8}) {
        // More sums than hide the latency of an addition are only added up.
        if (unroll % sums != 0 || (sums > 1 && sums * tileRows * vectors > 16))
          continue;
        draft.accumulators = sums;
        add(draft, op);
      }
    }
  }

  //===--- Attention ------------------------------------------------------===//

  void addAttention(CacheAttentionInterface op) {
    KVCacheType cache = op.getCache().getType();
    auto q = cast<RankedTensorType>(op.getQ().getType());
    int64_t group = q.getDimSize(1) / cache.getKvHeads();
    int64_t rows = rowsOf(op.getQ());
    bool isPartial = isa<AttentionPartialOp>(op.getOperation());
    const bool inTiles = first.dot == DotKind::BF16;
    for (int64_t keys = first.lanes; keys <= 8 * first.lanes; keys *= 2) {
      VectorDraft draft = first;
      draft.reduction = keys;
      const int64_t most = inTiles ? 256 : 64;
      for (int64_t tokensOfGroup = 1;
           tokensOfGroup <= std::min<int64_t>(rows, most); tokensOfGroup *= 2) {
        if (!isPartial)
          draft.workgroup[0] = tokensOfGroup;
        if (inTiles) {
          add(draft);
          continue;
        }
        addRowTiles(draft, draft.workgroup[0] * group, group);
        if (isPartial)
          break;
      }
      draft.workgroup[0] = first.workgroup[0];
      if (inTiles)
        add(draft);
      else
        addRowTiles(draft, first.workgroup[0] * group, group);
    }
  }

  /// Register tiles of the `rows` query rows of a workgroup, `group` of them of
  /// one token.
  void addRowTiles(VectorDraft draft, int64_t rows, int64_t group) {
    int64_t vectors = draft.reduction / draft.lanes;
    int64_t most = std::clamp<int64_t>((manyRegisters ? 28 : 14) / vectors, 1,
                                       std::min(rows, mostAttentionRows));
    std::set<int64_t> heights;
    for (int64_t height = most; height > 0 && heights.size() < mostTileHeights;
         --height) {
      // Even tiles of all rows, or of a token's.
      heights.insert(llvm::divideCeil(rows, llvm::divideCeil(rows, height)));
      heights.insert(llvm::divideCeil(group, llvm::divideCeil(group, height)));
    }
    for (int64_t height : heights) {
      int64_t ofToken =
          llvm::divideCeil(group, llvm::divideCeil(group, height));
      if (first.tile.size() == 2 && height != ofToken)
        draft.tile = {height, ofToken};
      else
        draft.tile = {height};
      add(draft);
    }
  }

  //===--- Rows -----------------------------------------------------------===//

  /// A workgroup with fewer and with more of the loop that the default tiles.
  void addRows() {
    auto *loop =
        llvm::find_if(first.workgroup, [](int64_t size) { return size > 0; });
    if (loop == first.workgroup.end())
      return;
    int64_t size = *loop;
    Type type = kernel.getNumResults() ? kernel.getResultTypes()[0]
                                       : kernel.getArgumentTypes().back();
    for (int64_t factor = 16; factor > 1; factor /= 2)
      if (size % factor == 0)
        addSize(loop - first.workgroup.begin(), size / factor, type);
    for (int64_t factor = 2; factor <= 16; factor *= 2)
      addSize(loop - first.workgroup.begin(), size * factor, type);
  }

  void addSize(size_t loop, int64_t size, Type type) {
    VectorDraft draft = first;
    draft.workgroup[loop] = size;
    // A workgroup with more than there is is the same as one with all of it.
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      int64_t elements = size;
      for (auto [dim, extent] : llvm::enumerate(tensor.getShape())) {
        int64_t there = ShapedType::isDynamic(extent) ? tokens : extent;
        if (dim == loop && size / 2 >= there)
          return;
        if (dim > loop)
          elements *= there;
      }
      if (size > first.workgroup[loop] && elements > mostElements)
        return;
    }
    add(draft);
  }

  KernelOp kernel;
  CpuTargetAttr target;
  int64_t tokens, workers;
  bool manyRegisters;   // 32, not 16
  int64_t mostRowBytes; // of scratch
  VectorDraft first;    // the default
  llvm::SetVector<ScheduleAttrInterface, SmallVector<ScheduleAttrInterface>>
      schedules;
};

} // namespace

SmallVector<ScheduleAttrInterface>
mlir::kf::getCpuScheduleCandidates(KernelOp kernel, CpuTargetAttr target,
                                   int64_t rows) {
  return Candidates(kernel, target, rows).list();
}
