//===- KernelShape.cpp - What a schedule asks of a GPU workgroup ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Conversion/KernelShape.h"

#include "kf/Conversion/DeltaThreads.h"
#include "kf/Conversion/KernelLoops.h"
#include "kf/Conversion/RouteShape.h"

#include "KernelShapes.h"
#include "Products/CoopRows.h"
#include "Products/LaneTiles.h"
#include "Products/MmaSums.h"
#include "Units/BlockTiles.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Support/DebugStringHelper.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::kf;

int64_t mlir::kf::statisticsOf(Operation *norm) {
  return isa_and_nonnull<LayerNormOp>(norm) ? 2
         : isa_and_nonnull<RmsNormOp>(norm) ? 1
                                            : 0;
}

int64_t mlir::kf::getSampleLanes(int64_t threads) {
  int64_t lanes = std::min<int64_t>(threads, 32);
  while (threads % lanes != 0)
    --lanes;
  return lanes;
}

/// Bytes of one partial result a thread for each type that the kernel reduces.
static int64_t reductionBytes(KernelOp kernel, int64_t threads) {
  if (findOp<ArgmaxOp>(kernel))
    return 2 * 4 * threads;
  // Beside those of threads, two for each group, and a number of candidates.
  if (findOp<SampleOp>(kernel))
    return 4 * (6 * threads + 2 * (threads / getSampleLanes(threads)) + 1);
  if (auto route = findOp<RouteOp>(kernel)) // beside those of a softmax
    return 4 * (threads + RouteWords(route).all());
  if (auto delta = findOp<GatedDeltaOp>(kernel)) // the channels of a row
    return 4 * delta.getChannels();
  bool reduces = findOp<RmsNormOp>(kernel) || findOp<LayerNormOp>(kernel) ||
                 findOp<SoftmaxOp>(kernel);
  return reduces ? 4 * threads : 0;
}

/// Whether all that is made of `value` is elementwise, up to what is stored.
static bool isReadByElements(Value value) {
  llvm::SetVector<Value> values; // each once, however often it is read
  values.insert(value);
  for (size_t at = 0; at < values.size(); ++at)
    for (Operation *user : values[at].getUsers()) {
      if (isa<YieldOp, tensor::ParallelInsertSliceOp>(user))
        continue;
      if (!isElementwise(user))
        return false;
      values.insert(user->getResult(0));
    }
  return true;
}

/// The kernel's op with a loop, beside elementwise ops, if it is an OpTy and
/// elements of the result are made of one of its own; null: it is not.
template <typename OpTy> static OpTy findOnlyLoop(Operation *kernel) {
  OpTy found;
  WalkResult walk = kernel->walk([&](LoopOpInterface op) {
    if (isElementwise(op) || isView(op))
      return WalkResult::advance();
    auto own = dyn_cast<OpTy>(op.getOperation());
    if (found || !own)
      return WalkResult::interrupt();
    found = own;
    return WalkResult::advance();
  });
  const bool isIt =
      !walk.wasInterrupted() && found && isReadByElements(found.getResult());
  return isIt ? found : OpTy();
}

BatchMatmulOp mlir::kf::findBatchProduct(KernelOp kernel) {
  auto op = findOnlyLoop<BatchMatmulOp>(kernel);
  return op && cast<RankedTensorType>(op.getType()).getRank() == 3
             ? op
             : BatchMatmulOp();
}

ExpertMatmulOp mlir::kf::findExpertProduct(KernelOp kernel) {
  // Around a tile, the whole product may be left over, for its number of rows.
  auto tiles = kernel.getBody().getOps<scf::ForallOp>();
  return findOnlyLoop<ExpertMatmulOp>(
      tiles.empty() ? kernel.getOperation() : (*tiles.begin()).getOperation());
}

ReduceOp mlir::kf::findSharedReduction(KernelOp kernel) {
  auto op = findOnlyLoop<ReduceOp>(kernel);
  if (!op)
    return {};
  auto type = cast<RankedTensorType>(op.getX().getType());
  const int64_t first =
      type.getRank() - static_cast<int64_t>(op.getDims().size());
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (op.isReduced(dim) != (dim >= first))
      return {};
  return isa<FloatType>(type.getElementType()) ? op : ReduceOp();
}

bool mlir::kf::isTransposedInMemory(Value factor) {
  for (Value source = factor; Operation *op = source.getDefiningOp();
       source = op->getOperand(0)) {
    if (auto transpose = dyn_cast<TransposeOp>(op)) {
      ArrayRef<int64_t> order = transpose.getPermutation();
      return order.back() != static_cast<int64_t>(order.size()) - 1;
    }
    if (op->getNumOperands() == 0 || !(isView(op) || isElementwise(op)))
      return false;
  }
  return false;
}

