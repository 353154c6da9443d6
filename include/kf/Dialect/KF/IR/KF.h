//===- KF.h - The kf dialect ------------------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops, types, attributes and interfaces of the kf dialect.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KF_H
#define KF_DIALECT_KF_IR_KF_H

#include "kf/Dialect/KF/IR/KFEnums.h"
#include "kf/Dialect/KF/IR/Machine.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "runtime/core/BlockFormat.h"
#include "runtime/core/Cancellation.h"
#include "runtime/core/FragmentTile.h"

#include "llvm/Support/Error.h"

#include <limits>

#include "kf/Dialect/KF/IR/KFDialect.h.inc"
#include "kf/Dialect/KF/IR/KFScheduleInterface.h.inc"

namespace mlir::kf {
/// Trait of attributes that say what a module is compiled for.
template <typename AttrTy>
class IsTarget : public AttributeTrait::TraitBase<AttrTy, IsTarget> {};

} // namespace mlir::kf

#define GET_ATTRDEF_CLASSES
#include "kf/Dialect/KF/IR/KFAttributes.h.inc"
#define GET_TYPEDEF_CLASSES
#include "kf/Dialect/KF/IR/KFTypes.h.inc"

namespace mlir::kf {

/// What an op computes of its operands while it reads them.
enum class OperandReads {
  Memory,     ///< nothing: they are in memory
  Elements,   ///< elementwise ops, and lookups
  RowsOrNorm, ///< the same, or a norm of its rows
  NormOfRows, ///< a norm of the rows of its first operand, where targets do
  Heads,      ///< rotations and norms of heads
  NormOfHeads ///< a norm of heads, in a kernel that reads heads
};

/// What changes an op's result before it reaches memory.
enum class ResultChanges {
  None,
  Elements,        ///< elementwise ops
  Rounding,        ///< rounding alone
  RoundingAtTheEnd ///< rounding where targets do, and as the kernel's last op
};

/// What an op's result is to those that may compute it while they read it.
enum class ResultKind {
  Other,
  Norm,        ///< of rows
  NormOfHeads, ///< of rows, which may be heads: [T, heads, D]
  Rotation,    ///< of heads
  Lookup       ///< rows of a table, which decide no loops
};

/// Operations for each element of a tensor; none where it is null.
struct ElementWork {
  Value tensor;
  uint64_t operations = 0;
};

/// Bytes for each row of a tensor; none where it is null.
struct RowBytes {
  Value tensor;
  uint64_t bytes = 0;
};

class Gradients;

} // namespace mlir::kf

#include "kf/Dialect/KF/IR/KFInterfaces.h.inc"

namespace mlir::kf {

/// What attention multiplies scores by.
double getScaleFactor(BatchAttentionInterface op);

/// Whether `type` is a tensor with a dimension of size 0.
inline bool isEmptyTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && llvm::is_contained(tensor.getShape(), 0);
}

/// Whether kernels and programs can take and make values of `type`: a tensor
/// whose dimensions are static but for the first, and not 0.
inline bool isRowsTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !isEmptyTensor(tensor) &&
         (tensor.getRank() == 0 ||
          llvm::none_of(tensor.getShape().drop_front(), ShapedType::isDynamic));
}

/// Trait of ops whose integer operands (ids, positions, page tables) kernels
/// read from memory: they are arguments of the kernel, or slices of those.
template <typename OpTy>
class IntegersInMemory : public OpTrait::TraitBase<OpTy, IntegersInMemory> {};

/// Trait of ops that become others before kernels are formed, where kernels are
/// more than one op.
template <typename OpTy>
class Expanded : public OpTrait::TraitBase<OpTy, Expanded> {};

/// Trait of ops whose operands and results have no dimension of size 0.
template <typename OpTy>
class NonEmptyTensors : public OpTrait::TraitBase<OpTy, NonEmptyTensors> {
public:
  static LogicalResult verifyTrait(Operation *op) {
    for (Type type :
         llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                                  SmallVector<Type>(op->getResultTypes())))
      if (isEmptyTensor(type))
        return op->emitOpError("needs tensors without a dimension of size 0, "
                               "found ")
               << type;
    return success();
  }
};

} // namespace mlir::kf

#define GET_OP_CLASSES
#include "kf/Dialect/KF/IR/KFOps.h.inc"

namespace kf {
struct Executable;
struct MachineRates;
} // namespace kf

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::kf {

/// What kf-form-kernels puts into one kernel.
struct FusionRules {
  /// Anything at all: elementwise ops with what they read or change, views.
  bool fuses = true;
  /// A norm with the matmul whose rows it makes, where these are at most so
  /// many; else it is a kernel.
  int64_t mostRowsOfNorm = std::numeric_limits<int64_t>::max();
  /// An append with the attention behind it that reads its layer of the cache,
  /// where that has at most so many rows; else it is a kernel.
  int64_t mostRowsOfAppend = 0;
  /// The rounding of attention's result with the attention; else it is a
  /// kernel.
  bool roundingIntoAttention = false;
  /// The sum of a part of joined products and what experts add to it, and the
  /// activation of such sums, with the experts' product; else it is a kernel,
  /// with which CPUs are faster.
  bool sumsIntoExperts = false;
};

} // namespace mlir::kf

#include "kf/Dialect/KF/IR/KFTargetInterface.h.inc"

