//===- RemoteServer.cpp - A server of OpenAI's API ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/client/RemoteServer.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/Quote.h"
#include "runtime/core/Stopwatch.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

using namespace kf;

namespace {

constexpr double kFirstWait = 0.5, kLongestWait = 30;
/// That a server may ask for.
constexpr double kLongestRetryAfter = 120;
constexpr size_t kMostUrlBytes = 2048, kMostModelBytes = 256;
constexpr size_t kMostListBytes = size_t(4) << 20;

bool isLocalHost(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

/// Returns false where an interrupt ended it.
bool sleepFor(double seconds, CancelFlag cancelled) {
  using namespace std::chrono_literals;
  const Stopwatch watch;
  while (watch.seconds() < seconds) {
    if (isCancelled(cancelled))
      return false;
    std::this_thread::sleep_for(20ms);
  }
  return true;
}

bool isWorthAnother(int status) { return status == 429 || status >= 500; }

} // namespace

Result<ServerAddress> ServerAddress::parse(std::string_view url) {
  ServerAddress address;
  std::string_view rest = url;
  address.isEncrypted = rest.starts_with("https://");
  const bool isSound = (address.isEncrypted || rest.starts_with("http://")) &&
                       url.size() <= kMostUrlBytes &&
                       std::ranges::all_of(url, [](char c) {
                         return c > 0x20 && c < 0x7f && c != '"' && c != '\\';
                       });
  rest.remove_prefix(std::min(rest.find("//") + 2, rest.size()));
  const std::string_view host = rest.substr(0, rest.find('/'));
  if (isSound && host.find('@') != host.npos)
    return Status::error("an address has no user and no password; a key is "
                         "given by --key-env");
  if (!isSound || host.empty() || host.find_first_of("?#") != host.npos ||
      rest.find_first_of("?#") != rest.npos)
    return Status::error(inQuotes(url) +
                         " is no address of a server, as in "
                         "http://127.0.0.1:8080 or https://api.openai.com/v1");
  address.isLocal =
      isLocalHost(host.starts_with('[') ? host.substr(0, host.find(']') + 1)
                                        : host.substr(0, host.find(':')));
  address.base = url;
  while (address.base.ends_with('/'))
    address.base.pop_back();
  if (rest.find_first_not_of('/', host.size()) == rest.npos)
    address.base += "/v1";
  return address;
}

Result<RemoteConnection> RemoteConnection::create(const RemoteServer &server,
                                                  CancelFlag cancelled) {
  KF_ASSIGN_OR_RETURN(HttpClient client, HttpClient::create());
  return RemoteConnection(server, std::move(client), cancelled);
}

/// Before the attempt after the first `attempts`.
double RemoteConnection::backoff(int64_t attempts) {
  constexpr int64_t most = 8;
  const double wait =
      kFirstWait * static_cast<double>(1 << std::min(attempts - 1, most));
  // Clients that were refused together do not come back together.
  std::uniform_real_distribution<double> chance(0.75, 1.25);
  return std::min(wait, kLongestWait) * chance(random);
}

RemoteConnection::Sent RemoteConnection::send(std::string_view path,
                                              const std::string *body,
                                              const Reader &reader) {
  const std::string url = server->address.base + std::string(path);
  HttpCall call;
  call.url = url;
  if (body)
    call.body = *body;
  call.headers = {"Content-Type: application/json",
                  "Accept: text/event-stream, application/json"};
  if (!server->key.isEmpty())
    call.headers.push_back(server->key.header());
  call.timeout = server->timeout;
  // A proxy would read the key, and does not know this machine.
  call.isDirect = server->address.isLocal;
  call.cancelled = cancelled;

  Sent sent;
  for (int64_t attempts = 1;; ++attempts) {
    const Stopwatch watch;
    sent.status = 0;
    const Result<HttpReply> reply =
        client.call(call, {.onHead =
                               [&](int status, std::string_view contentType) {
                                 sent.status = status;
                                 reader.begin(status, contentType);
                               },
                           .onBody =
                               [&](std::string_view bytes) {
                                 return reader.push(bytes, watch.seconds());
                               },
                           .isDone = reader.isDone});
    sent.error = reply.ok() ? reader.end(watch.seconds()) : reply.status();
    const bool wasLate = !reply.ok() && watch.seconds() > 0.99 * call.timeout;
    const bool isRefused =
        reply.ok() ? isWorthAnother(sent.status)
                   : sent.status == 0 && !wasLate &&
                         sent.error.code() == StatusCode::Unavailable;
    const double asked = reply.ok() ? reply->retryAfter : 0;
    if (sent.error.ok() || !isRefused || attempts > server->retries)
      break;
    if (asked > kLongestRetryAfter) {
      sent.error =
          Status::error(sent.error.message() + ": it asks to come back in " +
                            spellNumber(asked) + " s",
                        sent.error.code());
      break;
    }
    if (!sleepFor(std::max(backoff(attempts), asked), cancelled)) {
      sent.error = Status::cancelled();
      break;
    }
    ++sent.retries;
  }
  if (!sent.error.ok())
    sent.error = Status::error(server->key.hide(sent.error.message()),
                               sent.error.code());
  return sent;
}

Result<std::string> RemoteConnection::firstModel() try {
  std::string body, model;
  int status = 0;
  const Sent sent = send(
      "/models", nullptr,
      {.begin =
           [&](int code, std::string_view) {
             status = code;
             body.clear();
           },
       .push = [&](std::string_view bytes, double) -> Status {
         if (bytes.size() > kMostListBytes - body.size())
           return Status::error("a list of more than 4 MiB");
         body += bytes;
         return Status();
       },
       .isDone = [] { return false; },
       .end = [&](double) -> Status {
         if (status != 200)
           return Status::error("answered " + std::to_string(status) + ": " +
                                    errorMessage(body, server->key),
                                isWorthAnother(status) ? StatusCode::Unavailable
                                                       : StatusCode::Invalid);
         const Result<JsonDocument> parsed = parseJson(body);
         if (!parsed.ok())
           return Status::error("it is not sound JSON", parsed.status().code());
         const JsonDocument &list = *parsed;
         const nlohmann::json::json_pointer first("/data/0/id");
         if (!list->is_object() || !list->contains(first) ||
             !(*list)[first].is_string())
           return Status::error("there is no model in the list");
         model = (*list)[first].get<std::string>();
         return Status();
       }});
  if (!sent.error.ok())
    return sent.error.in("the list of models");
  if (model.empty() || model.size() > kMostModelBytes ||
      printableText(model, kMostModelBytes) != model ||
      server->key.hide(model) != model)
    return Status::error("the list of models: the first has a name that is "
                         "empty, too long or no line of text; "
                         "--remote-model gives one");
  return model;
} catch (...) {
  return statusOfException();
}

RemoteOutcome RemoteConnection::ask(const RemoteRequest &request,
                                    const std::string &model) {
  RemoteOutcome outcome;
  outcome.error = catchExceptions([&]() -> Status {
    KF_ASSIGN_OR_RETURN(const std::string body, request.bodyFor(model));
    std::optional<AnswerReader> reader;
    const Sent sent = send(
        request.path(), &body,
        {.begin =
             [&](int status, std::string_view type) {
               reader.emplace(status, type, server->key);
             },
         .push = [&](std::string_view bytes,
                     double seconds) { return reader->push(bytes, seconds); },
         .isDone = [&] { return reader->isDone(); },
         .end = [&](double seconds) -> Status {
           KF_ASSIGN_OR_RETURN(outcome.answer, reader->finish(seconds));
           return Status();
         }});
    outcome.retries = sent.retries;
    outcome.isRefused =
        sent.status == 401 || sent.status == 403 || sent.status == 404;
    return sent.error;
  });
  return outcome;
}