bool WideFactors::are(Type x, Type w) {
  return getElementTypeOrSelf(x).isF32() && getElementTypeOrSelf(w).isF32() &&
         !hasFragments(w);
}

/// Words of bits for the ids that kf.sample adjusts: 65536 ids have their own.
static constexpr int64_t mostAdjustmentWords = 2048;

LogicalResult mlir::kf::checkSizes(ArrayRef<int64_t> workgroup, FailFn fail) {
  for (int64_t size : workgroup)
    if (size > largest)
      return fail("sizes are at most " + Twine(largest) + ", found " +
                  Twine(size));
  return success();
}

void mlir::kf::setThreads(KernelShape &shape, KernelOp kernel,
                          ArrayRef<int64_t> threads) {
  for (auto [dim, size] : llvm::enumerate(threads)) {
    shape.threads[dim] = size;
    shape.threadCount *= size;
  }
  shape.workgroupBytes = reductionBytes(kernel, shape.threadCount);
}

/// Sums of a thread of a product on matrix units: half of its registers.
static constexpr int64_t mmaSums = 128;
/// Elements of blocks that are not packed which a thread takes apart for a
/// step, and units of a warp whose packed codes are taken apart for all steps
/// of a tile: more are too much code.
static constexpr int64_t mmaDecoded = 32, mmaDecodedUnits = 2;

static Type elementOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

/// Whether codes of elements of type `element` are looked up in a table.
static bool hasTable(Type element) {
  auto quant = dyn_cast<QuantType>(element);
  return quant && getStorage(quant.getFormat()).table;
}

bool mlir::kf::isForCoop(MatmulOp op, Type rows) {
  auto w = cast<RankedTensorType>(op.getW().getType());
  const Type element = w.getElementType();
  // Codes become f16.
  const bool isCode = isa<QuantType, Float8E4M3FNType>(element);
  const Type factor = getUnitElement(element, /*areManyRows=*/true);
  return getFragmentTile(element) && ::kf::hasFragments(w.getShape()) &&
         w.getShape().back() % CoopShape::vectorColumns == 0 &&
         rows == factor && (!isCode || factor.isF16());
}

/// Begins the shape of a product on matrix units: `units` is its CoopShape or
/// MmaShape, and what both say of warps and tiles is taken from the schedule.
template <typename Units>
static KernelShape beginMmaShape(int64_t groups, MmaScheduleAttr schedule,
                                 std::optional<Units> KernelShape::*units) {
  KernelShape shape;
  shape.groups = groups;
  shape.rows = schedule.getWorkgroup().end()[-2];
  shape.columns = schedule.getWorkgroup().end()[-1];
  Units &own = (shape.*units).emplace();
  own.rowWarps = schedule.getWarps()[0];
  own.lineWarps = schedule.getWarps()[1];
  own.rows = shape.rows;
  own.lines = shape.columns * shape.groups;
  return shape;
}

