//===- KernelSupport.cpp - Which kernels there is code for ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Conversion/KernelSupport.h"

#include "runtime/core/BlockFormat.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Columns that GPUs rotate: their frequencies are a constant of the kernel.
constexpr int64_t maxRotaryDim = 8192;

/// Workgroups along a dimension that every GPU allows.
constexpr uint64_t mostGroups = 65535;

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
    if (isa<RankedTensorType, KVCacheType>(type))
      types.push_back(type);
  return types;
}

Type elementOf(Type type) {
  auto cache = dyn_cast<KVCacheType>(type);
  return cache ? cache.getType() : getElementTypeOrSelf(type);
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
    if (Operation *op = findFloat8Arithmetic(kernel))
      return fail(op->emitError())
             << " for '" << op->getName()
             << "' on f8E4M3FN, which only the weights of kf.matmul are; have "
                "others in bf16, which holds the same numbers";
    WalkResult walk = kernel.getBody().walk<WalkOrder::PreOrder>(
        [&](Operation *op) -> WalkResult {
          if (isOfTiling(op))
            return checkSlice(dyn_cast<tensor::ExtractSliceOp>(op));
          return failure(failed(checkOp(op)) || failed(checkCache(op)) ||
                         failed(checkIntegers(op)));
        });
    if (walk.wasInterrupted())
      return failure();
    const unsigned count = kernel.getNumResults();
    if (!isInterpreted && count != countResults())
      return fail(kernel.emitError()) << " with " << count << " result"
                                      << (count == 1 ? "" : "s") << instead();
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

  bool hasCode(Operation *op) {
    return isInterpreted || isElementwise(op) || isView(op) ||
           isa<RmsNormOp, LayerNormOp, SoftmaxOp, ArgmaxOp, EmbeddingOp,
               ReduceOp, MatmulOp, BatchMatmulOp, RopeOp, AttentionOp,
               AttentionPartialOp, AttentionCombineOp, KVAppendOp, SampleOp,
               QuantizeRowsOp, YieldOp, tensor::CastOp>(op) ||
           (!gpu && isa<PackOp>(op));
  }

  /// GPUs compute with no f64, and read weights and keys row by row, or in the
  /// order of their matrix units.
  bool hasCode(Type type) {
    Type element = elementOf(type);
    if (!isNumber(element) && !isCode(element))
      return false;
    if (!gpu)
      return true;
    auto cache = dyn_cast<KVCacheType>(type);
    return !element.isF64() &&
           (cache ? cache.getKeyBlock() == 1
                  : !getLayout(cast<RankedTensorType>(type)));
  }

  LogicalResult checkOp(Operation *op) {
    const SmallVector<Type> types = tensorsOf(op);
    if (!types.empty() && !hasCode(op))
      return fail(op->emitError())
             << " for '" << op->getName() << "'" << insteadOf(op);
    for (Type type : types)
      if (!hasCode(type))
        return fail(op->emitError()) << " for '" << op->getName() << "' on "
                                     << type << insteadOf(type);
    auto matmul = dyn_cast<MatmulOp>(op);
    if (!isInterpreted && !gpu && matmul && matmul.getOutliers())
      return fail(op->emitError())
             << " for outliers of rows; give it the rows in f32";
    auto rope = dyn_cast<RopeOp>(op);
    if (gpu && rope && static_cast<int64_t>(rope.getRotaryDim()) > maxRotaryDim)
      return fail(op->emitError())
             << " for rotary_dim = " << rope.getRotaryDim() << ": at most "
             << maxRotaryDim << " columns are rotated";
    return success();
  }

  /// Vectors of a CPU that do not begin at a multiple of their width could
  /// cross the end of a block.
  LogicalResult checkSlice(tensor::ExtractSliceOp slice) {
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
    if (partial && partial.getSplits() > mostGroups)
      return fail(op->emitError()) << " for splits(" << partial.getSplits()
                                   << "): at most " << mostGroups;
    return success();
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

  /// What the kernel has code for: all of attention, or of what rounds it, an
  /// append's none, all of the op that makes several, one of another.
  unsigned countResults() {
    Operation *op = gpu ? find<RoundHalfOp>() : nullptr;
    if (!op)
      op = find<CacheAttentionInterface>();
    if (!op)
      op = find<KVAppendOp, QuantizeRowsOp>();
    return op ? op->getNumResults() : 1;
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
