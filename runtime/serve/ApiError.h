//===- ApiError.h - Errors as OpenAI's clients know them --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_APIERROR_H
#define KF_RUNTIME_SERVE_APIERROR_H

#include "runtime/core/Status.h"
#include "runtime/serve/HttpMessage.h"

#include <string>

namespace kf {

/// An error that a client is told: {"error": {message, type, param, code}}.
struct ApiError {
  int status = 400; ///< of HTTP
  std::string message = {};
  std::string type = "invalid_request_error";
  std::string code = {};  ///< empty: null
  std::string param = {}; ///< the field that is wrong; empty: null

  /// `status`, of what was done for a request. One that begins with a name in
  /// quotes is about that field.
  static ApiError of(const Status &status);

  std::string json() const;
  HttpResponse response() const;
};

} // namespace kf

#endif // KF_RUNTIME_SERVE_APIERROR_H