/// The shape of a product on cooperative matrices.
static FailureOr<KernelShape>
getCoopShape(MatmulOp op, MmaScheduleAttr schedule, FailFn fail) {
  auto x = cast<RankedTensorType>(op.getX().getType());
  auto w = cast<RankedTensorType>(op.getW().getType());
  const MatrixUnit unit = schedule.getUnit();
  const int64_t subgroup = getMachine(op).subgroupThreads;
  if (subgroup == 0)
    return fail(Twine("unit = ") + stringifyMatrixUnit(unit) +
                " is of Vulkan devices whose subgroups multiply matrices");
  if (!isForCoop(op, x.getElementType()) || op.getScales() ||
      !multiplies(unit, x.getElementType()))
    return fail(Twine("unit = ") + stringifyMatrixUnit(unit) +
                " multiplies rows of its type, with a multiple of " +
                Twine(CoopShape::vectorColumns) +
                " columns, by weights of it or, in f16, of f8E4M3FN or "
                "blocks with scales of f16, found " +
                debugString(x) + " and " + debugString(w));
  if (!hasFragments(w))
    return fail(Twine("unit = ") + stringifyMatrixUnit(unit) +
                " needs a weight with #kf.fragments, found " + debugString(w));
  if (!findCoopRows(op))
    return fail(
        "#kf.mma reads rows from memory, 16 bytes at a time, and alone; "
        "norms are kernels of their own");
  KernelShape shape =
      beginMmaShape(op.getGlu() ? 2 : 1, schedule, &KernelShape::coop);
  CoopShape &coop = *shape.coop;
  coop.shares = schedule.getShares();
  coop.subgroup = subgroup;
  coop.blockColumns = ::kf::FragmentTile::rows / shape.groups;
  if (coop.rows % (coop.rowWarps * coop.unit) != 0 ||
      coop.lines % (coop.lineWarps * coop.unit) != 0)
    return fail("a subgroup's tile is a multiple of [" + Twine(coop.unit) +
                ", " + Twine(coop.unit / shape.groups) + "], and " +
                Twine(coop.rowWarps) + " x " + Twine(coop.lineWarps) +
                " of them make the workgroup's [" + Twine(shape.rows) + ", " +
                Twine(shape.columns) + "]");
  if (coop.sums() > mmaSums)
    return fail("a thread has " + Twine(coop.sums()) +
                " sums, and registers for " + Twine(mmaSums));
  const int64_t threads = coop.shareThreads();
  if (coop.rows * CoopShape::step / CoopShape::vectorColumns % threads != 0 ||
      coop.lines * 2 % threads != 0)
    return fail(Twine(threads) + " threads share a step of [" +
                Twine(coop.rows) + ", " + Twine(coop.lines) +
                "], which has 4 vectors in each row and 2 in each line of the "
                "weight");
  if (auto quant = dyn_cast<QuantType>(w.getElementType()))
    coop.roundColumns =
        getPartSpans(getStorage(quant.getFormat())) * CoopShape::step;
  coop.hasTable = hasTable(w.getElementType());
  coop.hasOutliers = static_cast<bool>(op.getOutliers());
  shape.threads = {coop.threads(), 1, 1};
  shape.threadCount = coop.threads();
  shape.workgroupBytes = coop.bytes();
  return shape;
}

