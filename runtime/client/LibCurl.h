//===- LibCurl.h - Functions of libcurl ----------------------- -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What of libcurl is called, by declarations of our own: the library is opened
// when something is to be sent (docs/decisions/libcurl.md). Numbers and types
// are of its binary interface, version 4, which does not change.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CLIENT_LIBCURL_H
#define KF_RUNTIME_CLIENT_LIBCURL_H

#include "runtime/core/Status.h"

#include <cstddef>
#include <cstdint>

namespace kf {

struct CurlHandle;
struct CurlList;

/// Options of a handle, as the library numbers them.
enum class CurlOption : int {
  WriteData = 10001,
  Url = 10002,
  ErrorBuffer = 10010,
  PostFields = 10015,
  HttpHeader = 10023,
  HeaderData = 10029,
  ProgressData = 10057,
  CertificateFile = 10065, ///< CAINFO
  NoProxy = 10177,         ///< hosts without one; "*": all
  WriteFunction = 20011,
  HeaderFunction = 20079,
  ProgressFunction = 20219,
  PostFieldSize = 30120, ///< curl_off_t
  NoProgress = 43,
  FollowLocation = 52,
  HttpGet = 80,
  NoSignal = 99,
  TimeoutMs = 155,
  ConnectTimeoutMs = 156,
  Protocols = 181,
  UserAgent = 10018
};

/// What can be asked of a handle after a call.
enum class CurlInfo : int {
  ResponseCode = 0x200002, ///< long
  ContentType = 0x100012,  ///< const char *, the handle's
  RetryAfter = 0x600039    ///< curl_off_t, seconds; 0: not said
};

/// Results of calls that callers tell apart.
enum CurlCode : int {
  CurlOk = 0,
  CurlUnsupportedProtocol = 1,
  CurlUrlMalformed = 3,
  CurlOutOfMemory = 27,
  CurlTimedOut = 28,
  CurlPeerFailedVerification = 60,
  CurlCertificateFile = 77
};

inline constexpr long CurlHttp = 1, CurlHttps = 2; ///< of Protocols

/// The library's functions. Those that take any value are variadic, as in its
/// own header.
struct LibCurl {
  int (*globalInit)(long flags) = nullptr;
  CurlHandle *(*easyInit)() = nullptr;
  void (*easyCleanup)(CurlHandle *) = nullptr;
  int (*easySetopt)(CurlHandle *, CurlOption, ...) = nullptr;
  int (*easyGetinfo)(CurlHandle *, CurlInfo, ...) = nullptr;
  int (*easyPerform)(CurlHandle *) = nullptr;
  const char *(*easyStrerror)(int) = nullptr;
  CurlList *(*listAppend)(CurlList *, const char *) = nullptr;
  void (*listFree)(CurlList *) = nullptr;
};

/// Opens the library, once for the process. An error says what to install. Any
/// thread.
Result<const LibCurl *> loadLibCurl();

} // namespace kf

#endif // KF_RUNTIME_CLIENT_LIBCURL_H
