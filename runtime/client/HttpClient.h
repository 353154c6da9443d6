//===- HttpClient.h - Calls of HTTP servers ------------------- -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CLIENT_HTTPCLIENT_H
#define KF_RUNTIME_CLIENT_HTTPCLIENT_H

#include "runtime/client/LibCurl.h"
#include "runtime/core/Cancellation.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// What is sent. The strings have to live as long as the call.
struct HttpCall {
  std::string_view url;                 ///< http or https; no line breaks
  std::optional<std::string_view> body; ///< POSTs it; else GET
  std::vector<std::string> headers;     ///< "Name: value"
  double timeout = 600;                 ///< seconds, for all of it
  bool isDirect = false;                ///< without a proxy
  CancelFlag cancelled = nullptr;       ///< looked at once a second or oftener
};

/// How a call has ended.
struct HttpReply {
  int status = 0;
  /// Seconds that the server asks to wait for; 0: it does not say.
  double retryAfter = 0;
};

/// Who is told of an answer.
struct HttpReader {
  /// The answer's status and Content-Type (maybe empty), before any of
  /// onBody's.
  std::function<void(int status, std::string_view contentType)> onHead;
  /// Some of the body. An error ends the call, which returns it.
  std::function<Status(std::string_view bytes)> onBody;
  /// Whether no more of the body is wanted: the call ends well.
  std::function<bool()> isDone = [] { return false; };
};

/// A connection that stays open from call to call. Follows no redirections, so
/// that what is for one server goes to no other one; sends what is asked for
/// through the proxy that http_proxy, https_proxy and no_proxy name.
/// Certificates are checked by those of the system, or of the file that
/// CURL_CA_BUNDLE or SSL_CERT_FILE names. One thread.
class HttpClient {
public:
  /// Where there is no libcurl, an error says so.
  static Result<HttpClient> create();

  /// Sends `call` and reads the answer, whatever its status. Errors: onBody's;
  /// Cancelled; Unavailable where there is no connection, it breaks or
  /// `timeout` is over; a head of more than 256 KiB. No message has a header.
  Result<HttpReply> call(const HttpCall &call, const HttpReader &reader);

private:
  struct Close {
    const LibCurl *curl;
    void operator()(CurlHandle *handle) const { curl->easyCleanup(handle); }
  };
  HttpClient(const LibCurl *curl, CurlHandle *handle)
      : curl(curl), handle(handle, Close{curl}) {}

  const LibCurl *curl;
  std::unique_ptr<CurlHandle, Close> handle;
};

} // namespace kf

#endif // KF_RUNTIME_CLIENT_HTTPCLIENT_H