/// The shape of a product on matrix units.
static FailureOr<KernelShape> getShape(KernelOp kernel,
                                       MmaScheduleAttr schedule, FailFn fail) {
  auto matmul = findOp<MatmulOp>(kernel);
  auto batches = matmul ? BatchMatmulOp() : findBatchProduct(kernel);
  if (!matmul && !batches)
    return fail("#kf.mma is for matmul, and for batch_matmul of rank 3, alone "
                "but for elementwise ops");
  const bool isOfSubgroups = isCooperative(schedule.getUnit());
  if (schedule.getWorkgroup().size() != (batches ? 3 : 2) ||
      (batches && (isOfSubgroups || schedule.getParts() > 1)))
    return fail("workgroup is [rows, columns] of matmul, and [1, rows, "
                "columns] of batch_matmul, which has units of NVIDIA GPUs and "
                "parts = 1");
  if (isOfSubgroups)
    return getCoopShape(matmul, schedule, fail);
  Value left = batches ? batches.getX() : matmul.getX(),
        right = batches ? batches.getW() : matmul.getW();
  Type x = elementOf(left), w = elementOf(right);
  const bool isWide = WideFactors::are(left.getType(), right.getType());
  // Blocks are rounded to f16, which holds all of f8E4M3FN, or to bf16.
  const bool isCode = isa<QuantType, Float8E4M3FNType>(w);
  const Type factor = getUnitElement(w, /*areManyRows=*/true);
  bool fits = isCode   ? x == factor && !matmul.getScales()
              : isWide ? schedule.getUnit() == MatrixUnit::MmaSync
                       : x == w && multiplies(schedule.getUnit(), x);
  if (!fits)
    return fail("#kf.mma multiplies f16 by f16, f8E4M3FN or blocks with scales "
                "of f16, bf16 by bf16 or other blocks, and f32 by f32 without "
                "#kf.fragments with unit = mma_sync, found " +
                debugString(x) + " and " + debugString(w));
  if (statisticsOf(left.getDefiningOp()) > 0)
    return fail("#kf.mma reads rows from memory; norms are kernels of their "
                "own");
  KernelShape shape = beginMmaShape(matmul && matmul.getGlu() ? 2 : 1, schedule,
                                    &KernelShape::mma);
  MmaShape &mma = *shape.mma;
  mma.step = schedule.getReduction();
  mma.stages = schedule.getStages();
  mma.isForWarpgroups = schedule.getUnit() == MatrixUnit::Wgmma;
  mma.parts = schedule.getParts();
  mma.isWide = isWide;
  const Type weight = right.getType();
  if (isCode && hasFragments(weight)) {
    if (mma.step % ::kf::FragmentTile::span != 0 ||
        MmaShape::tileColumns % mma.step != 0)
      return fail("blocks and f8E4M3FN with #kf.fragments take steps of " +
                  Twine(::kf::FragmentTile::span) +
                  " columns, or of 2, 4 or 8 "
                  "times as many, found " +
                  Twine(mma.step));
    const ::kf::FragmentTile tile = *getFragmentTile(w);
    mma.tileBytes = tile.bytes * (MmaShape::tileColumns / tile.columns);
  }
  const int64_t extent =
      cast<RankedTensorType>(left.getType()).getShape().back();
  const int64_t ofTile = mma.stepsOfTile();
  const int64_t steps =
      llvm::alignTo(llvm::divideCeil(extent, mma.step), ofTile);
  mma.steps = llvm::alignTo(llvm::divideCeil(steps, mma.parts), ofTile);
  if (mma.parts != int64_t(llvm::divideCeil(steps, mma.steps)))
    return fail("parts (" + Twine(mma.parts) + ") cannot each have some of " +
                Twine(steps / ofTile) + " steps of " +
                Twine(ofTile * mma.step) + " columns of K");
  if (mma.rows % (mma.rowWarps * MmaShape::unitRows) != 0 ||
      mma.lines % (mma.lineWarps * MmaShape::unitLines) != 0)
    return fail("a warp's tile is a multiple of [" + Twine(MmaShape::unitRows) +
                ", " + Twine(MmaShape::unitLines / shape.groups) + "], and " +
                Twine(mma.rowWarps) + " x " + Twine(mma.lineWarps) +
                " of them make the workgroup's [" + Twine(shape.rows) + ", " +
                Twine(shape.columns) + "]");
  if (mma.isForWarpgroups && mma.lineTiles() != 1)
    return fail("unit = wgmma is for warps of " + Twine(MmaShape::unitLines) +
                " lines of the weight each, found " +
                Twine(mma.lines / mma.lineWarps));
  const int64_t decoded = llvm::divideCeil(mma.lines * mma.step, mma.threads());
  if (isa<QuantType>(w) && !hasFragments(weight) && decoded > mmaDecoded)
    return fail("a thread takes " + Twine(decoded) +
                " elements of blocks apart for each step, and at most " +
                Twine(mmaDecoded) + " without #kf.fragments");
  if (mma.tileBytes != 0 && mma.lineTiles() > mmaDecodedUnits)
    return fail("a warp takes codes of " +
                Twine(mma.lineTiles() * MmaShape::unitLines) +
                " lines of the weight apart, and at most " +
                Twine(mmaDecodedUnits * MmaShape::unitLines));
  if (mma.sums() > mmaSums)
    return fail("a thread has " + Twine(mma.sums()) +
                " sums, and registers for " + Twine(mmaSums));
  shape.threads = {mma.threads(), 1, 1};
  shape.threadCount = mma.threads();
  shape.workgroupBytes = MmaSums(mma).workgroupBytes();
  mma.hasOutliers = matmul && matmul.getOutliers();
  shape.workgroupBytes += mma.rangeBytes();
  if (mma.isForWarpgroups)
    shape.workgroupBytes += MmaShape::warpgroupAlignment;
  return shape;
}

/// What of x goes with a weight of `element`s that has #kf.fragments.
static StreamShape::Sums sumsFor(Type element) {
  auto quant = dyn_cast<QuantType>(element);
  if (!quant)
    return StreamShape::Sums::None;
  const ::kf::BlockFormat &format = getStorage(quant.getFormat());
  if (::kf::hasE2M1(format) ||
      (BlockTiles::scalesCodes(format) && format.minOffset < 0))
    return StreamShape::Sums::Floats;
  const bool hasHalves = format.subBlock < ::kf::FragmentTile::span;
  if (format.minOffset >= 0)
    return hasHalves ? StreamShape::Sums::HalfMinimums
                     : StreamShape::Sums::Minimums;
  return hasHalves ? StreamShape::Sums::Halves : StreamShape::Sums::Pairs;
}

Type mlir::kf::getUnitElement(Type element, bool areManyRows) {
  auto quant = dyn_cast<QuantType>(element);
  if (areManyRows && quant &&
      getStorage(quant.getFormat()).scale != ::kf::BlockScale::Half)
    return BFloat16Type::get(element.getContext());
  return isa<QuantType, Float8E4M3FNType>(element)
             ? Type(Float16Type::get(element.getContext()))
             : element;
}

bool mlir::kf::canHoldRows(MatmulOp op) {
  const Type w = elementOf(op.getW());
  if (isa<Float8E4M3FNType>(w)) // its rows are split, whatever they are of
    return false;
  const Type x = getUnitElement(w);
  return multiplies(MatrixUnit::MmaSync, x) && elementOf(op.getX()) == x &&
         statisticsOf(op.getX().getDefiningOp()) == 0;
}

