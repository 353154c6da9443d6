//===- KFDialect.cpp - Dialect, attributes and types ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpChecks.h"

#include "runtime/core/ExpertTiles.h"
#include "runtime/model/ConfigLimits.h"
#include "runtime/program/Executable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::kf;

namespace mlir::kf {
static FailureOr<APFloat> parseDouble(AsmParser &parser) {
  double value;
  if (parser.parseFloat(value))
    return failure();
  return APFloat(value);
}

static void printDouble(AsmPrinter &printer, const APFloat &value) {
  SmallString<32> text;
  value.toString(text, /*FormatPrecision=*/0,
                 /*FormatMaxPadding=*/3,
                 /*TruncateZero=*/false);
  printer << text << (text.str().contains('.') ? "" : ".0");
}

static ParseResult parseSizes(AsmParser &parser, SmallVector<int64_t> &sizes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseInteger(sizes.emplace_back());
  });
}

static void printSizes(AsmPrinter &printer, ArrayRef<int64_t> sizes) {
  printer << "[";
  llvm::interleaveComma(sizes, printer);
  printer << "]";
}

static FailureOr<SmallVector<int64_t>> parseSizeList(AsmParser &parser) {
  SmallVector<int64_t> sizes;
  if (parseSizes(parser, sizes))
    return failure();
  return sizes;
}

static FailureOr<SmallVector<Type>> parseTypeList(AsmParser &parser) {
  SmallVector<Type> types;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseType(types.emplace_back());
      }))
    return failure();
  return types;
}

static void printTypeList(AsmPrinter &printer, ArrayRef<Type> types) {
  printer << "[";
  llvm::interleaveComma(types, printer);
  printer << "]";
}

static ParseResult parseSizeName(AsmParser &parser, StringAttr &name) {
  StringRef word;
  if (parser.parseKeyword(&word))
    return failure();
  name = StringAttr::get(parser.getContext(), word);
  return success();
}

static void printSizeName(AsmPrinter &printer, StringAttr name) {
  printer << name.getValue();
}
} // namespace mlir::kf

#include "kf/Dialect/KF/IR/KFDialect.cpp.inc"
#include "kf/Dialect/KF/IR/KFEnums.cpp.inc"
#include "kf/Dialect/KF/IR/KFInterfaces.cpp.inc"
#include "kf/Dialect/KF/IR/KFScheduleInterface.cpp.inc"
#include "kf/Dialect/KF/IR/KFTargetInterface.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "kf/Dialect/KF/IR/KFAttributes.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "kf/Dialect/KF/IR/KFTypes.cpp.inc"

void KFDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "kf/Dialect/KF/IR/KFAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "kf/Dialect/KF/IR/KFTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "kf/Dialect/KF/IR/KFOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Block formats
//===----------------------------------------------------------------------===//

const ::kf::BlockFormat &mlir::kf::getStorage(BlockFormat format) {
  const ::kf::BlockFormat &description =
      ::kf::kBlockFormats[static_cast<size_t>(format)];
  assert(stringifyBlockFormat(format) ==
             StringRef(::kf::nameOf(description.type)) &&
         "block formats have the order of kBlockFormats");
  return description;
}

uint64_t mlir::kf::getPositionBytes(KVCacheType cache) {
  const uint64_t elements = llvm::SaturatingMultiply<uint64_t>(
      2 * cache.getKvHeads(), cache.getHeadDim());
  if (auto quant = dyn_cast<QuantType>(cache.getType())) {
    const ::kf::BlockFormat &storage = getStorage(quant.getFormat());
    return llvm::SaturatingMultiply<uint64_t>(elements / storage.elements,
                                              storage.bytes);
  }
  return llvm::SaturatingMultiply<uint64_t>(
      elements, cache.getType().getIntOrFloatBitWidth() / 8);
}

