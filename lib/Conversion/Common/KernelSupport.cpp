//===- KernelSupport.cpp - Which kernels there is code for ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Conversion/KernelSupport.h"

#include "kf/Conversion/AttentionShape.h"

#include "RowFormulas.h"
#include "runtime/core/BlockFormat.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Columns that GPUs rotate: their frequencies are a constant of the kernel.
constexpr int64_t maxRotaryDim = 8192;

/// What there is instead.
constexpr StringLiteral onReference = " yet; use --device=reference",
                        onCpu = " yet; use --device=cpu or --device=reference";

/// What tiling puts around the ops of a kernel. Slices have elements that their
/// source or their reader has.
bool isOfTiling(Operation *op) {
  return isa<scf::ForallOp, tensor::ParallelInsertSliceOp, tensor::EmptyOp,
             tensor::ExtractSliceOp, tensor::DimOp>(op);
}

/// Numbers of which every device has tensors, but GPUs none of f64.
bool isNumber(Type element) {
  return isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(element) ||
         llvm::any_of(ArrayRef<unsigned>{1, 8, 16, 32, 64}, [&](unsigned bits) {
           return element.isSignlessInteger(bits);
         });
}

/// What only some ops read.
bool isCode(Type element) { return isa<QuantType, Float8E4M3FNType>(element); }

SmallVector<Type> tensorsOf(Operation *op) {
  SmallVector<Type> types;
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                                SmallVector<Type>(op->getResultTypes())))
    if (isa<RankedTensorType>(type) || isCache(type))
      types.push_back(type);
  return types;
}

Type elementOf(Type type) {
  return isCache(type) ? getCacheElement(type) : getElementTypeOrSelf(type);
}

/// Whether indices of `bits` bits can count `tokens` rows of the tensor; bytes,
/// if it has blocks.
bool isCountable(RankedTensorType type, int64_t tokens, int64_t bits) {
  int64_t elements = 1, mostElements = llvm::maxIntN(bits);
  SmallVector<int64_t> shape(type.getShape());
  if (auto quant = dyn_cast<QuantType>(type.getElementType())) {
    const ::kf::BlockFormat &format = getStorage(quant.getFormat());
    shape.back() = shape.back() / format.elements * format.bytes;
  }
  for (int64_t extent : shape)
    if (llvm::MulOverflow(elements,
                          ShapedType::isDynamic(extent) ? tokens : extent,
                          elements) ||
        elements > mostElements)
      return false;
  return true;
}

/// Of one kernel: as vectors on a CPU, for the threads of a GPU, or
/// interpreted.
class Checks {
public:
  Checks(KernelOp kernel, StringRef name, bool isInterpreted)
      : kernel(kernel), name(name), isInterpreted(isInterpreted) {}
  Checks(KernelOp kernel, const MachineDescription &machine, int64_t rows)
      : kernel(kernel), name(machine.name), gpu(&machine), rows(rows) {}

  LogicalResult check() {
    auto loops = kernel.getBody().getOps<scf::ForallOp>();
    tile = loops.empty() ? scf::ForallOp() : *loops.begin();
    if (Operation *op = findFloat8Arithmetic(kernel))
      return fail(op->emitError())
             << " for '" << op->getName()
             << "' on f8E4M3FN, which only the weights of kf.matmul are; have "
                "others in bf16, which holds the same numbers";
    WalkResult walk = kernel.getBody().walk<WalkOrder::PreOrder>(
        [&](Operation *op) -> WalkResult {
          return failure(failed(checkOp(op)) || failed(checkCache(op)) ||
                         failed(checkIntegers(op)) || failed(checkSlice(op)) ||
                         failed(checkState(op)) || failed(checkReads(op)));
        });
    if (walk.wasInterrupted() || failed(checkResults()))
      return failure();
    for (Type type : kernel.getArgumentTypes())
      if (failed(checkBuffer(type)))
        return failure();
    for (Type type : kernel.getResultTypes())
      if (!isInterpreted && isCode(elementOf(type)))
        return fail(kernel.emitError())
               << " with a result of " << type << onReference;
      else if (failed(checkBuffer(type)))
        return failure();
    return success();
  }

private:
  InFlightDiagnostic fail(InFlightDiagnostic error) {
    return std::move(error << "no " << name << " kernel");
  }

