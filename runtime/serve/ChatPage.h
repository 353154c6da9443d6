//===- ChatPage.h - The page at / -------------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_CHATPAGE_H
#define KF_RUNTIME_SERVE_CHATPAGE_H

#include <string_view>

extern "C" {
extern const char kf_chat_page[], kf_chat_page_end[];
}

namespace kf {

/// A page of HTML that chats with the server that it is from.
inline std::string_view chatPage() {
  return {kf_chat_page, static_cast<size_t>(kf_chat_page_end - kf_chat_page)};
}

} // namespace kf

#endif // KF_RUNTIME_SERVE_CHATPAGE_H
