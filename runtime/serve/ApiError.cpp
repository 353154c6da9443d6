//===- ApiError.cpp - Errors as OpenAI's clients know them ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/ApiError.h"

#include "runtime/core/JsonText.h"

using namespace kf;

ApiError ApiError::of(const Status &status) {
  ApiError error{.message = status.message()};
  if (error.message.starts_with('\''))
    error.param = error.message.substr(1, error.message.find('\'', 1) - 1);
  switch (status.code()) {
  case StatusCode::Ok:
  case StatusCode::Invalid:
    break;
  case StatusCode::NotFound:
    error.status = 404;
    error.code = "not_found";
    break;
  case StatusCode::Unsupported:
    error.code = "unsupported_parameter";
    break;
  case StatusCode::OutOfMemory:
  case StatusCode::Unavailable:
    error.status = 503;
    error.type = "server_error";
    error.code = "unavailable";
    break;
  case StatusCode::Cancelled:
    error.status = 503;
    error.type = "server_error";
    error.code = "cancelled";
    break;
  case StatusCode::Internal:
    error.status = 500;
    error.type = "server_error";
    error.code = "internal_error";
    break;
  }
  return error;
}

static std::string textOrNull(const std::string &text) {
  return text.empty() ? "null" : jsonText(text);
}

std::string ApiError::json() const {
  return jsonObject({{"error", jsonObject({{"message", jsonText(message)},
                                           {"type", jsonText(type)},
                                           {"param", textOrNull(param)},
                                           {"code", textOrNull(code)}})}});
}

HttpResponse ApiError::response() const {
  HttpResponse response{.status = status, .body = json()};
  if (status == 429 || status == 503)
    response.headers.emplace_back("Retry-After", "1");
  if (status == 401)
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}
