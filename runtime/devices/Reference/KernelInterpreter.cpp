//===- KernelInterpreter.cpp - Runs a kernel's list of ops ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/KernelInterpreter.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace kf::reference {
namespace {

std::string inQuotes(const std::string &text) { return "'" + text + "'"; }

/// Member `name` of a JSON object that is an array.
Result<const nlohmann::json *> arrayMember(const nlohmann::json &object,
                                           const char *name) {
  auto found = object.find(name);
  if (found == object.end() || !found->is_array())
    return Status::error(std::string("member '") + name +
                         "' is missing or not an array");
  return &*found;
}

/// Member "name" of a JSON object.
Result<std::string> nameMember(const nlohmann::json &object) {
  if (!object.is_object())
    return Status::error("a JSON object is expected");
  auto found = object.find("name");
  if (found == object.end() || !found->is_string())
    return Status::error("member 'name' is missing or not a string");
  return found->get<std::string>();
}

Result<ValueType> parseCacheType(const nlohmann::json &json) {
  if (!json.is_object())
    return Status::error("member 'cache' is not an object");
  Attributes members(json);
  CacheSpec spec;
  KF_ASSIGN_OR_RETURN(spec.layers, members.integer("layers"));
  KF_ASSIGN_OR_RETURN(spec.kvHeads, members.integer("kv_heads"));
  KF_ASSIGN_OR_RETURN(spec.headDim, members.integer("head_dim"));
  KF_ASSIGN_OR_RETURN(spec.keyBlock, members.integer("key_block", 1));
  KF_ASSIGN_OR_RETURN(spec.page, members.integer("page", 64));
  KF_ASSIGN_OR_RETURN(std::string type, members.keyword("type"));
  KF_ASSIGN_OR_RETURN(spec.type, parseDataType(type));
  if (Result<int64_t> bytes = spec.bytes(/*pages=*/1); !bytes)
    return bytes.status();
  ValueType value;
  value.cache = spec;
  return value;
}

Result<ValueType> parseStatesType(const nlohmann::json &json) {
  if (!json.is_object())
    return Status::error("member 'states' is not an object");
  Attributes members(json);
  CacheSpec spec;
  KF_ASSIGN_OR_RETURN(spec.layers, members.integer("layers"));
  KF_ASSIGN_OR_RETURN(spec.kvHeads, members.integer("heads"));
  KF_ASSIGN_OR_RETURN(spec.headDim, members.integer("elements"));
  KF_ASSIGN_OR_RETURN(spec.slotPages, members.integer("slot_pages"));
  if (spec.slotPages < 1)
    return Status::error("a slot of a cache of states has a positive number of "
                         "pages, not " +
                         std::to_string(spec.slotPages));
  if (Result<int64_t> bytes = spec.bytes(/*pages=*/1); !bytes)
    return bytes.status();
  ValueType value;
  value.cache = spec;
  return value;
}

/// Dimensions are positive, so that no tensor's memory is smaller than its
/// shape suggests.
Result<ValueType> parseType(const nlohmann::json &json) {
  if (!json.is_object())
    return Status::error("a type is not an object");
  if (json.contains("cache"))
    return parseCacheType(json["cache"]);
  if (json.contains("states"))
    return parseStatesType(json["states"]);
  Attributes members(json);
  ValueType value;
  KF_ASSIGN_OR_RETURN(std::string element, members.keyword("tensor"));
  KF_ASSIGN_OR_RETURN(value.type, parseDataType(element));
  KF_ASSIGN_OR_RETURN(value.shape, members.integers("shape"));
  for (size_t i = 0; i < value.shape.size(); ++i)
    if (value.shape[i] < 1 && (!isSizeExtent(value.shape[i]) || i != 0))
      return Status::error("a shape has dimension " +
                           std::to_string(value.shape[i]) +
                           "; positive ones are expected, or a size of the "
                           "step in front");
  std::array<int64_t, KF_SCALAR_COUNT> ones;
  ones.fill(1);
  if (Result<int64_t> bytes = checkedByteCount(value.type, value.resolve(ones));
      !bytes)
    return bytes.status();
  return value;
}

std::string describeKind(char letter) {
  return letter == 'c' ? "a cache" : "a tensor";
}

/// Number and kinds of an op's operands.
Status checkOperands(const OpEntry &op, const std::vector<size_t> &operands,
                     const std::vector<ValueType> &types) {
  const bool repeats = op.operands.ends_with('*');
  const size_t letters = op.operands.size() - repeats;
  size_t most = repeats ? operands.size() : letters, least = 0;
  while (least < letters && op.operands[least] >= 'a')
    ++least;
  if (operands.size() < least || operands.size() > most)
    return Status::error("it has " + std::to_string(operands.size()) +
                         " operands; " + std::to_string(least) +
                         (most > least ? " to " + std::to_string(most) : "") +
                         " are expected");
  for (size_t i = 0; i < operands.size(); ++i) {
    bool isCache = types[operands[i]].cache.has_value();
    if (isCache != (op.operands[std::min(i, letters - 1)] == 'c'))
      return Status::error("operand " + std::to_string(i) + " is not " +
                           describeKind(op.operands[i]));
  }
  return Status();
}

} // namespace

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