/// Warps that a multiprocessor gives registers to at a time.
static constexpr int64_t registerWarps = 4;
/// Registers of a lane beside those that hold x, and where more are taken: of
/// blocks, by several tiles of K or scales of halves of spans, and the most by
/// these in a cluster, but not by scales of codes, which are gone before there
/// are sums (BlockTiles::scalesCodes()); by slices of K that go through three
/// stages, of which none begins where another one does, or that have more
/// columns than K.
static constexpr int64_t heldSpare = 64, largeHeldSpare = 80,
                         largestHeldSpare = 128;

/// Registers that a lane has for x.
static int64_t countHeldRegisters(const HeldShape &held,
                                  const MachineDescription &machine) {
  const int64_t lanes =
      HeldShape::lanes * llvm::alignTo(held.warps, registerWarps);
  const bool hasBlocks = held.sumsOfX != StreamShape::Sums::None;
  const bool isLarge =
      StreamShape::hasHalves(held.sumsOfX) ||
      (hasBlocks ? held.slices * held.tilesOfWarp() > 1
                 : held.slices > 1 && (held.stages == 3 || held.isPadded()));
  const bool isLargest = StreamShape::hasHalves(held.sumsOfX) && held.parts > 1;
  return std::min(machine.registersOfThread, machine.ofEach.registers / lanes) -
         (isLargest ? largestHeldSpare
          : isLarge ? largeHeldSpare
                    : heldSpare);
}

/// The shape of a product of few rows of 16-bit floats; `stream` says what it
/// has in common with others.
static FailureOr<KernelShape> getHeldShape(MatmulOp op,
                                           StreamScheduleAttr schedule,
                                           const StreamShape &stream,
                                           FailFn fail) {
  KernelShape shape;
  HeldShape &held = shape.held.emplace();
  held.warps = stream.warps;
  held.tiles = stream.tiles;
  held.stages = stream.stages;
  held.tileColumns = stream.tileColumns;
  held.tileBytes = stream.tileBytes;
  held.sumsOfX = stream.sumsOfX;
  held.rows = stream.rows;
  held.blocks = stream.blocks;
  held.blockColumns = stream.blockColumns;
  held.tilesOfRow = stream.tilesOfRow;
  const int64_t ofStep = held.warps * held.tiles;
  const int64_t steps = llvm::divideCeil(held.tilesOfRow, ofStep);
  const int64_t columns = ofStep * held.tileColumns;
  held.steps = schedule.getReduction() == 0
                   ? steps
                   : std::min(steps, schedule.getReduction() / columns);
  if (held.steps == 0 || schedule.getReduction() % columns != 0)
    return fail("reduction (" + Twine(schedule.getReduction()) +
                ") must be a multiple of " + Twine(columns) +
                ", a step of all warps");
  const int64_t slices = llvm::divideCeil(steps, held.steps);
  held.hasOutliers = static_cast<bool>(op.getOutliers());
  held.parts = schedule.getParts();
  held.slices = llvm::divideCeil(slices, held.parts);
  if (held.parts != int64_t(llvm::divideCeil(slices, held.slices)))
    return fail("parts (" + Twine(held.parts) + ") cannot each have some of " +
                Twine(slices) + " slices of " + Twine(held.sliceColumns()) +
                " columns of K");
  const int64_t registers = countHeldRegisters(held, getMachine(op));
  if (held.words() > registers)
    return fail("a lane holds " + Twine(held.words()) +
                " words of x, and has registers for " + Twine(registers));
  shape.threads = {held.threads(), 1, 1};
  shape.threadCount = held.threads();
  shape.rows = held.rows;
  shape.columns = schedule.getWorkgroup()[1];
  shape.groups = op.getGlu() ? 2 : 1;
  shape.workgroupBytes = held.bytes();
  return shape;
}

/// Numbers of experts that a workgroup looks at for each row that goes with
/// others, about.
static constexpr int64_t windowOfRow = 128;

FailureOr<ProductOpInterface>
mlir::kf::findProductOfFewRows(KernelOp kernel, StringRef schedule,
                               ArrayRef<int64_t> workgroup, FailFn fail) {
  auto matmul = findOp<MatmulOp>(kernel);
  auto experts = matmul ? ExpertMatmulOp() : findExpertProduct(kernel);
  ProductOpInterface op;
  if (matmul)
    op = matmul;
  else if (experts)
    op = experts;
  if (!op || op.getScales())
    return fail(schedule + " is for matmul of rows of floats, and for "
                           "expert_matmul, alone but for elementwise ops");
  if (workgroup.size() != (experts ? 3 : 2) || (experts && workgroup[1] != 1))
    return fail("workgroup is [rows, columns] of matmul, and [rows, 1, "
                "columns] of expert_matmul");
  auto w = cast<RankedTensorType>(op.getW().getType());
  if (!hasFragments(w))
    return fail(schedule + " needs a weight with #kf.fragments, found " +
                debugString(w));
  return op;
}

