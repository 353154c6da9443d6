//===- HttpClient.cpp - Calls of HTTP servers -----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/client/HttpClient.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Stopwatch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

using namespace kf;

namespace {

constexpr size_t kMostHeadBytes = size_t(256) << 10;
constexpr double kMostConnectSeconds = 30;
// What may follow a body of which no more is wanted, until it ends by itself,
// which keeps the connection.
constexpr size_t kMostRestBytes = size_t(64) << 10;
constexpr double kMostRestSeconds = 1;

/// A call that goes on, for the library's callbacks, through which no exception
/// may pass.
struct Call {
  const LibCurl &curl;
  CurlHandle *handle;
  const HttpReader &reader;
  CancelFlag cancelled;
  size_t headBytes = 0;
  bool hasHead = false;
  std::optional<Stopwatch> ended = {}; ///< since the reader wants no more
  size_t restBytes = 0;                ///< since then
  Status failure;

  size_t header(size_t bytes) {
    headBytes += bytes;
    if (headBytes <= kMostHeadBytes)
      return bytes;
    failure = Status::error("a head of more than 256 KiB");
    return 0;
  }

  void tellHead() {
    if (std::exchange(hasHead, true))
      return;
    long status = 0;
    const char *type = nullptr;
    curl.easyGetinfo(handle, CurlInfo::ResponseCode, &status);
    curl.easyGetinfo(handle, CurlInfo::ContentType, &type);
    reader.onHead(static_cast<int>(status), type ? type : "");
  }

  size_t body(const char *data, size_t bytes) {
    if (ended) {
      restBytes += bytes;
      return restBytes <= kMostRestBytes ? bytes : 0;
    }
    failure = catchExceptions([&]() -> Status {
      tellHead();
      KF_RETURN_IF_ERROR(reader.onBody({data, bytes}));
      if (reader.isDone())
        ended.emplace();
      return Status();
    });
    return failure.ok() ? bytes : 0;
  }

  bool shallEnd() const {
    return isCancelled(cancelled) ||
           (ended && ended->seconds() > kMostRestSeconds);
  }
};

size_t onHeader(char *, size_t, size_t bytes, void *call) {
  return static_cast<Call *>(call)->header(bytes);
}
size_t onBody(char *data, size_t, size_t bytes, void *call) {
  return static_cast<Call *>(call)->body(data, bytes);
}
int onProgress(void *call, int64_t, int64_t, int64_t, int64_t) {
  return static_cast<const Call *>(call)->shallEnd();
}

/// A list of headers, the library's.
class Headers {
public:
  explicit Headers(const LibCurl &curl) : curl(curl) {}
  ~Headers() { curl.listFree(list); }
  Headers(const Headers &) = delete;
  Headers &operator=(const Headers &) = delete;