  StringRef instead() { return gpu ? onCpu : onReference; }
  /// Only caches of CPUs want panels.
  StringRef insteadOf(Operation *op) {
    return isa<PackOp>(op) ? instead() : StringRef(onReference);
  }
  StringRef insteadOf(Type type) {
    return isNumber(elementOf(type)) || isCode(elementOf(type))
               ? instead()
               : "; elements are f16, bf16, f32 and f64, and integers of 1, 8, "
                 "16, 32 and 64 bits";
  }

  /// What there is a whole emitter for, which takes one of them.
  bool isWhole(Operation *op) {
    return isa<MatmulOp, CacheAttentionInterface, KVAppendOp, ArgmaxOp,
               SampleOp, QuantizeRowsOp, PackOp, GatedDeltaOp, ScatterAddOp,
               BatchAttentionInterface>(op) ||
           (gpu && isa<RouteOp>(op)) ||
           (!gpu && isa<AttentionCombineOp, ExpertMatmulOp, MatmulWgradOp>(op));
  }

  bool hasCode(Operation *op) {
    if (isInterpreted)
      return true;
    if (isa<PackOp, RoundHalfOp>(op))
      return isa<PackOp>(op) == !gpu;
    if (isa<BatchAttentionInterface>(op))
      return gpu && gpu->has(MatrixUnit::MmaSync);
    return isElementwise(op) || isView(op) || isWhole(op) ||
           hasRowStatistics(op) ||
           isa<EmbeddingOp, ReduceOp, BatchMatmulOp, ExpertMatmulOp, RopeOp,
               AttentionCombineOp, MatmulWgradOp, ScatterAddOp, YieldOp,
               tensor::CastOp>(op);
  }

  /// GPUs compute with no f64, and read weights and keys row by row, or in the
  /// order of their matrix units, which CPUs do not read.
  bool hasCode(Type type) {
    Type element = elementOf(type);
    if (!isNumber(element) && !isCode(element))
      return false;
    if (!gpu)
      return isInterpreted || !hasFragments(type);
    if (isa<StateCacheType>(type))
      return true;
    auto cache = dyn_cast<KVCacheType>(type);
    return !element.isF64() &&
           (cache ? cache.getKeyBlock() == 1
                  : !getLayout(cast<RankedTensorType>(type)));
  }

  LogicalResult checkOp(Operation *op) {
    if (isOfTiling(op))
      return success();
    const SmallVector<Type> types = tensorsOf(op);
    if (!isInterpreted && !gpu && isa<RoundHalfOp>(op))
      return fail(op->emitError())
             << " for '" << op->getName()
             << "' yet; products read rows<f32>, rows<bf16> or, where weights "
                "have blocks, rows<i8> here; --device=reference has rows<f16>";
    if (!types.empty() && !hasCode(op))
      return fail(op->emitError())
             << " for '" << op->getName() << "'" << insteadOf(op);
    for (Type type : types)
      if (!hasCode(type))
        return fail(op->emitError()) << " for '" << op->getName() << "' on "
                                     << type << insteadOf(type);
    auto constant = dyn_cast<arith::ConstantOp>(op);
    if (!isInterpreted && constant && !types.empty() &&
        !isa<DenseIntOrFPElementsAttr>(constant.getValue()))
      return fail(op->emitError()) << " for a constant whose elements are "
                                      "elsewhere; write dense<...>";
    auto matmul = dyn_cast<MatmulOp>(op);
    if (!isInterpreted && matmul && !matmul.isOfMatrices())
      return fail(op->emitError())
             << " for '" << op->getName()
             << "' of batches; run kf-expand-tensors first";
    if (!isInterpreted && !gpu && matmul && matmul.getOutliers())
      return fail(op->emitError())
             << " for outliers of rows; give it the rows in f32";
    auto batches = dyn_cast<BatchAttentionInterface>(op);
    if (gpu && batches &&
        !isForBatchKernel(batches, elementOf(batches.getQ().getType())))
      return fail(op->emitError())
             << " for '" << op->getName() << "' on " << batches.getQ().getType()
             << "; run kf-expand-tensors first, which leaves what has one";
    auto experts = dyn_cast<ExpertMatmulOp>(op);
    if (gpu && experts && experts.getScales())
      return fail(op->emitError())
             << " for '" << op->getName()
             << "' of codes of rows; products of experts read rows<f32> here";
    auto route = dyn_cast<RouteOp>(op);
    if (gpu && route && route.getGroups())
      return fail(op->emitError()) << " for '" << op->getName()
                                   << "' of groups; run kf-expand-route first";
    auto rope = dyn_cast<RopeOp>(op);
    if (gpu && rope && static_cast<int64_t>(rope.getRotaryDim()) > maxRotaryDim)
      return fail(op->emitError())
             << " for rotary_dim = " << rope.getRotaryDim() << ": at most "
             << maxRotaryDim << " columns are rotated";
    return success();
  }