/// The shape of a product of few rows.
static FailureOr<KernelShape>
getShape(KernelOp kernel, StreamScheduleAttr schedule, FailFn fail) {
  ArrayRef<int64_t> workgroup = schedule.getWorkgroup();
  auto found = findProductOfFewRows(kernel, "#kf.stream", workgroup, fail);
  if (failed(found))
    return failure();
  ProductOpInterface op = *found;
  auto matmul = dyn_cast<MatmulOp>(op.getOperation());
  auto experts = dyn_cast<ExpertMatmulOp>(op.getOperation());
  auto w = cast<RankedTensorType>(op.getW().getType());
  const StreamShape::Sums sums = sumsFor(w.getElementType());
  StreamShape stream;
  stream.unit = schedule.getUnit();
  if (!multiplies(stream.unit, getUnitElement(w.getElementType())))
    return fail(Twine("unit = ") + stringifyMatrixUnit(stream.unit) +
                (takesRows(stream.unit, RowForm::F32)
                     ? " is for weights of f32"
                     : " is for weights of 16 bits or less") +
                ", found " + debugString(w.getElementType()));
  stream.sumsOfX = sums;
  stream.rows = workgroup[0];
  stream.terms = schedule.getRows() == RowForm::Rounded ? 1 : 2;
  const int64_t mostRows = experts && stream.terms == 1 ? stream.mostRoundedRows
                           : schedule.getHeld() == OperandPlace::Registers
                               ? stream.mostHeldRows
                               : stream.mostRows;
  if (stream.rows > mostRows)
    return fail("#kf.stream multiplies at most " + Twine(mostRows) +
                " rows, found " + Twine(stream.rows));
  auto x = cast<RankedTensorType>(op.getX().getType());
  if (experts) { // of which one may have all rows
    // A tile of their product has one of a token's places.
    stream.top =
        cast<RankedTensorType>(kernel.getResultTypes()[0]).getDimSize(1);
    stream.window = llvm::alignTo(
        std::max<int64_t>(
            windowOfRow * stream.rows / std::max<int64_t>(stream.top, 1), 1),
        stream.rows);
  } else if (!x.isDynamicDim(0)) {
    stream.rows = std::clamp<int64_t>(x.getDimSize(0), 1, stream.rows);
  }
  stream.warps = schedule.getWarps();
  stream.tiles = schedule.getTiles();
  stream.stages = schedule.getStages();
  stream.blockColumns =
      ::kf::FragmentTile::rows / (op.getGlu() ? w.getDimSize(0) : 1);
  const int64_t columns = workgroup.back();
  if (columns % stream.blockColumns != 0)
    return fail("columns (" + Twine(columns) + ") must be a multiple of " +
                Twine(stream.blockColumns) + ", those of a row block");
  stream.blocks = columns / stream.blockColumns;
  const ::kf::FragmentTile tile = *getFragmentTile(w.getElementType());
  stream.tileColumns = tile.columns;
  stream.tileBytes = tile.bytes;
  if (stream.tiles * tile.columns % StreamShape::pairColumns != 0)
    return fail("tiles (" + Twine(stream.tiles) + ") must be a multiple of " +
                Twine(StreamShape::pairColumns / tile.columns) +
                " where they have " + Twine(tile.columns) + " columns of K");
  stream.tilesOfRow = tile.tilesOf(w.getShape().back());
  if (schedule.getHeld() == OperandPlace::Registers) {
    if (experts)
      return fail("held = registers is for matmul");
    if (!canHoldRows(matmul))
      return fail(
          "rows = rounded is for rows in memory of the 16-bit floats "
          "that go with the weight, found " +
          debugString(x.getElementType()) +
          (statisticsOf(op.getX().getDefiningOp()) > 0 ? " of a norm" : ""));
    return getHeldShape(matmul, schedule, stream, fail);
  }
  stream.rowWarps = schedule.getBlockWarps();
  stream.warpBlocks = schedule.getBlocks();
  if (stream.warpBlocks > 1 && sums != StreamShape::Sums::None)
    return fail("blocks = 2 is for weights of plain elements, found " +
                debugString(w.getElementType()));
  if (stream.warpBlocks > stream.blocks)
    return fail("blocks (" + Twine(stream.warpBlocks) + ") are more than the " +
                Twine(stream.blocks) + " of the workgroup");
  const int64_t steps =
      llvm::divideCeil(stream.tilesOfRow, stream.shares() * stream.tiles);
  stream.chunkSteps =
      schedule.getReduction() == 0
          ? steps
          : std::min(schedule.getReduction() / stream.roundColumns(), steps);
  if (stream.chunkSteps == 0 ||
      schedule.getReduction() % stream.roundColumns() != 0)
    return fail("reduction (" + Twine(schedule.getReduction()) +
                ") must be a multiple of " + Twine(stream.roundColumns()) +
                ", a step of all warps");
  stream.slices = llvm::divideCeil(steps, stream.chunkSteps);
  Operation *norm = op.getX().getDefiningOp();
  stream.hasSquares = isa_and_nonnull<RmsNormOp>(norm);
  stream.hasRange = !w.getElementType().isF32() && !w.getElementType().isBF16();
  KernelShape shape;
  setThreads(shape, kernel, {stream.threads()});
  shape.rows = stream.rows;
  shape.columns = columns;
  shape.groups = op.getGlu() ? 2 : 1;
  if (!stream.hasSquares) {
    shape.statistics = statisticsOf(norm);
    shape.workgroupBytes +=
        llvm::alignTo(4 * shape.statistics * shape.rows, 16);
  } else {
    shape.workgroupBytes = 0; // that of sums which other norms have
  }
  shape.workgroupBytes += stream.bytes();
  shape.stream = stream;
  return shape;
}

