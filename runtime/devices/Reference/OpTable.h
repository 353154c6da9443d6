//===- OpTable.h - From op names to reference functions ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the reference device knows about each op: its operands, and how its
// attributes turn into a call of a function of ReferenceOps.h.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_REFERENCE_OPTABLE_H
#define KF_RUNTIME_DEVICES_REFERENCE_OPTABLE_H

#include "runtime/devices/Reference/ReferenceTensor.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace kf::reference {

/// Attributes of one op: a JSON object whose members have any type. Each getter
/// fails with the attribute's name where it is missing or of another type.
class Attributes {
public:
  explicit Attributes(const nlohmann::json &object) : object(object) {}

  bool has(const char *name) const { return object.contains(name); }
  /// A finite number.
  Result<double> number(const char *name) const;
  Result<double> number(const char *name, double fallback) const;
  Result<int64_t> integer(const char *name) const;
  Result<int64_t> integer(const char *name, int64_t fallback) const;
  Result<std::string> keyword(const char *name) const;
  Result<std::vector<int64_t>> integers(const char *name) const;
  /// A member that is an object itself.
  Result<Attributes> members(const char *name) const;
  /// The member as it is.
  Result<const nlohmann::json *> any(const char *name) const;

private:
  const nlohmann::json &object;
};

/// Type of a value of a kernel. A size of the step, as a TensorSpec has it, is
/// allowed as the first dimension only.
struct ValueType {
  std::optional<CacheSpec> cache; ///< then a cache, and the rest is unused
  DataType type = DataType::F32;
  std::vector<int64_t> shape;

  /// The shape with the step's sizes in place.
  std::vector<int64_t> resolve(std::span<const int64_t> scalars) const {
    return resolveShape(shape, scalars);
  }
};

using Operand = std::variant<TensorView, CacheView>;

/// One op as it stands in a kernel, while its call is prepared.
struct OpSite {
  std::string_view name;
  const Attributes &attributes;
  size_t operandCount;
  const ValueType *result; ///< the first one; null where the op has none
};

/// The operands of a running op, of the number and kinds that its entry says.
struct OpCall {
  std::span<const Operand> operands;
  std::span<const int64_t> scalars; ///< of the step

  const TensorView &tensor(size_t index) const {
    return std::get<TensorView>(operands[index]);
  }
  /// Null where the trailing operand is absent.
  const TensorView *optionalTensor(size_t index) const {
    return index < operands.size() ? &tensor(index) : nullptr;
  }
  const CacheView &cache(size_t index) const {
    return std::get<CacheView>(operands[index]);
  }
};

/// Computes an op's results, in their order. Made of a function of an OpCall
/// that returns them, or the one there is: an empty tensor where there is none.
class Evaluate {
public:
  template <typename Fn>
    requires std::is_invocable_v<const Fn &, const OpCall &>
  Evaluate(Fn fn) {
    if constexpr (std::is_same_v<
                      std::invoke_result_t<const Fn &, const OpCall &>,
                      Result<Tensor>>)
      function = [fn = std::move(fn)](
                     const OpCall &call) -> Result<std::vector<Tensor>> {
        KF_ASSIGN_OR_RETURN(Tensor result, fn(call));
        std::vector<Tensor> results;
        results.push_back(std::move(result));
        return results;
      };
    else
      function = std::move(fn);
  }

  Result<std::vector<Tensor>> operator()(const OpCall &call) const {
    return function(call);
  }

private:
  std::function<Result<std::vector<Tensor>>(const OpCall &)> function;
};

struct OpEntry {
  std::string_view name;
  /// One letter an operand: t a tensor, c a cache, capital letters optional
  /// (and last); a * behind the last: any number of such.
  std::string_view operands;
  size_t results; ///< how many
  /// Reads the attributes once, when the program is loaded.
  Result<Evaluate> (*prepare)(const OpSite &site);
};

/// Null where the reference does not know the op.
const OpEntry *findOp(std::string_view name);

} // namespace kf::reference

#endif // KF_RUNTIME_DEVICES_REFERENCE_OPTABLE_H