struct KernelInterpreter::Parser {
  KernelInterpreter &kernel;
  std::unordered_map<int64_t, size_t> slotOf; ///< by value id

  Status define(int64_t id, ValueType type) {
    if (!slotOf.emplace(id, kernel.types.size()).second)
      return Status::error("value " + std::to_string(id) + " is defined twice");
    kernel.types.push_back(std::move(type));
    return Status();
  }

  Result<std::vector<size_t>> parseUses(const nlohmann::json &object,
                                        const char *name) {
    KF_ASSIGN_OR_RETURN(std::vector<int64_t> ids,
                        Attributes(object).integers(name));
    std::vector<size_t> slots;
    for (int64_t id : ids) {
      auto found = slotOf.find(id);
      if (found == slotOf.end())
        return Status::error("member '" + std::string(name) + "' uses value " +
                             std::to_string(id) +
                             ", which nothing before it defines");
      slots.push_back(found->second);
    }
    return slots;
  }

  Status parseArguments(const nlohmann::json &json) {
    Result<const nlohmann::json *> types = arrayMember(json, "arguments");
    if (!types)
      return types.status();
    for (const nlohmann::json &element : **types) {
      int64_t id = static_cast<int64_t>(kernel.types.size());
      Result<ValueType> type = parseType(element);
      if (!type)
        return type.status().in("argument " + std::to_string(id));
      KF_RETURN_IF_ERROR(define(id, type.take()));
    }
    kernel.arguments = kernel.types.size();
    return Status();
  }

  /// The op's results become values.
  Status parseResults(const nlohmann::json &json, const OpEntry &op) {
    Result<const nlohmann::json *> list = arrayMember(json, "results");
    if (!list)
      return list.status();
    if ((*list)->size() != op.results)
      return Status::error(
          "it has " + std::to_string((*list)->size()) + " results; " +
          (op.results == 0 ? "none are"
                           : std::to_string(op.results) +
                                 (op.results == 1 ? " is" : " are")) +
          " expected");
    for (const nlohmann::json &result : **list)
      KF_RETURN_IF_ERROR(parseResult(result));
    return Status();
  }

  Status parseResult(const nlohmann::json &result) {
    if (!result.is_object() || !result.contains("type"))
      return Status::error("its result has no type");
    Result<int64_t> id = Attributes(result).integer("id");
    if (!id)
      return id.status();
    Result<ValueType> type = parseType(result["type"]);
    if (!type)
      return type.status().in("result " + std::to_string(*id));
    if (type->cache)
      return Status::error("its result is a cache");
    return define(*id, type.take());
  }

  Status parseOp(const nlohmann::json &json, const std::string &name,
                 const OpEntry &op) {
    Result<std::vector<size_t>> operands = parseUses(json, "operands");
    if (!operands)
      return operands.status();
    KF_RETURN_IF_ERROR(checkOperands(op, *operands, kernel.types));
    size_t result = kernel.types.size();
    KF_RETURN_IF_ERROR(parseResults(json, op));
    static const nlohmann::json none = nlohmann::json::object();
    const nlohmann::json &attributes =
        json.contains("attributes") ? json["attributes"] : none;
    if (!attributes.is_object())
      return Status::error("member 'attributes' is not an object");
    Attributes members(attributes);
    Result<Evaluate> evaluate =
        op.prepare({name, members, operands->size(),
                    op.results ? &kernel.types[result] : nullptr});
    if (!evaluate)
      return evaluate.status();
    kernel.steps.push_back(
        {name, op.results, evaluate.take(), operands.take(), result});
    return Status();
  }

  Status parseOps(const nlohmann::json &json) {
    Result<const nlohmann::json *> list = arrayMember(json, "ops");
    if (!list)
      return list.status();
    for (size_t i = 0; i < (*list)->size(); ++i) {
      const nlohmann::json &element = (**list)[i];
      Result<std::string> name = nameMember(element);
      if (!name)
        return name.status().in("op " + std::to_string(i));
      const OpEntry *op = findOp(*name);
      if (!op)
        return Status::error("reference device: no reference for op " +
                             inQuotes(*name));
      KF_RETURN_IF_ERROR(
          parseOp(element, *name, *op)
              .in("op " + std::to_string(i) + " (" + *name + ")"));
    }
    return Status();
  }

