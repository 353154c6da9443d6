//===- RemoteServer.h - A server of OpenAI's API -------------- -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CLIENT_REMOTESERVER_H
#define KF_RUNTIME_CLIENT_REMOTESERVER_H

#include "runtime/client/AnswerReader.h"
#include "runtime/client/ApiKey.h"
#include "runtime/client/HttpClient.h"
#include "runtime/client/RequestFile.h"

#include <random>

namespace kf {

/// Where a server is.
struct ServerAddress {
  /// What paths are appended to: "https://api.openai.com/v1".
  std::string base;
  bool isEncrypted = false; ///< https
  bool isLocal = false;     ///< this machine, by name or a loopback address

  /// Reads "http://127.0.0.1:8080" or "https://example.org/api/v1"; "/v1" is
  /// added where there is no path. A user or a password is an error that does
  /// not have it.
  static Result<ServerAddress> parse(std::string_view url);
};

struct RemoteServer {
  ServerAddress address;
  ApiKey key;
  double timeout = 600; ///< seconds, of each attempt
  int64_t retries = 4;  ///< attempts after the first one
};

/// What came of a request, which was sent once or more often.
struct RemoteOutcome {
  Status error; ///< else there is an answer
  Answer answer;
  int64_t retries = 0;
  /// Whether the server would refuse others, too: the key or the model is wrong
  /// (401, 403, 404).
  bool isRefused = false;
};

/// Asks a server. What is not answered (429, 500 and above, no connection) is
/// asked again, after the time that the server says (Retry-After), or half a
/// second, twice that and so on; not what broke off in the middle, which has
/// cost something, nor what was too late. One thread; the server has to outlive
/// it.
class RemoteConnection {
public:
  static Result<RemoteConnection> create(const RemoteServer &server,
                                         CancelFlag cancelled);

  /// The first model that the server lists.
  Result<std::string> firstModel();
  /// Sends `request` for `model`. Times count from the attempt that went well.
  RemoteOutcome ask(const RemoteRequest &request, const std::string &model);

private:
  RemoteConnection(const RemoteServer &server, HttpClient client,
                   CancelFlag cancelled)
      : server(&server), client(std::move(client)), cancelled(cancelled) {}

  /// Who reads an answer: told of its head, then of what comes when, and at its
  /// end.
  struct Reader {
    std::function<void(int status, std::string_view contentType)> begin;
    std::function<Status(std::string_view bytes, double seconds)> push;
    std::function<bool()> isDone;
    std::function<Status(double seconds)> end;
  };
  struct Sent {
    Status error;
    int status = 0; ///< of the last answer; 0: there was none
    int64_t retries = 0;
  };
  Sent send(std::string_view path, const std::string *body,
            const Reader &reader);
  double backoff(int64_t attempts);

  const RemoteServer *server;
  HttpClient client;
  CancelFlag cancelled;
  std::minstd_rand random{std::random_device()()};
};

} // namespace kf

#endif // KF_RUNTIME_CLIENT_REMOTESERVER_H
