//===- KernelInterpreter.h - Runs a kernel's list of ops --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reference target's kernel code is JSON, an array with one kernel each:
//
//   {"name": "norm", "arguments": [TYPE...],
//    "ops": [{"name": "kf.rms_norm", "operands": [0, 1],
//             "results": [{"id": 2, "type": TYPE}],
//             "attributes": {"eps": 1e-5}}],
//    "results": [2]}
//
// TYPE is {"tensor": "f32", "shape": [-1, 256]}, a size of the step being -1 -
// slot and allowed in front only, or {"cache": {"layers": 8, "kv_heads": 2,
// "head_dim": 64, "type": "f32", "key_block": 1}}. The arguments are the values
// 0, 1, ...; every other value has the id that its op gives it. Attributes have
// their ODS names; integers and floats are numbers, enums their keywords, and
// absent optional operands are left out (`operandSegmentSizes` says which,
// where an op has several).
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_REFERENCE_KERNELINTERPRETER_H
#define KF_RUNTIME_DEVICES_REFERENCE_KERNELINTERPRETER_H

#include "runtime/devices/Reference/OpTable.h"

#include <nlohmann/json.hpp>

#include <span>
#include <string>
#include <vector>

namespace kf::reference {

/// Memory that one argument or result of a kernel is bound to. Not owned.
struct BoundMemory {
  std::byte *data = nullptr;
  uint64_t bytes = 0;
  /// Of a cache that has more layers than the argument: where these begin.
  int64_t firstLayer = 0;
};

/// A kernel whose ops were looked up and whose attributes were read. Immutable;
/// may run on several threads with different memory.
class KernelInterpreter {
public:
  /// Fails, naming the kernel and the op, where anything is malformed, an op is
  /// unknown, or a value is used that no argument or earlier op defines.
  static Result<KernelInterpreter> parse(const nlohmann::json &kernel);

  const std::string &name() const { return symbol; }
  size_t argumentCount() const { return arguments; }
  const ValueType &argumentType(size_t index) const { return types[index]; }
  /// Type of result number `index` of `resultCount()`.
  const ValueType &resultType(size_t index) const {
    return types[results[index]];
  }
  size_t resultCount() const { return results.size(); }

  /// Runs all ops; then writes the results, so that these may share memory with
  /// the arguments. `memory` has the arguments, then the results. Fails where
  /// memory is too small or an op's operands do not fit it.
  /// `scalars` has KF_SCALAR_COUNT entries.
  Status run(std::span<const BoundMemory> memory,
             std::span<const int64_t> scalars) const;

private:
  /// Values live in slots: the arguments first, then every op's results.
  struct Step {
    std::string name;
    size_t resultCount;
    Evaluate evaluate;
    std::vector<size_t> operands;
    size_t result; ///< the first one; unused where the op has none
  };
  struct Parser;

  Status runStep(const Step &step, std::span<const int64_t> scalars,
                 std::vector<Operand> &values,
                 std::vector<Tensor> &owned) const;

  std::string symbol;
  size_t arguments = 0;         ///< that many slots come first
  std::vector<ValueType> types; ///< of every slot
  std::vector<Step> steps;
  std::vector<size_t> results;
};

} // namespace kf::reference

#endif // KF_RUNTIME_DEVICES_REFERENCE_KERNELINTERPRETER_H
