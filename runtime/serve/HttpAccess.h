//===- HttpAccess.h - Who may ask a server ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Browsers let any page send requests to servers on the same machine, and a
// page's name may be made to stand for 127.0.0.1. Hence, beside keys:
//
//   - A request that a page of another origin sends has an Origin header. It is
//     refused unless that origin is allowed, or is the server's own.
//   - Where no key is wanted, the Host header has to be an address, localhost,
//     or a name that is allowed.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_HTTPACCESS_H
#define KF_RUNTIME_SERVE_HTTPACCESS_H

#include "runtime/serve/HttpMessage.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

struct HttpAccess {
  /// Any of them opens the server; none: it is open.
  std::vector<std::string> keys = {};
  /// Names that the Host header may have, without ports.
  std::vector<std::string> hosts = {};
  /// Origins whose pages may ask ("https://example.org"); "*" is any.
  std::vector<std::string> origins = {};

  /// Whether `key` is one of `keys`. It takes as long whatever the bytes of
  /// `key` are.
  bool isKey(std::string_view key) const;
  /// Whether the request's "Authorization: Bearer KEY" or "X-Api-Key: KEY" has
  /// a key, or none is wanted.
  bool hasKey(const HttpRequest &request) const;
  /// Whether the Host header is as it has to be.
  bool isHostAllowed(const HttpRequest &request) const;
  /// Whether the Origin header is as it has to be; none always is.
  bool isOriginAllowed(const HttpRequest &request) const;
  /// The headers that let a browser hand the answer to the page that asked;
  /// none where the request has no Origin, or one that `origins` lacks.
  std::vector<std::pair<std::string, std::string>>
  corsHeaders(const HttpRequest &request) const;
};

} // namespace kf

#endif // KF_RUNTIME_SERVE_HTTPACCESS_H