Type mlir::kf::getElementType(MLIRContext *context, ::kf::DataType type) {
  switch (type) {
  case ::kf::DataType::F32:
    return Float32Type::get(context);
  case ::kf::DataType::F16:
    return Float16Type::get(context);
  case ::kf::DataType::BF16:
    return BFloat16Type::get(context);
  default:
    break;
  }
  std::optional<BlockFormat> format = symbolizeBlockFormat(::kf::nameOf(type));
  return format ? Type(QuantType::get(context, *format)) : Type();
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult
RopeScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        RopeScalingKind kind, APFloat factorValue,
                        APFloat lowFreqValue, APFloat highFreqValue,
                        int64_t originalContext) {
  double factor = factorValue.convertToDouble();
  double lowFreqFactor = lowFreqValue.convertToDouble();
  double highFreqFactor = highFreqValue.convertToDouble();
  if (!(factor > 0))
    return emitError() << "factor must be positive, found " << factor;
  if (kind != RopeScalingKind::Llama3)
    return success();
  if (!(lowFreqFactor > 0) || !(highFreqFactor >= lowFreqFactor))
    return emitError() << "llama3 scaling needs 0 < low_freq_factor <= "
                          "high_freq_factor, found "
                       << lowFreqFactor << " and " << highFreqFactor;
  if (originalContext <= 0)
    return emitError() << "llama3 scaling needs a positive original_context, "
                          "found "
                       << originalContext;
  return success();
}

LogicalResult GluClampAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   APFloat limitValue, APFloat alphaValue) {
  const double limit = limitValue.convertToDouble();
  const double alpha = alphaValue.convertToDouble();
  if (!(limit > 0) || !(alpha > 0) || !std::isfinite(limit) ||
      !std::isfinite(alpha))
    return emitError() << "limit and alpha must be positive and finite, found "
                       << limit << " and " << alpha;
  return success();
}

LogicalResult RowsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               Type element) {
  if (!element.isF32() && !element.isF16() && !element.isBF16() &&
      !element.isSignlessInteger(8))
    return emitError() << "rows must be f32, f16, bf16 or i8, found "
                       << element;
  return success();
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t panel, int64_t interleave) {
  if (panel <= 0 || panel > maxTile)
    return emitError() << "panel must be in [1, " << maxTile << "], found "
                       << panel;
  if (interleave < 0 || interleave > panel ||
      (interleave > 0 && panel % (2 * interleave) != 0))
    return emitError() << "panel (" << panel
                       << ") must be a multiple of twice interleave ("
                       << interleave << ")";
  return success();
}

LogicalResult
LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                           function_ref<InFlightDiagnostic()> emitError) const {
  if (!elementType) // MLIR's parser has found it wrong, and asks all the same
    return failure();
  if (shape.size() < 2 || shape.size() > 4)
    return emitError()
           << "#kf.layout needs a tensor of rank 2 to 4, found rank "
           << shape.size();
  if (getInterleave() > 0 && !elementType.isBF16())
    return emitError() << "#kf.layout with interleave needs bf16 elements, "
                          "found "
                       << elementType;
  return success();
}

LayoutAttr mlir::kf::getLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<LayoutAttr>(tensor.getEncoding())
                : LayoutAttr();
}

LogicalResult FragmentsAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type elementType,
    function_ref<InFlightDiagnostic()> emitError) const {
  if (!elementType) // MLIR's parser has found it wrong, and asks all the same
    return failure();
  if (!getFragmentTile(elementType))
    return emitError() << "#kf.fragments needs elements of f16, bf16, f32 or "
                          "f8E4M3FN, or blocks, found "
                       << elementType;
  if (!::kf::hasRowBlocks(shape))
    return emitError() << "#kf.fragments needs a tensor of rank 2, of rank 3 "
                          "with two matrices, or of rank 4 with one or two of "
                          "each expert";
  return success();
}

std::optional<::kf::FragmentTile> mlir::kf::getFragmentTile(Type element) {
  if (element.isF16())
    return ::kf::findFragmentTile(::kf::DataType::F16);
  if (element.isBF16())
    return ::kf::findFragmentTile(::kf::DataType::BF16);
  if (element.isF32())
    return ::kf::findFragmentTile(::kf::DataType::F32);
  if (isa<Float8E4M3FNType>(element))
    return ::kf::findFragmentTile(::kf::DataType::F8E4M3);
  if (auto quant = dyn_cast<QuantType>(element))
    return ::kf::findFragmentTile(getStorage(quant.getFormat()).type);
  return std::nullopt;
}

bool mlir::kf::hasFragments(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa_and_nonnull<FragmentsAttr>(tensor.getEncoding());
}