  /// Vectors of a CPU that do not begin at a multiple of their width could
  /// cross the end of a block.
  LogicalResult checkSlice(Operation *op) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
    auto quant =
        slice ? dyn_cast<QuantType>(slice.getSourceType().getElementType())
              : QuantType();
    if (!quant || gpu || isInterpreted)
      return success();
    const int64_t elements = getStorage(quant.getFormat()).elements;
    std::optional<int64_t> column =
        getConstantIntValue(slice.getMixedOffsets().back());
    if (column && *column % elements == 0)
      return success();
    return fail(slice.emitError())
           << " for a slice of " << slice.getSourceType()
           << " whose columns do not begin with a block of " << elements
           << "; slice what is read from it instead";
  }

  /// What appends beside attention; and what positions and places in a cache
  /// have to fit in.
  LogicalResult checkCache(Operation *op) {
    auto append = dyn_cast<KVAppendOp>(op);
    if (append && !isInterpreted && find<CacheAttentionInterface>() &&
        (!gpu || gpu->warpThreads == 0 ||
         append.getCache().getType().isQuantized()))
      return fail(op->emitError())
             << " for attention to " << append.getCache().getType()
             << " with an append; append in a kernel of its own";
    auto attention = dyn_cast<CacheAttentionInterface>(op);
    if (!gpu || (!attention && !append))
      return success();
    KVCacheType cache = attention ? attention.getCache().getType()
                                  : append.getCache().getType();
    Value table = attention ? attention.getPageTable() : append.getPageTable();
    int64_t positions, elements, most = llvm::maxIntN(gpu->indexBits);
    if (llvm::MulOverflow(cast<RankedTensorType>(table.getType()).getDimSize(1),
                          cache.getPage(), positions) ||
        positions > most)
      return fail(op->emitError())
             << " for tables of so many pages: " << gpu->indexBits
             << "-bit indices count no more than " << most << " positions";
    // K and V, and a scale for some elements.
    if (llvm::MulOverflow(3 * cache.getPage() * cache.getHeadDim(),
                          cache.getKvHeads(), elements) ||
        elements > most)
      return fail(op->emitError())
             << " for pages of so many elements: " << gpu->indexBits
             << "-bit indices count no more than " << most;
    auto partial = dyn_cast<AttentionPartialOp>(op);
    if (partial && partial.getSplits() > kMostGroups)
      return fail(op->emitError()) << " for splits(" << partial.getSplits()
                                   << "): at most " << kMostGroups;
    return success();
  }

  /// A row of a head, as the convolution makes it, is in workgroup memory.
  LogicalResult checkState(Operation *op) {
    auto delta = dyn_cast<GatedDeltaOp>(op);
    const int64_t bytes = delta ? 4 * delta.getChannels() : 0;
    if (!gpu || bytes <= gpu->memory)
      return success();
    return fail(op->emitError())
           << " for '" << op->getName() << "' with heads of "
           << delta.getKeyDim() << " and " << delta.getValueDim()
           << " elements: a row needs " << bytes
           << " bytes of workgroup memory, the device has " << gpu->memory
           << "; use --device=cpu";
  }

  /// Arithmetic on integers that the device has none of would not wrap. Parts
  /// of words are copied, and words are not.
  LogicalResult checkIntegers(Operation *op) {
    if (!gpu || !gpu->integers ||
        !(isElementwise(op) || isa<ReduceOp, IotaOp>(op)))
      return success();
    for (Type type : tensorsOf(op)) {
      Type element = elementOf(type);
      if (!element.isInteger() || element.isInteger(1) ||
          element.isInteger(32) ||
          (isa<CopyOp>(op) && !element.isInteger(64)) ||
          llvm::is_contained(*gpu->integers, element.getIntOrFloatBitWidth()))
        continue;
      return fail(op->emitError())
             << " for '" << op->getName() << "' on " << type
             << ": the device has no " << element << "; use i32, or "
             << "--device=cpu";
    }
    return success();
  }

  LogicalResult checkBuffer(Type type) {
    if (!hasCode(type))
      return fail(kernel.emitError()) << " for " << type << insteadOf(type);
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (gpu && tensor && !isCountable(tensor, rows, gpu->indexBits))
      return fail(kernel.emitError()) << " for " << type << " with " << rows
                                      << " rows: it has more elements than "
                                      << gpu->indexBits << "-bit indices count";
    return success();
  }

  //===--- What ops of a kernel read of one another -----------------------===//

  /// How code has the elements of a value.
  enum class Access {
    Element, ///< each alone: from memory, or computed of such elements
    Row,     ///< those of a row, once it is prepared
    Sum,     ///< one, as a matrix product is about to store it
    Result   ///< not at all: it is stored
  };

  Access accessOf(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argument.getOwner() == &kernel.getBody().front() ? Access::Element
                                                              : Access::Result;
    auto it = accesses.find(value.getDefiningOp());
    return it == accesses.end() ? Access::Result : it->second;
  }

  /// How `op` may have an operand at most.
  Access mostOf(Operation *op, OpOperand &operand) {
    if (isElementwise(op)) // what attention makes is rounded as it is stored
      return gpu && isRounding(op) && operand.get().getDefiningOp<AttentionOp>()
                 ? Access::Result
                 : Access::Sum;
    bool isRow = operand.getOperandNumber() == 0;
    if (isa<KVAppendOp>(op))
      isRow = !find<CacheAttentionInterface>();
    else if (isa<MatmulOp>(op))
      isRow &= !gpu || isNormOfElements(operand.get());
    else if (isa<BatchMatmulOp, ExpertMatmulOp>(op))
      isRow &= !gpu;
    else
      isRow &=
          hasRowStatistics(op) || isa<RopeOp, CacheAttentionInterface, ArgmaxOp,
                                      SampleOp, QuantizeRowsOp>(op);
    return isRow ? Access::Row : Access::Element;
  }

  bool isNormOfElements(Value value) {
    Operation *op = value.getDefiningOp();
    return isa_and_nonnull<RmsNormOp, LayerNormOp>(op) &&
           accessOf(op->getOperand(0)) == Access::Element;
  }

  bool isInTile(Operation *op) {
    return !tile || op->getBlock() == tile.getBody();
  }

  /// How code has the results of `op`, whose operands it has by `access`.
  /// Whole ops, rotations and combined parts are found in the tile.
  Access resultOf(Operation *op, Access access) {
    if (isElementwise(op))
      return access;
    if (isWhole(op) || isa<AttentionCombineOp>(op)) {
      if (!isInTile(op))
        return Access::Result;
      return isa<ProductOpInterface>(op) ? Access::Sum
             : isWhole(op)               ? Access::Result
                                         : Access::Element;
    }
    if (isa<RopeOp>(op) && !isInTile(op))
      return gpu ? Access::Row : Access::Result;
    if (isa<RopeOp>(op))
      return gpu ? access : Access::Row;
    const bool isRow =
        hasRowStatistics(op) || (!gpu && isa<ReduceOp, BatchMatmulOp>(op));
    return isRow ? Access::Row : Access::Element;
  }

  /// Where a value begins in the argument that it is, or is consecutive rows
  /// of: offsets other than 0. Null if it is no such thing, or has a part of
  /// each row and `ofWholeRows` asks for all.
  std::optional<SmallVector<OpFoldResult>> rowOf(Value value,
                                                 bool ofWholeRows) {
    SmallVector<OpFoldResult> offsets;
    while (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>()) {
      RankedTensorType from = slice.getSourceType(), to = slice.getType();
      if (!slice.hasUnitStride() || slice.getDroppedDims().any() ||
          (ofWholeRows && from.getShape().back() != to.getShape().back()))
        return std::nullopt;
      if (OpFoldResult row = slice.getMixedOffsets().front();
          getConstantIntValue(row) != 0)
        offsets.push_back(row);
      value = slice.getSource();
    }
    if (!isa<BlockArgument>(value) || accessOf(value) != Access::Element)
      return std::nullopt;
    return offsets;
  }

  /// Whether `operand` of attention to tensors is an argument, or what tiling
  /// makes of one: kernels find the rest by the tile's own offsets.
  bool isArgumentOrTile(Operation *op, OpOperand &operand) {
    Value value = operand.get();
    auto slice = value.getDefiningOp<tensor::ExtractSliceOp>();
    if (slice && tile && slice->getBlock() == tile.getBody()) {
      AffineMap map =
          cast<LoopOpInterface>(op).getLoopMaps()[operand.getOperandNumber()];
      RankedTensorType from = slice.getSourceType(), to = slice.getType();
      if (!slice.hasUnitStride() || slice.getDroppedDims().any() ||
          from.getRank() != map.getNumResults())
        return false;
      for (auto [dim, offset] : llvm::enumerate(slice.getMixedOffsets())) {
        auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
        const bool isOfTile =
            loop &&
            offset == OpFoldResult(tile.getInductionVars()[loop.getPosition()]);
        if (!isOfTile && (getConstantIntValue(offset) != 0 ||
                          from.getDimSize(dim) != to.getDimSize(dim)))
          return false;
      }
      value = slice.getSource();
    }
    return isa<BlockArgument>(value) && accessOf(value) == Access::Element;
  }

  /// Whether scratch holds a row of `type`, as vectors take it: its length is
  /// known, or it is the tile of a loop.
  bool hasScratch(RankedTensorType type) {
    const int64_t rank = type.getRank();
    if (gpu || rank == 0 || !type.isDynamicDim(rank - 1))
      return true;
    return rank == 1 && (!tile || tile.getRank() == 1);
  }

  LogicalResult failToRead(Operation *op, Value value) {
    InFlightDiagnostic error = fail(op->emitError());
    error << " for '" << op->getName() << "' that reads " << value.getType();
    if (Operation *producer = value.getDefiningOp())
      return error << " from '" << producer->getName()
                   << "'; compute that in a kernel of its own";
    return error << ", which the kernel writes; read its arguments";
  }

  /// The first operand that `op` cannot read; null where it reads all, then
  /// `access` is how.
  Value findUnreadable(Operation *op, Access &access) {
    access = Access::Element;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type)
        continue;
      const bool isPacked = getLayout(type) || hasFragments(type);
      const bool isInMemory = isPacked || (type.getElementType().isInteger() &&
                                           op->hasTrait<IntegersInMemory>());
      if (accessOf(value) > mostOf(op, operand) ||
          (isInMemory && !rowOf(value, /*ofWholeRows=*/isPacked)) ||
          (isa<BatchAttentionInterface>(op) &&
           !isArgumentOrTile(op, operand)) ||
          (accessOf(value) == Access::Row && !hasScratch(type)))
        return value;
      access = std::max(access, accessOf(value));
    }
    // Sums are one by one.
    if (access == Access::Sum)
      for (Value value : op->getOperands())
        if (accessOf(value) == Access::Row)
          return value;
    return Value();
  }

  LogicalResult checkReads(Operation *op) {
    if (isInterpreted || isa<YieldOp, scf::InParallelOp>(op) ||
        (isOfTiling(op) && !isa<tensor::ExtractSliceOp>(op)))
      return success();
    Access access;
    Value unreadable = findUnreadable(op, access);
    accesses[op] = unreadable ? Access::Result : resultOf(op, access);
    // What is around the tile may be left over, as what a tensor.dim reads.
    if (!isInTile(op))
      return success();
    if (isWhole(op)) {
      if (whole &&
          !(isa<KVAppendOp>(whole) && isa<CacheAttentionInterface>(op)))
        return fail(op->emitError())
               << " for '" << op->getName() << "' beside '" << whole->getName()
               << "'; form a kernel of each";
      whole = op;
    }
    return unreadable ? failToRead(op, unreadable)
                      : checkCodes(dyn_cast<ProductOpInterface>(op));
  }

  /// Codes of rows, their scales and sums go together.
  LogicalResult checkCodes(ProductOpInterface op) {
    if (!op || gpu || !op.getScales())
      return success();
    auto x = rowOf(op.getX(), true), scales = rowOf(op.getScales(), true),
         sums = rowOf(op.getSums(), true);
    if (x && x == scales && x == sums)
      return success();
    return fail(op->emitError())
           << " for '" << op->getName()
           << "' of codes, scales and sums that are not the same whole rows of "
              "arguments; slice what kf.quantize_rows reads instead";
  }

  /// What the kernel's results are stored from.
  SmallVector<Value> findStored() {
    SmallVector<Value> stored(kernel.getYield().getOperands());
    for (Value &value : stored)
      if (auto forall = value.getDefiningOp<scf::ForallOp>())
        for (Operation *user :
             forall.getTiedBlockArgument(cast<OpResult>(value)).getUsers())
          if (auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(user)) {
            value = insert.getSource();
            break;
          }
    return stored;
  }

  /// A kernel makes one result, or all those of its last op.
  LogicalResult checkResults() {
    if (isInterpreted)
      return success();
    const SmallVector<Value> stored = findStored();
    Operation *last = stored.empty() ? whole : stored[0].getDefiningOp();
    const bool areAll =
        last ? llvm::equal(stored, last->getResults()) : stored.size() == 1;
    Operation *unrounded =
        isRounding(last) ? last->getOperand(0).getDefiningOp() : nullptr;
    if (areAll && (whole ? whole == last || whole == unrounded ||
                               accessOf(stored[0]) == Access::Sum
                         : accessOf(stored[0]) != Access::Result))
      return success();
    if (Operation *op = whole ? whole : last)
      return fail(op->emitError())
             << " for '" << op->getName()
             << "' that does not make the kernel's results, in their order; "
                "form kernels of other ops";
    return fail(kernel.emitError()) << " with " << stored.size() << " results";
  }

  template <typename... OpTys> Operation *find() {
    Operation *found = nullptr;
    kernel.getBody().walk([&](Operation *op) {
      if (!found && isa<OpTys...>(op))
        found = op;
    });
    return found;
  }

  KernelOp kernel;
  StringRef name; // of what runs it
  bool isInterpreted = false;
  const MachineDescription *gpu = nullptr; // null: it is none
  int64_t rows = 1;

  scf::ForallOp tile;                     // null: the kernel is not tiled
  DenseMap<Operation *, Access> accesses; // of results of what was checked
  Operation *whole = nullptr;             // what isWhole(), once it was checked
};

} // namespace

LogicalResult mlir::kf::checkVectorSupport(KernelOp kernel) {
  return Checks(kernel, "CPU", /*isInterpreted=*/false).check();
}

LogicalResult mlir::kf::checkReferenceSupport(KernelOp kernel) {
  return Checks(kernel, getMachine(kernel).name, /*isInterpreted=*/true)
      .check();
}

LogicalResult mlir::kf::checkGpuSupport(KernelOp kernel,
                                        const MachineDescription &machine,
                                        int64_t rows) {
  return Checks(kernel, machine, rows).check();
}