namespace mlir::kf {

/// Storage of a block-quantized format.
const ::kf::BlockFormat &getStorage(BlockFormat format);
/// Bytes of one position of a cache, keys and values of all heads; as many as
/// can be counted where there are more.
uint64_t getPositionBytes(KVCacheType cache);
/// The element type of a runtime type: a float or a QuantType; null for others.
Type getElementType(MLIRContext *context, ::kf::DataType type);

/// The `#kf.layout` of a tensor type, or null.
LayoutAttr getLayout(Type type);
/// Whether a tensor type has the encoding `#kf.fragments`.
bool hasFragments(Type type);
/// Whether its encoding is one of those of weights.
bool isPacked(Type type);
/// The tile of `#kf.fragments` for elements of type `element`, or nothing.
std::optional<::kf::FragmentTile> getFragmentTile(Type element);

/// The `#kf.size` of a tensor type, or null: its `?` is n_tokens then.
SizeAttr getSize(Type type);
/// The name of getSize(), or null.
StringAttr getSizeName(Type type);
/// A tensor with the rows of `rows`, their name included, and of `shape` behind
/// them.
RankedTensorType getRowsOf(RankedTensorType rows, ArrayRef<int64_t> shape,
                           Type element);
/// Whether two tensors have as many rows by their types.
bool haveSameRows(RankedTensorType a, RankedTensorType b);

/// The module's attribute that lists the names of its sizes. Their order gives
/// them slots in the scalar buffer (runtime/program/abi.h) for all of its
/// kernels.
constexpr StringLiteral kSizesAttrName = "kf.sizes";
/// The attribute of a function that lists the `#kf.size_range`s of its sizes;
/// one that it leaves out is at most as large as n_tokens can be.
constexpr StringLiteral kSizeRangesAttrName = "kf.size_ranges";
/// The slot of n_tokens where `name` is null, or of the size that the module
/// around `op` knows by `name`; fails where it knows none, without a
/// diagnostic.
FailureOr<unsigned> getSizeSlot(Operation *op, StringAttr name);

/// The module's attribute that says how many ranks run it together.
constexpr StringLiteral kRanksAttrName = "kf.ranks";
/// What it says in the module that `op` is or is in; 1 where there is none.
int64_t getRanks(Operation *op);
/// Whether ranks meet in `op`: kf.all_reduce, kf.all_gather, kf.send or
/// kf.receive. No kernel computes it.
bool isCollective(Operation *op);

/// Whether `op` makes each element of its result from those of its operands at
/// the same place: kf.activation, kf.copy, and ops of arith and math on
/// tensors. Every pass, target and device means this by "elementwise".
bool isElementwise(Operation *op);
/// Whether it rounds elements to fewer bits, and does nothing else: a kernel
/// may store them so.
bool isRounding(Operation *op);

/// Whether `op` shows elements of its operands in other places, or constants,
/// without memory of its own: slices, reshapes, kf.transpose, kf.broadcast,
/// tensor.concat, kf.iota, arith.constant and tensor.dim.
bool isView(Operation *op);

/// What a source may hold, for messages: names of all ops that kernels know
/// beside those of kf.
StringRef describeTensorOps();
/// The first op of a kernel that takes or makes elements of f8E4M3FN, but for
/// what targets have code for: products, and slices of their weights. Null:
/// there is none.
Operation *findFloat8Arithmetic(KernelOp kernel);

/// The attribute of an argument of a function whose gradient kf-differentiate
/// adds to the function's results.
constexpr StringLiteral kGradientAttrName = "kf.gradient";
/// The attribute of an op that computes again what another one did, so that
/// this need not be kept in memory: it keeps them two until kernels are formed.
constexpr StringLiteral kRecomputedAttrName = "kf.recomputed";

/// The attribute of a function's result, or of a program's or a kernel's, that
/// may lie in the memory of an argument: an i64, the argument's number
/// (kf-check-updates).
constexpr StringLiteral kUpdatesAttrName = "kf.updates";

/// Whether `from` becomes `to` by kf.broadcast, their element types apart.
bool isBroadcastable(RankedTensorType from, RankedTensorType to);

/// Whether `type` is a cache, which programs write to: of keys and values, or
/// of states.
bool isCache(Type type);
/// The layers of such a type, and the type with another number of them.
int64_t getLayers(Type cache);
Type withLayers(Type cache, int64_t layers);
/// What a cache of such a type has: floats, or a `!kf.quant`.
Type getCacheElement(Type cache);

/// Whether `append` stores what `attention` reads of the step's own rows: in
/// its layer, by the same positions, sequences and table.
bool isAppendFor(KVAppendOp append, CacheAttentionInterface attention);

/// The module's attribute that says what it is compiled for.
constexpr StringLiteral kTargetAttrName = "kf.target";
/// The target of the module that `op` is or is in; null, with a diagnostic,
/// where it has none.
TargetAttrInterface getTarget(Operation *op);

/// Whether `op` tiles by kf's TilingInterface: ops of kf with loops, and the
/// elementwise arith and math ops that fuse with them. (Ops of other dialects
/// only promise the interface.)
bool isTileable(Operation *op);

/// Registers the TilingInterface of every kf op and of the elementwise arith
/// ops that fuse with them.
void registerTilingInterfaceExternalModels(DialectRegistry &registry);

/// Registers the DifferentiableOpInterface of the ops of arith, math and tensor
/// that have a derivative.
void registerDifferentiableOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace mlir::kf

#endif // KF_DIALECT_KF_IR_KF_H
