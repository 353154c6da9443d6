//===- PlanMemory.cpp - Arena offsets of a program ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/ArenaBytes.h"
#include "kf/Transforms/Passes.h"
#include "runtime/core/ExpertTiles.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::kf {
#define GEN_PASS_DEF_PLANMEMORY
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

/// More than any tensor has, and far enough from overflow to be rounded up.
static constexpr int64_t maxBytes = int64_t(1) << 60;

FailureOr<int64_t> mlir::kf::getArenaBytes(RankedTensorType type,
                                           int64_t rows) {
  if (hasFragments(type)) {
    std::optional<int64_t> bytes = ::kf::rowBlockBytes(
        *getFragmentTile(type.getElementType()), type.getShape());
    if (!bytes || *bytes > maxBytes)
      return failure();
    return *bytes;
  }
  int64_t elements = 1;
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    int64_t size = ShapedType::isDynamic(extent) ? rows : extent;
    if (size > maxBytes)
      return failure();
    if (LayoutAttr layout = getLayout(type);
        layout && static_cast<int64_t>(dim) == type.getRank() - 2)
      size = llvm::alignTo(size, layout.getPanel());
    if (llvm::MulOverflow(elements, size, elements))
      return failure();
  }
  int64_t blockElements = 1, blockBytes = 0;
  if (auto quant = dyn_cast<QuantType>(type.getElementType())) {
    const ::kf::BlockFormat &info = getStorage(quant.getFormat());
    blockElements = info.elements;
    blockBytes = getLayout(type) ? ::kf::PackedBlock(info).bytes : info.bytes;
  } else {
    blockBytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  }
  int64_t bytes;
  if (llvm::MulOverflow(elements / blockElements, blockBytes, bytes) ||
      bytes > maxBytes)
    return failure();
  return bytes;
}

namespace {

/// A result of a dispatch that lives in the arena.
struct Interval {
  OpResult value;
  int64_t bytes;
  int64_t begin, end; // numbers of the dispatches that write and last read it
  int64_t offset = -1;

  bool overlaps(const Interval &other) const {
    return begin <= other.end && other.begin <= end;
  }
};

struct PlanMemoryPass : mlir::kf::impl::PlanMemoryBase<PlanMemoryPass> {
  using PlanMemoryBase::PlanMemoryBase;

  void runOnOperation() override {
    ProgramOp program = getOperation();
    if (!llvm::isPowerOf2_64(alignment) || alignment > (1 << 20)) {
      program.emitError("kf-plan-memory: alignment must be a power of two up "
                        "to 1 MiB, found ")
          << alignment.getValue();
      return signalPassFailure();
    }
    SmallVector<Interval> intervals;
    if (failed(collect(program, intervals)))
      return signalPassFailure();
    int64_t arena = place(intervals);

    DenseMap<Value, int64_t> offsets;
    for (const Interval &interval : intervals)
      offsets[interval.value] = interval.offset;
    Builder builder(&getContext());
    program.walk([&](DispatchInterface dispatch) {
      SmallVector<int64_t> list;
      for (Value result : dispatch->getResults()) {
        auto it = offsets.find(result);
        list.push_back(it == offsets.end() ? -1 : it->second);
      }
      dispatch.setOffsets(list);
    });
    program.setArenaBytes(arena);
  }

private:
  LogicalResult collect(ProgramOp program,
                        SmallVectorImpl<Interval> &intervals) {
    DenseMap<Operation *, int64_t> numbers;
    int64_t total = 0; // bytes, were none shared
    program.walk(
        [&](DispatchInterface op) { numbers.insert({op, numbers.size()}); });
    auto isResult = [](OpOperand &use) { return isa<YieldOp>(use.getOwner()); };
    WalkResult walk = program.walk([&](DispatchInterface dispatch) {
      for (OpResult result : dispatch->getResults()) {
        if (llvm::any_of(result.getUses(), isResult))
          continue;
        auto type = cast<RankedTensorType>(result.getType());
        int64_t rows = program.getMostRows(type);
        FailureOr<int64_t> bytes = getArenaBytes(type, rows);
        if (failed(bytes) ||
            llvm::AddOverflow<int64_t>(
                total, static_cast<int64_t>(llvm::alignTo(*bytes, alignment)),
                total)) {
          dispatch.emitError("kf-plan-memory: with ")
              << type << " of " << rows
              << " rows, the arena's size overflows 64 bits";
          return WalkResult::interrupt();
        }
        int64_t begin = numbers[dispatch], end = begin;
        for (Operation *user : result.getUsers())
          end = std::max(end, numbers[user]);
        intervals.push_back({result, *bytes, begin, end});
      }
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }

  /// Gives every interval its offset, and returns the arena's size.
  int64_t place(MutableArrayRef<Interval> intervals) {
    SmallVector<Interval *> order;
    for (Interval &interval : intervals)
      order.push_back(&interval);
    llvm::sort(order, [](const Interval *a, const Interval *b) {
      return std::tuple(-a->bytes, a->begin) < std::tuple(-b->bytes, b->begin);
    });
    SmallVector<Interval *> placed; // by offset
    int64_t arena = 0;
    for (Interval *interval : order) {
      int64_t offset = 0;
      for (Interval *other : placed) {
        if (!interval->overlaps(*other))
          continue;
        if (offset + interval->bytes <= other->offset)
          break;
        offset = std::max<int64_t>(
            offset, llvm::alignTo(other->offset + other->bytes, alignment));
      }
      interval->offset = offset;
      arena = std::max<int64_t>(
          arena, llvm::alignTo(offset + interval->bytes, alignment));
      placed.insert(llvm::upper_bound(placed, interval,
                                      [](const Interval *a, const Interval *b) {
                                        return a->offset < b->offset;
                                      }),
                    interval);
    }
    return arena;
  }
};

} // namespace
