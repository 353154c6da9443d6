//===- GpuSupport.cpp - What GPUs can run ---------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which ops, types and sizes convert-kf-to-gpu and the conversions behind it
// have code for, and whether a device has what a schedule asks for. Which
// schedule a kernel gets is decided in GpuSchedules.cpp.
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/GpuSupport.h"

#include "kf/Conversion/GpuBuffers.h"
#include "kf/Conversion/KernelShape.h"
#include "runtime/core/BlockFormat.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Columns that are rotated: their frequencies are a constant of the kernel.
constexpr int64_t maxRotaryDim = 8192;

/// Workgroups along a dimension that every device allows.
constexpr uint64_t mostGroups = 65535;

constexpr StringLiteral instead =
    " yet; use --device=cpu or --device=reference";

bool isSupported(Operation *op) {
  return isElementwise(op) || isView(op) ||
         isa<RmsNormOp, LayerNormOp, SoftmaxOp, ArgmaxOp, EmbeddingOp, ReduceOp,
             MatmulOp, BatchMatmulOp, RopeOp, AttentionOp, AttentionPartialOp,
             AttentionCombineOp, KVAppendOp, SampleOp, QuantizeRowsOp, YieldOp,
             tensor::CastOp>(op);
}

/// Whether buffers of this type can be read and written.
bool isSupported(Type type) {
  auto cache = dyn_cast<KVCacheType>(type);
  return getGpuBuffer(type) && (!cache || cache.getKeyBlock() == 1);
}

SmallVector<Type> typesOf(Operation &op) {
  SmallVector<Type> types(op.getOperandTypes());
  llvm::append_range(types, op.getResultTypes());
  return types;
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

/// What a kernel has code for: all of attention, or of what rounds it, an
/// append's none, all of the op that makes several, one of another.
unsigned resultsOf(KernelOp kernel) {
  for (auto rounding : kernel.getBody().getOps<RoundHalfOp>())
    return rounding->getNumResults();
  for (auto attention : kernel.getBody().getOps<CacheAttentionInterface>())
    return attention->getNumResults();
  for (Operation &op : kernel.getBody().front())
    if (isa<KVAppendOp, QuantizeRowsOp>(op))
      return op.getNumResults();
  return 1;
}

/// Of one kernel on one device.
class Checks {
public:
  Checks(KernelOp kernel, const MachineDescription &machine)
      : kernel(kernel), machine(machine) {}

  LogicalResult checkSupport(int64_t tokens) {
    if (Operation *op = findFloat8Arithmetic(kernel))
      return op->emitError("no ")
             << machine.name << " kernel for '" << op->getName()
             << "' on f8E4M3FN, which only the weights of kf.matmul are; have "
                "others in bf16, which holds the same numbers";
    for (Operation &op : kernel.getBody().front())
      if (failed(checkOp(op)) || failed(checkCache(op)))
        return failure();
    for (Operation &op : kernel.getBody().front())
      if (failed(checkIntegers(op)))
        return failure();
    if (kernel.getNumResults() != resultsOf(kernel))
      return kernel.emitError("no ")
             << machine.name << " kernel with " << kernel.getNumResults()
             << " results" << instead;
    for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(),
                                              kernel.getResultTypes()))
      if (!isSupported(type))
        return kernel.emitError("no ")
               << machine.name << " kernel for " << type << instead;
      else if (auto tensor = dyn_cast<RankedTensorType>(type);
               tensor && !isCountable(tensor, tokens, machine.indexBits))
        return kernel.emitError("no ")
               << machine.name << " kernel for " << type << " with " << tokens
               << " rows: it has more elements than " << machine.indexBits
               << "-bit indices count";
    return success();
  }

