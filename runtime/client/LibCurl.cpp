//===- LibCurl.cpp - Functions of libcurl ---------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/client/LibCurl.h"

#include <dlfcn.h>
#include <type_traits>

using namespace kf;

/// It is never closed: its TLS library leaves things behind.
static void *openLibrary() {
  // Debian has a second one, which is made with GnuTLS.
  for (const char *name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
    if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return library;
  return nullptr;
}

static Result<LibCurl> load() {
  void *library = openLibrary();
  if (!library)
    return Status::error("no libcurl (libcurl.so.4), which requests are sent "
                         "with: install it (Debian's package is libcurl4), or "
                         "let LD_LIBRARY_PATH say where it is",
                         StatusCode::Unavailable);
  LibCurl curl;
  bool isWhole = true;
  auto find = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(library, symbol));
    isWhole = isWhole && function;
  };
  find(curl.globalInit, "curl_global_init");
  find(curl.easyInit, "curl_easy_init");
  find(curl.easyCleanup, "curl_easy_cleanup");
  find(curl.easySetopt, "curl_easy_setopt");
  find(curl.easyGetinfo, "curl_easy_getinfo");
  find(curl.easyPerform, "curl_easy_perform");
  find(curl.easyStrerror, "curl_easy_strerror");
  find(curl.listAppend, "curl_slist_append");
  find(curl.listFree, "curl_slist_free_all");
  constexpr long everything = 3;
  if (!isWhole || curl.globalInit(everything) != CurlOk)
    return Status::error("libcurl.so.4 does not start: it is none, or its TLS "
                         "library is broken",
                         StatusCode::Unavailable);
  return curl;
}

Result<const LibCurl *> kf::loadLibCurl() {
  static const Result<LibCurl> library = load();
  if (!library.ok())
    return library.status();
  return &*library;
}
