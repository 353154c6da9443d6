//===- HttpMessage.h - Requests and answers of HTTP -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a server of HTTP and who answers its requests know of one another, as
// plain values: no sockets, and no library of HTTP.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_HTTPMESSAGE_H
#define KF_RUNTIME_SERVE_HTTPMESSAGE_H

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kf {

/// What was asked for. All of it is a stranger's.
struct HttpRequest {
  std::string method; ///< "GET"
  std::string path;   ///< "/v1/models", decoded, without what follows a '?'
  /// By lower-case name; of a header that comes twice, the values with ", "
  /// between them.
  std::map<std::string, std::string, std::less<>> headers;
  std::string body;

  /// A header's value; empty where there is none.
  std::string_view header(std::string_view name) const;
  /// Adds a header as it came.
  void addHeader(std::string_view name, std::string_view value);
  /// Adds what looks like headers in the lines of `text`, up to an empty one or
  /// to what is no whole line: for a head that is not sound.
  void addHeaderLines(std::string_view text);
};

/// The head of an answer, and its body where that is known.
struct HttpResponse {
  int status = 200;
  std::string contentType = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// An answer that comes by and by. Destroying it ends the work on it. One
/// thread, the server's.
class HttpAnswer {
public:
  struct Piece {
    /// Once, with or before the first of the body. A piece that has it and is
    /// the last is a whole answer.
    std::optional<HttpResponse> head = {};
    std::string body = {}; ///< what follows
    bool isLast = false;
  };

  virtual ~HttpAnswer() = default;
  /// What is new; never blocks.
  virtual Piece take() = 0;
  /// What may be sent where nothing else is, so that nobody thinks the server
  /// gone; empty where nothing may.
  virtual std::string_view ping() const { return {}; }
};

/// Who answers. The server calls it from one thread.
class HttpHandler {
public:
  virtual ~HttpHandler() = default;
  /// Looks at a request before its body is read; what it returns is the answer.
  virtual std::optional<HttpResponse> refuse(const HttpRequest &request) = 0;
  /// The server itself answers `response`, to a request that it cannot read to
  /// its end: adds what all answers have. `request` has the headers that came.
  virtual void complete(const HttpRequest &request, HttpResponse &response) = 0;
  /// Never null. `onNews` may be called from any thread, whenever take() may
  /// have something new.
  virtual std::unique_ptr<HttpAnswer> handle(HttpRequest request,
                                             std::function<void()> onNews) = 0;
};

/// An answer that is there.
std::unique_ptr<HttpAnswer> answerNow(HttpResponse response);

/// "Not Found" of 404.
std::string_view reasonOf(int status);

/// How a body's end is told.
enum class HttpFraming { Length, Chunked, Close };

/// The head of an answer as text, its empty line included; `length` counts with
/// HttpFraming::Length. Line breaks in headers' values become spaces.
std::string headText(const HttpResponse &response, HttpFraming framing,
                     size_t length, bool keepsAlive);

/// A chunk of a chunked body.
std::string chunkText(std::string_view body);

/// The path of a request's target: without '?' and what follows it, with %XX
/// decoded, and without scheme and host where it begins with them. Nothing for
/// a target that is no path, a wrong %XX or a NUL.
std::optional<std::string> pathOf(std::string_view target);

} // namespace kf

#endif // KF_RUNTIME_SERVE_HTTPMESSAGE_H