bool mlir::kf::isPacked(Type type) {
  return getLayout(type) || hasFragments(type);
}

//===----------------------------------------------------------------------===//
// Names of dynamic sizes
//===----------------------------------------------------------------------===//

/// How n_tokens is called where a size needs a name.
static constexpr StringLiteral tokensName = "n_tokens";

static LogicalResult
verifySizeName(function_ref<InFlightDiagnostic()> emitError, StringRef name) {
  // What the parser takes for a keyword.
  bool isName = !name.empty() && name.size() <= 64 &&
                (llvm::isAlpha(name[0]) || name[0] == '_') &&
                llvm::all_of(name, [](char c) {
                  return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.';
                });
  if (!isName)
    return emitError() << "a size is named by a word of up to 64 letters, "
                          "digits and '_', found '"
                       << name.take_front(64) << "'";
  if (name == tokensName)
    return emitError() << "n_tokens is the `?` of a tensor without #kf.size";
  return success();
}

LogicalResult SizeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               StringAttr name) {
  return verifySizeName(emitError, name.getValue());
}

LogicalResult
SizeAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                         function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.empty())
    return emitError() << "#kf.size needs a tensor of rank 1 or more";
  if (llvm::any_of(shape.drop_front(), ShapedType::isDynamic))
    return emitError() << "#kf.size names the first dimension; the others must "
                          "be static";
  return success();
}

LogicalResult
SizeRangeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      StringAttr name, int64_t least, int64_t most) {
  if (failed(verifySizeName(emitError, name.getValue())))
    return failure();
  if (least < 0 || least > most || most > maxSize)
    return emitError() << "size_range of '" << name.getValue()
                       << "': needs 0 <= least <= most <= " << maxSize
                       << ", found " << least << " and " << most;
  return success();
}

SizeAttr mlir::kf::getSize(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<SizeAttr>(tensor.getEncoding()) : SizeAttr();
}

StringAttr mlir::kf::getSizeName(Type type) {
  SizeAttr size = getSize(type);
  return size ? size.getName() : StringAttr();
}

RankedTensorType mlir::kf::getRowsOf(RankedTensorType rows,
                                     ArrayRef<int64_t> shape, Type element) {
  SmallVector<int64_t> whole = {rows.getDimSize(0)};
  whole.append(shape.begin(), shape.end());
  return RankedTensorType::get(whole, element, getSize(rows));
}

bool mlir::kf::haveSameRows(RankedTensorType a, RankedTensorType b) {
  return a.getRank() > 0 && b.getRank() > 0 &&
         a.getDimSize(0) == b.getDimSize(0) && getSize(a) == getSize(b);
}

FailureOr<unsigned> mlir::kf::getSizeSlot(Operation *op, StringAttr name) {
  if (!name)
    return unsigned(KF_SCALAR_N_TOKENS);
  auto module =
      isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  auto names =
      module ? module->getAttrOfType<ArrayAttr>(kSizesAttrName) : ArrayAttr();
  if (names)
    for (auto [number, known] : llvm::enumerate(names))
      if (known == name)
        return static_cast<unsigned>(KF_SCALAR_NAMED_SIZES + number);
  return failure();
}

static LogicalResult verifyTarget(Operation *op, Attribute target) {
  if (isa<ModuleOp>(op) && target.hasTrait<IsTarget>())
    return success();
  return op->emitError("kf.target says what a module is compiled for, such as "
                       "#kf.cpu_target<...>");
}

static LogicalResult verifyRanks(Operation *op, Attribute attribute) {
  auto ranks = dyn_cast<IntegerAttr>(attribute);
  if (isa<ModuleOp>(op) && ranks && ranks.getType().isSignlessInteger(64) &&
      ranks.getInt() >= 2 && ranks.getInt() <= ::kf::kMaxRanks)
    return success();
  return op->emitError("kf.ranks says how many ranks run a module together, an "
                       "i64 from 2 to ")
         << ::kf::kMaxRanks << ", found " << attribute;
}