private:
  LogicalResult checkOp(Operation &op) {
    if (!isSupported(&op))
      return op.emitError("no ") << machine.name << " kernel for '"
                                 << op.getName() << "'" << instead;
    for (Type type : typesOf(op))
      if (!type.isIndex() && !isSupported(type))
        return op.emitError("no ")
               << machine.name << " kernel for '" << op.getName() << "' on "
               << type << instead;
    auto rope = dyn_cast<RopeOp>(op);
    if (rope && static_cast<int64_t>(rope.getRotaryDim()) > maxRotaryDim)
      return op.emitError("no ")
             << machine.name
             << " kernel for rotary_dim = " << rope.getRotaryDim()
             << ": at most " << maxRotaryDim << " columns are rotated";
    return success();
  }

  /// What positions and places in a cache have to fit in.
  LogicalResult checkCache(Operation &op) {
    auto attention = dyn_cast<CacheAttentionInterface>(op);
    if (!attention && !isa<KVAppendOp>(op))
      return success();
    KVCacheType cache = attention ? attention.getCache().getType()
                                  : cast<KVAppendOp>(op).getCache().getType();
    Value table = attention ? attention.getPageTable()
                            : cast<KVAppendOp>(op).getPageTable();
    int64_t positions, elements, most = llvm::maxIntN(machine.indexBits);
    if (llvm::MulOverflow(cast<RankedTensorType>(table.getType()).getDimSize(1),
                          cache.getPage(), positions) ||
        positions > most)
      return op.emitError("no ")
             << machine.name
             << " kernel for tables of so many pages: " << machine.indexBits
             << "-bit indices count no more than " << most << " positions";
    // K and V, and a scale for some elements.
    if (llvm::MulOverflow(3 * cache.getPage() * cache.getHeadDim(),
                          cache.getKvHeads(), elements) ||
        elements > most)
      return op.emitError("no ")
             << machine.name
             << " kernel for pages of so many elements: " << machine.indexBits
             << "-bit indices count no more than " << most;
    auto partial = dyn_cast<AttentionPartialOp>(op);
    if (partial && partial.getSplits() > mostGroups)
      return op.emitError("no ")
             << machine.name << " kernel for splits(" << partial.getSplits()
             << "): at most " << mostGroups;
    return success();
  }

  /// Arithmetic on integers that the device has none of would not wrap. Parts
  /// of words are copied, and words are not.
  LogicalResult checkIntegers(Operation &op) {
    if (!machine.integers || !(isElementwise(&op) || isa<ReduceOp, IotaOp>(op)))
      return success();
    for (Type type : typesOf(op)) {
      Type element = getElementTypeOrSelf(type);
      if (!element.isInteger() || element.isInteger(1) ||
          element.isInteger(32) ||
          (isa<CopyOp>(op) && !element.isInteger(64)) ||
          llvm::is_contained(*machine.integers,
                             element.getIntOrFloatBitWidth()))
        continue;
      return op.emitError("no ")
             << machine.name << " kernel for '" << op.getName() << "' on "
             << type << ": the device has no " << element
             << "; use i32, or --device=cpu";
    }
    return success();
  }

  KernelOp kernel;
  const MachineDescription &machine;
};

} // namespace

LogicalResult mlir::kf::checkGpuSupport(KernelOp kernel,
                                        const MachineDescription &machine,
                                        int64_t rows) {
  return Checks(kernel, machine).checkSupport(rows);
}

LogicalResult
mlir::kf::verifyGpuSchedule(KernelOp kernel, ScheduleAttrInterface schedule,
                            const MachineDescription &machine,
                            function_ref<InFlightDiagnostic()> emitError) {
  FailureOr<KernelShape> shape = getKernelShape(kernel, schedule, emitError);
  if (failed(shape))
    return failure();
  auto fail = [&](const Twine &message) {
    if (emitError)
      emitError() << "schedule cannot run on this device: " << message;
    return failure();
  };
  if (shape->flashMma && !machine.has(MatrixUnit::MmaSync))
    return fail("#kf.flash_mma needs matrix units of 16-bit floats; use "
                "#kf.flash");
  if (shape->mma && !machine.has(MatrixUnit::MmaSync))
    return fail("#kf.mma is for the matrix units of NVIDIA GPUs");
  if (((shape->mma && shape->mma->isForWarpgroups) ||
       (shape->flashMma && shape->flashMma->isForWarpgroups)) &&
      !machine.has(MatrixUnit::Wgmma))
    return fail("unit = wgmma is of sm_90a; use unit = mma_sync");
  if ((shape->stream || shape->held) && !machine.has(MatrixUnit::MmaSync))
    return fail("#kf.stream needs the matrix units of NVIDIA GPUs");
  if (schedule.getParts() > machine.clusterWorkgroups)
    return fail(
        "parts are a cluster of workgroups, which sm_90 and later have");
  if (shape->threadCount > machine.threads)
    return fail("threads are " + Twine(shape->threadCount) +
                " a workgroup, the device allows " + Twine(machine.threads));
  if (shape->workgroupBytes > machine.memory)
    return fail("it needs " + Twine(shape->workgroupBytes) +
                " bytes of workgroup memory, the device has " +
                Twine(machine.memory));
  return success();
}

LogicalResult mlir::kf::verifyGpuSchedule(KernelOp kernel,
                                          const MachineDescription &machine,
                                          int64_t rows) {
  return failure(
      failed(checkGpuSupport(kernel, machine, rows)) ||
      failed(verifyGpuSchedule(kernel, kernel.getScheduleAttr(), machine,
                               [&] { return kernel.emitError(); })));
}