  Status add(const char *header) {
    CurlList *longer = curl.listAppend(list, header);
    if (!longer)
      return Status::outOfMemory();
    list = longer;
    return Status();
  }
  CurlList *get() const { return list; }

private:
  const LibCurl &curl;
  CurlList *list = nullptr;
};

/// Keeps the thread from SIGPIPE, which TLS libraries raise where a server goes
/// away, and which would end the process.
class NoPipeSignal {
public:
  NoPipeSignal() {
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    wasPending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
  }
  ~NoPipeSignal() {
    const struct timespec now = {};
    if (!wasPending)
      while (sigtimedwait(&pipe, nullptr, &now) == -1 && errno == EINTR) {
      }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  NoPipeSignal(const NoPipeSignal &) = delete;
  NoPipeSignal &operator=(const NoPipeSignal &) = delete;

private:
  sigset_t pipe, before;
  bool wasPending;
};

long milliseconds(double seconds) {
  constexpr double most = 1e9; // which a long has on any machine
  return static_cast<long>(std::clamp(seconds * 1000, 1.0, most));
}

} // namespace

Result<HttpClient> HttpClient::create() {
  KF_ASSIGN_OR_RETURN(const LibCurl *curl, loadLibCurl());
  CurlHandle *handle = curl->easyInit();
  if (!handle)
    return Status::outOfMemory();
  return HttpClient(curl, handle);
}

Result<HttpReply> HttpClient::call(const HttpCall &call,
                                   const HttpReader &reader) try {
  Headers headers(*curl);
  for (const std::string &header : call.headers)
    KF_RETURN_IF_ERROR(headers.add(header.c_str()));
  KF_RETURN_IF_ERROR(headers.add("Expect:")); // waits for no "100 Continue"

  Call state{.curl = *curl,
             .handle = handle.get(),
             .reader = reader,
             .cancelled = call.cancelled,
             .failure = {}};
  constexpr size_t errorSize = 256;
  std::array<char, errorSize> error = {};
  const std::string url(call.url);
  int code = CurlOk;
  auto set = [&](CurlOption option, auto value) {
    if (code == CurlOk)
      code = curl->easySetopt(handle.get(), option, value);
  };
  set(CurlOption::NoSignal, 1L);
  set(CurlOption::Protocols, CurlHttp | CurlHttps);
  set(CurlOption::FollowLocation, 0L);
  if (call.isDirect)
    set(CurlOption::NoProxy, "*");
  set(CurlOption::UserAgent, "kf-run");
  set(CurlOption::Url, url.c_str());
  set(CurlOption::HttpHeader, headers.get());
  set(CurlOption::ErrorBuffer, error.data());
  set(CurlOption::TimeoutMs, milliseconds(call.timeout));
  set(CurlOption::ConnectTimeoutMs,
      milliseconds(std::min(call.timeout, kMostConnectSeconds)));
  set(CurlOption::WriteFunction, &onBody);
  set(CurlOption::WriteData, &state);
  set(CurlOption::HeaderFunction, &onHeader);
  set(CurlOption::HeaderData, &state);
  set(CurlOption::ProgressFunction, &onProgress);
  set(CurlOption::ProgressData, &state);
  set(CurlOption::NoProgress, 0L);
  if (call.body) {
    // The size first: the library then takes the body as it is, and where it
    // is.
    set(CurlOption::PostFieldSize, static_cast<int64_t>(call.body->size()));
    set(CurlOption::PostFields, call.body->data());
  } else {
    set(CurlOption::HttpGet, 1L);
  }
  for (const char *name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char *file = std::getenv(name); file && *file) {
      set(CurlOption::CertificateFile, file);
      break;
    }
  if (code == CurlOk) {
    const NoPipeSignal none;
    code = curl->easyPerform(handle.get());
  }
  curl->easySetopt(handle.get(), CurlOption::ErrorBuffer,
                   static_cast<char *>(nullptr));

  if (!state.failure.ok())
    return state.failure;
  if (isCancelled(call.cancelled) && !state.ended)
    return Status::cancelled();
  if (code == CurlOutOfMemory)
    return Status::outOfMemory();
  if (code != CurlOk && !state.ended) {
    const char *what = error[0] ? error.data() : curl->easyStrerror(code);
    const bool isWrong =
        code == CurlUnsupportedProtocol || code == CurlUrlMalformed ||
        code == CurlPeerFailedVerification || code == CurlCertificateFile;
    return Status::error(what, isWrong ? StatusCode::Invalid
                                       : StatusCode::Unavailable);
  }
  state.tellHead(); // of an answer without a body
  HttpReply reply;
  long status = 0;
  int64_t wait = 0;
  curl->easyGetinfo(handle.get(), CurlInfo::ResponseCode, &status);
  if (curl->easyGetinfo(handle.get(), CurlInfo::RetryAfter, &wait) != CurlOk)
    wait = 0; // not known before 7.66
  reply.status = static_cast<int>(status);
  reply.retryAfter = static_cast<double>(std::max<int64_t>(wait, 0));
  return reply;
} catch (...) {
  return statusOfException();
}