LogicalResult KFDialect::verifyOperationAttribute(Operation *op,
                                                  NamedAttribute attribute) {
  if (attribute.getName() == kTargetAttrName)
    return verifyTarget(op, attribute.getValue());
  if (attribute.getName() == kRanksAttrName)
    return verifyRanks(op, attribute.getValue());
  if (attribute.getName() != kSizesAttrName)
    return success();
  auto names = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!isa<ModuleOp>(op) || !names ||
      !llvm::all_of(names, llvm::IsaPred<StringAttr>))
    return op->emitError("kf.sizes lists names on a module");
  if (names.size() > KF_NAMED_SIZE_COUNT)
    return op->emitError("kf.sizes: a module has at most ")
           << int64_t(KF_NAMED_SIZE_COUNT) << " named sizes, found "
           << names.size();
  DenseSet<Attribute> seen;
  for (auto name : names.getAsRange<StringAttr>()) {
    if (!seen.insert(name).second)
      return op->emitError("kf.sizes has '") << name.getValue() << "' twice";
    if (failed(verifySizeName([&] { return op->emitError("kf.sizes: "); },
                              name.getValue())))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Grid
//===----------------------------------------------------------------------===//

LogicalResult GridAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> tokens,
                               ArrayRef<int64_t> counts, StringAttr size) {
  if (size && failed(verifySizeName(emitError, size.getValue())))
    return failure();
  if (tokens.size() != counts.size() || tokens.size() > 3)
    return emitError() << "grid: tokens and counts need the same length, at "
                          "most 3";
  for (auto [divisor, count] : llvm::zip(tokens, counts))
    if (divisor < 0 || (divisor == 0 && count <= 0))
      return emitError() << "grid: a dimension needs a positive divisor of "
                            "n_tokens or a positive count";
  return success();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

LogicalResult KVCacheType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t layers, int64_t kvHeads,
                                  int64_t headDim, Type type, int64_t keyBlock,
                                  int64_t page) {
  if (layers <= 0 || kvHeads <= 0 || headDim <= 0 || keyBlock <= 0 || page <= 0)
    return emitError() << "kv_cache: every size must be positive";
  if (layers > maxSize || kvHeads > maxSize)
    return emitError() << "kv_cache: layers and kv_heads are at most "
                       << maxSize;
  if (headDim > ::kf::kMaxHeadDim || keyBlock > maxTile || page > maxTile)
    return emitError() << "kv_cache: head_dim is at most " << ::kf::kMaxHeadDim
                       << ", key_block and page " << maxTile;
  if (page % keyBlock != 0)
    return emitError() << "kv_cache: page (" << page
                       << ") must be a multiple of key_block (" << keyBlock
                       << ")";
  auto quant = dyn_cast<QuantType>(type);
  if (!type.isF32() && !type.isF16() && !type.isBF16() &&
      (!quant || quant.getFormat() != BlockFormat::Q8_0))
    return emitError() << "kv_cache: elements must be f32, f16, bf16 or "
                          "!kf.quant<q8_0>, found "
                       << type;
  if (quant && headDim % getStorage(quant.getFormat()).elements != 0)
    return emitError() << "kv_cache: head_dim (" << headDim
                       << ") must be a multiple of "
                       << getStorage(quant.getFormat()).elements
                       << " for elements in blocks; use f32, f16 or bf16";
  return success();
}

LogicalResult
StateCacheType::verify(function_ref<InFlightDiagnostic()> emitError,
                       int64_t layers, int64_t heads, int64_t elements,
                       int64_t slotPages) {
  for (int64_t size : {layers, heads, elements, slotPages})
    if (size <= 0 || size > maxSize)
      return emitError() << "state_cache: every size must be in [1, " << maxSize
                         << "], found " << size;
  return success();
}

bool mlir::kf::isCache(Type type) {
  return isa<KVCacheType, StateCacheType>(type);
}

int64_t mlir::kf::getLayers(Type cache) {
  if (auto states = dyn_cast<StateCacheType>(cache))
    return states.getLayers();
  return cast<KVCacheType>(cache).getLayers();
}

Type mlir::kf::getCacheElement(Type cache) {
  if (isa<StateCacheType>(cache))
    return Float32Type::get(cache.getContext());
  return cast<KVCacheType>(cache).getType();
}

Type mlir::kf::withLayers(Type cache, int64_t layers) {
  if (auto states = dyn_cast<StateCacheType>(cache))
    return states.withLayers(layers);
  return cast<KVCacheType>(cache).withLayers(layers);
}
