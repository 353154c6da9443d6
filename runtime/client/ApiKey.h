//===- ApiKey.h - A key that nobody sees ---------------------- -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CLIENT_APIKEY_H
#define KF_RUNTIME_CLIENT_APIKEY_H

#include "runtime/core/Status.h"

#include <string>
#include <string_view>

namespace kf {

/// A server's key. No message has it; what a server says goes through hide(),
/// as some repeat the key that is wrong.
class ApiKey {
public:
  ApiKey() = default; ///< none
  /// The value of the environment variable `name`; none where that is empty or
  /// not set. Errors, of a value that no header can have, name the variable
  /// alone.
  static Result<ApiKey> fromEnvironment(const std::string &name);

  bool isEmpty() const { return key.empty(); }
  /// "Authorization: Bearer ...", for the server alone.
  std::string header() const { return "Authorization: Bearer " + key; }
  /// `text` with "[key]" for each time that it has the key. Less than 8 bytes
  /// are no secret ("none", "EMPTY"), but words of texts.
  std::string hide(std::string_view text) const;

private:
  std::string key;
};

} // namespace kf

#endif // KF_RUNTIME_CLIENT_APIKEY_H