/// The shape of any other kernel.
static FailureOr<KernelShape> getShape(KernelOp kernel,
                                       SimtScheduleAttr schedule, FailFn fail) {
  if (findOp<CacheAttentionInterface>(kernel))
    return fail("attention needs #kf.flash");
  if (findOp<BatchAttentionInterface>(kernel))
    return fail("attention to tensors needs #kf.flash_mma");
  if (failed(checkSizes(schedule.getWorkgroup(), fail)))
    return failure();
  KernelShape shape;
  setThreads(shape, kernel, schedule.getThreads());
  if (auto sample = findOp<SampleOp>(kernel);
      sample && sample.hasAdjustments()) {
    auto logits = cast<RankedTensorType>(sample.getLogits().getType());
    shape.adjustmentWords = std::clamp<int64_t>(
        llvm::divideCeil(logits.getDimSize(1), 32), 1, mostAdjustmentWords);
    // Beside them, the id of an entry for each thread.
    shape.workgroupBytes += 4 * (shape.adjustmentWords + shape.threadCount);
  }
  if (auto delta = findOp<GatedDeltaOp>(kernel)) {
    if (!llvm::equal(schedule.getWorkgroup(), ArrayRef<int64_t>{1, 1}))
      return fail(
          "gated_delta needs workgroup = [1, 1], a sequence and a head");
    const DeltaThreads threads(delta, shape.threads);
    if (shape.threadCount != threads.columns && threads.held == 0)
      return fail("gated_delta needs threads = [columns], or [columns, parts] "
                  "with as many columns as v has, and parts of at most " +
                  Twine(DeltaThreads::mostHeld) +
                  " columns of k, which they divide evenly, " +
                  Twine(DeltaThreads::mostThreads) + " threads at most");
    shape.workgroupBytes += 4 * threads.sums();
  }
  auto matmul = findOp<MatmulOp>(kernel);
  if (!matmul) {
    if (!schedule.getTile().empty() || schedule.getReduction() != 0)
      return fail("tile and reduction are for matmul");
    shape.batch = schedule.getUnroll();
    if (schedule.getSums() == SumOwner::Shared) {
      if (!findSharedReduction(kernel))
        return fail("sums = shared is for matmul, and for a kf.reduce of "
                    "floats along the last dimensions, alone but for "
                    "elementwise ops");
      if (shape.threadCount < 2)
        return fail("sums = shared needs two threads or more");
      shape.sharing = shape.threadCount;
      shape.workgroupBytes += 4 * shape.partialSums();
    }
    return shape;
  }

  // Products by threads alone are slower so than what an early begin saves.
  shape.beginsEarly = false;
  if (schedule.getWorkgroup().size() != 2 ||
      llvm::is_contained(schedule.getWorkgroup(), 0) ||
      schedule.getTile().size() != 2 || shape.threads[2] != 1)
    return fail("a matmul needs workgroup = [rows, columns], tile = [rows, "
                "columns] and threads = [x, y]");
  shape.rows = schedule.getWorkgroup()[0];
  shape.columns = schedule.getWorkgroup()[1];
  shape.tileRows = schedule.getTile()[0];
  shape.tileColumns = schedule.getTile()[1];
  shape.groups = matmul.getGlu() ? 2 : 1;
  shape.unroll = schedule.getUnroll();
  shape.statistics = statisticsOf(matmul.getX().getDefiningOp());
  if (shape.tileRows * shape.tileColumns * shape.groups * shape.unroll > 1024)
    return fail("tile and unroll make more than 1024 multiplications a thread "
                "and step");
  shape.workgroupBytes += 4 * shape.statistics * shape.rows;
  if (schedule.getSums() == SumOwner::Shared) {
    shape.sharing = shape.threads[0];
    shape.sharedElements = std::min<int64_t>(
        {shape.tileRows * shape.tileColumns, shape.threads[0], 8});
    shape.workgroupBytes += 4 * shape.sharedSums() * shape.sharedStride();
    return shape;
  }
  if (shape.tileRows * shape.threads[1] != shape.rows ||
      shape.tileColumns * shape.threads[0] != shape.columns) {
    // As of schedules that were measured before `sums` was a field.
    const bool areShared =
        shape.threads[0] > 1 && shape.tileRows == shape.rows &&
        shape.tileColumns * shape.threads[1] == shape.columns &&
        schedule.getReduction() == 0;
    return fail("tile [" + Twine(shape.tileRows) + ", " +
                Twine(shape.tileColumns) + "] of " + Twine(shape.threads[1]) +
                " x " + Twine(shape.threads[0]) +
                " threads does not make the workgroup's [" + Twine(shape.rows) +
                ", " + Twine(shape.columns) + "]" +
                (areShared ? "; sums = shared has these sizes" : ""));
  }
  int64_t extent =
      cast<RankedTensorType>(matmul.getX().getType()).getDimSize(1);
  shape.step = schedule.getReduction() ? schedule.getReduction()
                                       : std::max<int64_t>(extent, 1);
  if (shape.step > largest || shape.step % shape.unroll != 0)
    return fail("reduction (" + Twine(shape.step) +
                ") must be a multiple of unroll (" + Twine(shape.unroll) +
                ") and at most " + Twine(largest));
  const Type weight = matmul.getW().getType();
  const int64_t blockColumns = ::kf::FragmentTile::rows / shape.groups;
  shape.stagesSpans = hasFragments(weight) &&
                      shape.step == ::kf::FragmentTile::span &&
                      shape.columns % blockColumns == 0 &&
                      !getMachine(kernel).has(MatrixUnit::MmaSync);
  shape.hasTable = shape.stagesSpans && hasTable(elementOf(matmul.getW()));
  if (shape.hasTable)
    shape.workgroupBytes += 4 * LanesShape::tableEntries;
  shape.workgroupBytes +=
      4 * shape.stride() * (shape.rows + shape.groups * shape.columns);
  return shape;
}