  Status parse(const nlohmann::json &json) {
    KF_RETURN_IF_ERROR(parseArguments(json));
    KF_RETURN_IF_ERROR(parseOps(json));
    Result<std::vector<size_t>> results = parseUses(json, "results");
    if (!results)
      return results.status();
    for (size_t slot : *results)
      if (kernel.types[slot].cache)
        return Status::error("a result is a cache");
    kernel.results = results.take();
    return Status();
  }
};

Result<KernelInterpreter>
KernelInterpreter::parse(const nlohmann::json &kernel) {
  KernelInterpreter interpreter;
  KF_ASSIGN_OR_RETURN(interpreter.symbol, nameMember(kernel));
  Parser parser{interpreter, {}};
  KF_RETURN_IF_ERROR(
      parser.parse(kernel).in("kernel " + inQuotes(interpreter.symbol)));
  return interpreter;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

namespace {

Status checkSize(const BoundMemory &memory, int64_t bytes) {
  if (static_cast<uint64_t>(bytes) <= memory.bytes)
    return Status();
  return Status::error("its memory has " + std::to_string(memory.bytes) +
                       " of " + std::to_string(bytes) + " bytes");
}

/// What an argument's memory holds; an error if it is too small.
Result<Operand> viewMemory(const ValueType &type, const BoundMemory &memory,
                           std::span<const int64_t> scalars) {
  if (!type.cache) {
    std::vector<int64_t> shape = type.resolve(scalars);
    KF_ASSIGN_OR_RETURN(int64_t bytes, checkedByteCount(type.type, shape));
    KF_RETURN_IF_ERROR(checkSize(memory, bytes));
    return Operand(TensorView{type.type, shape, memory.data});
  }
  const int64_t cachePages = scalars[KF_SCALAR_CACHE_PAGES];
  CacheSpec upToLast = *type.cache;
  upToLast.layers += memory.firstLayer;
  KF_ASSIGN_OR_RETURN(int64_t bytes, upToLast.bytes(cachePages));
  KF_RETURN_IF_ERROR(checkSize(memory, bytes));
  int64_t skipped = bytes / upToLast.layers * memory.firstLayer;
  return Operand(CacheView{*type.cache, cachePages, memory.data + skipped});
}

} // namespace

Status KernelInterpreter::runStep(const Step &step,
                                  std::span<const int64_t> scalars,
                                  std::vector<Operand> &values,
                                  std::vector<Tensor> &owned) const {
  std::vector<Operand> operands;
  for (size_t slot : step.operands)
    operands.push_back(values[slot]);
  Result<std::vector<Tensor>> results = step.evaluate({operands, scalars});
  if (!results)
    return results.status();
  for (size_t i = 0; i < step.resultCount; ++i) {
    const size_t slot = step.result + i;
    const ValueType &type = types[slot];
    Tensor result = std::move((*results)[i]);
    if (result.shape != type.resolve(scalars))
      return Status::error("its result is " +
                           describe(result.type, result.shape) + ", not " +
                           describe(type.type, type.resolve(scalars)));
    KF_ASSIGN_OR_RETURN(owned[slot], roundTo(std::move(result), type.type));
    values[slot] = owned[slot].view();
  }
  return Status();
}

Status KernelInterpreter::run(std::span<const BoundMemory> memory,
                              std::span<const int64_t> scalars) const {
  std::string where = "kernel " + inQuotes(symbol);
  if (memory.size() != arguments + results.size())
    return Status::error(where + ": " + std::to_string(memory.size()) +
                         " bindings for " + std::to_string(arguments) +
                         " arguments and " + std::to_string(results.size()) +
                         " results");
  std::vector<Operand> values(types.size());
  std::vector<Tensor> owned(types.size());
  for (size_t i = 0; i < arguments; ++i) {
    Result<Operand> value = viewMemory(types[i], memory[i], scalars);
    if (!value)
      return value.status().in(where + ": argument " + std::to_string(i));
    values[i] = value.take();
  }
  for (size_t i = 0; i < steps.size(); ++i)
    KF_RETURN_IF_ERROR(runStep(steps[i], scalars, values, owned)
                           .in(where + ": op " + std::to_string(i) + " (" +
                               steps[i].name + ")"));
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorView &value = std::get<TensorView>(values[results[i]]);
    const BoundMemory &target = memory[arguments + i];
    Result<int64_t> bytes = checkedByteCount(value.type, value.shape);
    if (!bytes)
      return bytes.status().in(where);
    KF_RETURN_IF_ERROR(
        checkSize(target, *bytes).in(where + ": result " + std::to_string(i)));
    if (*bytes > 0)
      std::memmove(target.data, value.data, static_cast<size_t>(*bytes));
  }
  return Status();
}

} // namespace kf::reference
