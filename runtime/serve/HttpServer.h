//===- HttpServer.h - HTTP/1.1 on a socket ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread serves all connections (docs/decisions/http.md). A connection has
// one request at a time; while it is answered, the socket is read on, so that a
// client that goes away is noticed at once and its answer destroyed. A client
// that has shut down its side of the connection counts as gone.
//
// Whoever reads slowly keeps what it has not read in its answer (HttpAnswer),
// which is asked for more only once all it gave is sent.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_HTTPSERVER_H
#define KF_RUNTIME_SERVE_HTTPSERVER_H

#include "runtime/core/Status.h"
#include "runtime/serve/HttpMessage.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>

namespace kf {

struct HttpServerOptions {
  std::string host = "127.0.0.1";      ///< a name, or an address to listen on
  uint16_t port = 8080;                ///< 0: one that is free
  uint32_t mostHeaderBytes = 16 << 10; ///< of a request's line and headers
  uint64_t mostBodyBytes = 16 << 20;
  size_t mostConnections = 1024; ///< more are answered 503 and closed

  using Milliseconds = std::chrono::milliseconds;
  /// For a request's head, from its first byte on, and for its body.
  Milliseconds headerTime{10'000}, bodyTime{60'000};
  /// For which a connection may wait for a request.
  Milliseconds idleTime{75'000};
  /// In which a client has to take some of what is sent to it.
  Milliseconds sendTime{30'000};
  /// After which an answer that says nothing else gives its ping.
  Milliseconds pingTime{10'000};
};

/// Functions may be called by any thread.
class HttpServer {
public:
  /// Listens; answers nothing yet. `handler` must outlive it. Errors: a name
  /// that is none, a port that is taken.
  static Result<std::unique_ptr<HttpServer>>
  create(const HttpServerOptions &options, HttpHandler &handler);
  /// run() has returned, or was not called.
  ~HttpServer();
  HttpServer(const HttpServer &) = delete;
  HttpServer &operator=(const HttpServer &) = delete;

  /// "http://127.0.0.1:8080", as it listens.
  const std::string &url() const;
  /// Whether other machines cannot reach it.
  bool isLocal() const;

  /// Calls `onSignal` from run()'s thread for the first of these signals that
  /// arrives; another one ends the process as if nobody had caught it. Before
  /// run().
  void catchSignals(std::initializer_list<int> signals,
                    std::function<void()> onSignal);

  /// Serves until stop(), and until all connections are closed. Call once.
  void run();
  /// Takes no more connections and requests, and lets answers come to their
  /// ends until `deadline`.
  void stop(std::chrono::steady_clock::time_point deadline =
                std::chrono::steady_clock::now());

  class Loop; ///< its inside

private:
  explicit HttpServer(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop;
};

} // namespace kf

#endif // KF_RUNTIME_SERVE_HTTPSERVER_H