FailureOr<KernelShape> mlir::kf::getKernelShape(KernelOp kernel) {
  return getKernelShape(kernel, kernel.getScheduleAttr(),
                        [&] { return kernel.emitError(); });
}

FailureOr<KernelShape>
mlir::kf::getKernelShape(KernelOp kernel, ScheduleAttrInterface schedule,
                         function_ref<InFlightDiagnostic()> emitError) {
  auto fail = [&](const Twine &message) -> LogicalResult {
    if (emitError)
      emitError() << "schedule cannot run on a GPU: " << message;
    return failure();
  };
  if (!schedule)
    return fail("there is none; run kf-select-schedules first");
  if (auto flash = dyn_cast<FlashScheduleAttr>(schedule))
    return getAttentionShape(kernel, flash, fail);
  if (auto mma = dyn_cast<FlashMmaScheduleAttr>(schedule))
    return getAttentionShape(kernel, mma, fail);
  if (auto stream = dyn_cast<StreamScheduleAttr>(schedule))
    return getShape(kernel, stream, fail);
  if (auto simt = dyn_cast<SimtScheduleAttr>(schedule))
    return getShape(kernel, simt, fail);
  if (auto lanes = dyn_cast<LanesScheduleAttr>(schedule))
    return getLanesShape(kernel, lanes, fail);
  if (auto mma = dyn_cast<MmaScheduleAttr>(schedule))
    return getShape(kernel, mma, fail);
  return fail("it is none of #kf.simt, #kf.flash, #kf.flash_mma, #kf.stream, "
              "#kf.lanes and #kf.mma");
}
