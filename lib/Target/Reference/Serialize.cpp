//===- Serialize.cpp - Kernels as lists of reference ops ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Reference/Serialize.h"

#include "runtime/program/Executable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::kf;
namespace json = llvm::json;

namespace {

std::string elementName(Type type) {
  if (auto quant = dyn_cast<QuantType>(type))
    return stringifyBlockFormat(quant.getFormat()).str();
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

/// A type of a value in `op`, whose module numbers its size.
json::Value toJson(Operation *op, Type type) {
  if (auto cache = dyn_cast<KVCacheType>(type))
    return json::Object{
        {"cache", json::Object{{"layers", cache.getLayers()},
                               {"kv_heads", cache.getKvHeads()},
                               {"head_dim", cache.getHeadDim()},
                               {"type", elementName(cache.getType())},
                               {"key_block", cache.getKeyBlock()},
                               {"page", cache.getPage()}}}};
  if (auto states = dyn_cast<StateCacheType>(type))
    return json::Object{
        {"states", json::Object{{"layers", states.getLayers()},
                                {"heads", states.getHeads()},
                                {"elements", states.getElements()},
                                {"slot_pages", states.getSlotPages()}}}};
  auto tensor = cast<RankedTensorType>(type);
  FailureOr<unsigned> slot = getSizeSlot(op, getSizeName(tensor));
  assert(succeeded(slot) && "checked with the kernel");
  json::Array shape;
  for (int64_t extent : tensor.getShape())
    shape.push_back(ShapedType::isDynamic(extent) ? ::kf::extentOfSlot(*slot)
                                                  : extent);
  return json::Object{{"tensor", elementName(tensor.getElementType())},
                      {"shape", std::move(shape)}};
}

json::Value toJson(RopeScalingAttr scaling) {
  json::Object object{{"kind", stringifyRopeScalingKind(scaling.getKind())},
                      {"factor", scaling.getFactor().convertToDouble()}};
  if (scaling.getKind() == RopeScalingKind::Llama3) {
    object["low_freq_factor"] = scaling.getLowFreqFactor().convertToDouble();
    object["high_freq_factor"] = scaling.getHighFreqFactor().convertToDouble();
    object["original_context"] = scaling.getOriginalContext();
  }
  return object;
}

double toDouble(APFloat value) {
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

json::Value toJson(GluClampAttr clamp) {
  return json::Object{{"limit", toDouble(clamp.getLimit())},
                      {"alpha", toDouble(clamp.getAlpha())}};
}

/// A number, or the name of one that JSON has none for.
json::Value toJson(const APFloat &value) {
  if (value.isNaN())
    return "nan";
  if (value.isInfinity())
    return value.isNegative() ? "-inf" : "inf";
  return toDouble(value);
}

/// Elements of a constant: a number for a splat, else a list.
FailureOr<json::Value> toJson(DenseElementsAttr dense) {
  auto element = [](auto value) -> json::Value {
    if constexpr (std::is_same_v<decltype(value), APFloat>)
      return toJson(value);
    else
      return value.getSExtValue();
  };
  auto list = [&](auto range) -> json::Value {
    if (dense.isSplat())
      return element(*range.begin());
    json::Array values;
    for (auto value : range)
      values.push_back(element(value));
    return values;
  };
  if (isa<FloatType>(dense.getElementType()))
    return list(dense.getValues<APFloat>());
  if (dense.getElementType().isIntOrIndex())
    return list(dense.getValues<APInt>());
  return failure();
}

FailureOr<json::Value> toJson(Attribute attribute) {
  return TypeSwitch<Attribute, FailureOr<json::Value>>(attribute)
      .Case([](UnitAttr) -> json::Value { return true; })
      .Case([](FloatAttr value) -> json::Value {
        return toDouble(value.getValue());
      })
      .Case([](IntegerAttr value) -> json::Value {
        return value.getValue().getSExtValue();
      })
      .Case([](StringAttr value) -> json::Value {
        return value.getValue().str();
      })
      .Case([](ActivationKindAttr kind) -> json::Value {
        return stringifyActivationKind(kind.getValue());
      })
      .Case([](ReduceKindAttr kind) -> json::Value {
        return stringifyReduceKind(kind.getValue());
      })
      .Case([](RopeStyleAttr style) -> json::Value {
        return stringifyRopeStyle(style.getValue());
      })
      .Case([](BlockFormatAttr format) -> json::Value {
        return stringifyBlockFormat(format.getValue());
      })
      .Case([](RopeScalingAttr scaling) { return toJson(scaling); })
      .Case([](GluClampAttr clamp) { return toJson(clamp); })
      .Case([](DenseElementsAttr dense) { return toJson(dense); })
      .Case([](DenseI64ArrayAttr array) -> json::Value {
        return json::Array(array.asArrayRef());
      })
      .Case([](DenseI32ArrayAttr array) -> json::Value {
        return json::Array(array.asArrayRef());
      })
      .Default([](Attribute) { return failure(); });
}

class KernelWriter {
public:
  FailureOr<json::Value> write(KernelOp kernel) {
    json::Array arguments, ops, results;
    for (BlockArgument argument : kernel.getArguments()) {
      ids[argument] = ids.size();
      arguments.push_back(toJson(kernel, argument.getType()));
    }
    for (Operation &op : kernel.getBody().front().without_terminator()) {
      // Extents of dynamic dimensions are sizes of the step and need no op.
      if (op.getNumResults() == 1 && op.getResult(0).getType().isIndex())
        continue;
      FailureOr<json::Value> written = write(&op);
      if (failed(written))
        return failure();
      ops.push_back(std::move(*written));
    }
    for (Value value : kernel.getYield().getValues())
      results.push_back(ids.lookup(value));
    return json::Value(json::Object{{"name", kernel.getSymName()},
                                    {"arguments", std::move(arguments)},
                                    {"ops", std::move(ops)},
                                    {"results", std::move(results)}});
  }

private:
  FailureOr<json::Value> write(Operation *op) {
    json::Array operands, results;
    for (Value operand : op->getOperands())
      if (!operand.getType().isIndex())
        operands.push_back(ids.lookup(operand));
    for (Value result : op->getResults()) {
      ids[result] = ids.size();
      results.push_back(json::Object{{"id", ids.lookup(result)},
                                     {"type", toJson(op, result.getType())}});
    }
    json::Object attributes;
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      for (NamedAttribute attribute : op->getAttrDictionary()) {
        // What lets compilers do more, which the reference does not.
        if (isa<arith::FastMathFlagsAttr, arith::IntegerOverflowFlagsAttr>(
                attribute.getValue()))
          continue;
        FailureOr<json::Value> value = toJson(attribute.getValue());
        if (failed(value))
          return op->emitOpError("reference target: attribute '")
                 << attribute.getName().getValue() << "' has no JSON form";
        attributes[attribute.getName().getValue()] = std::move(*value);
      }
    return json::Value(json::Object{{"name", op->getName().getStringRef()},
                                    {"operands", std::move(operands)},
                                    {"results", std::move(results)},
                                    {"attributes", std::move(attributes)}});
  }

  DenseMap<Value, int64_t> ids;
};

} // namespace

FailureOr<std::string> mlir::kf::serializeForReference(ModuleOp module) {
  json::Array kernels;
  for (auto kernel : module.getOps<KernelOp>()) {
    FailureOr<json::Value> written = KernelWriter().write(kernel);
    if (failed(written))
      return failure();
    kernels.push_back(std::move(*written));
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << json::Value(std::move(kernels));
  return text;
}
