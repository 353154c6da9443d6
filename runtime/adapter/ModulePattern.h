//===- ModulePattern.h - Which modules a field names ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ADAPTER_MODULEPATTERN_H
#define KF_RUNTIME_ADAPTER_MODULEPATTERN_H

#include "runtime/core/Status.h"
#include "runtime/text/Regex.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kf {

/// A set of modules, as PEFT's configurations name them.
class ModulePatterns {
public:
  /// Those whose names, or whose ends from a dot on, are some of `names`.
  static ModulePatterns ofNames(std::vector<std::string> names);
  /// Those whose whole names match the regular expression `pattern`; all of
  /// them for "all-linear". Error: it is none.
  static Result<ModulePatterns> ofExpression(std::string_view pattern);
  /// Those whose names, or whose ends from a dot on, match it.
  static Result<ModulePatterns> ofEnd(std::string_view pattern);

  /// Error: an expression that needs too many steps.
  Result<bool> matches(const std::string &module) const;

private:
  /// Of names that have `begin`, an expression, in front of `pattern`.
  static Result<ModulePatterns> compile(std::string_view begin,
                                        std::string_view pattern);

  std::vector<std::string> names;
  std::optional<Regex> expression;
  bool isAll = false;
};

} // namespace kf

#endif // KF_RUNTIME_ADAPTER_MODULEPATTERN_H
