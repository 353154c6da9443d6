//===- Arguments.cpp - Arguments by the names of parameters ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Interpreter.h"

#include <algorithm>

using namespace kf;
using namespace kf::jinja;

Bound::Bound(std::string_view function, const Arguments &arguments,
             std::initializer_list<std::string_view> names, size_t required)
    : function(function), values(names.size()) {
  if (arguments.positional.size() > names.size())
    fail(this->function + " takes at most " + std::to_string(names.size()) +
         " argument(s), not " + std::to_string(arguments.positional.size()));
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    values[i] = &arguments.positional[i];
  for (const auto &[name, value] : arguments.keywords) {
    const auto it = std::ranges::find(names, name);
    const auto index = static_cast<size_t>(it - names.begin());
    if (it == names.end() || values[index])
      fail(this->function +
           (it == names.end() ? " takes no keyword argument '"
                              : " got two values for argument '") +
           name.substr(0, 40) + "'");
    values[index] = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (!values[i])
      fail(this->function + " needs the argument '" +
           std::string(names.begin()[i]) + "'");
}

bool Bound::flag(size_t index, bool otherwise) const {
  return values[index] ? isTrue(*values[index]) : otherwise;
}

int64_t Bound::integer(size_t index, int64_t otherwise) const {
  if (!values[index])
    return otherwise;
  requireDefined(*values[index]);
  if (!values[index]->isInt())
    fail(function + " takes an integer, not " + typeName(*values[index]));
  return values[index]->integer();
}

std::string_view Bound::text(size_t index, std::string_view otherwise) const {
  if (!values[index])
    return otherwise;
  requireDefined(*values[index]);
  if (!values[index]->isString())
    fail(function + " takes a string, not " + typeName(*values[index]));
  return values[index]->text();
}
