//===- MessageBytes.h - Numbers and text as bytes ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What messages between ranks are made of: numbers are little-endian, and text
// has its length in front.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_MESSAGEBYTES_H
#define KF_RUNTIME_COLLECTIVE_MESSAGEBYTES_H

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace kf {

/// Appends to a message, which must outlive it.
class MessageWriter {
public:
  explicit MessageWriter(std::string &out) : out(out) {}

  template <std::integral T> void put(T value) {
    for (size_t i = 0; i < sizeof(T); ++i)
      out += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
  }
  void put(std::span<const std::byte> bytes) {
    put(static_cast<uint64_t>(bytes.size()));
    out.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  }
  void put(std::string_view text) {
    put(std::as_bytes(std::span(text.data(), text.size())));
  }

private:
  std::string &out;
};

/// Reads what a MessageWriter has put. After the end, everything is zero, and
/// failed() says so.
class MessageReader {
public:
  explicit MessageReader(std::string_view bytes) : rest(bytes) {}

  bool atEnd() const { return rest.empty(); }
  bool failed() const { return bad; }
  /// Says that what was read cannot be.
  void fail() { bad = true; }

  template <std::integral T> void get(T &value) {
    uint64_t bits = 0;
    const std::string_view bytes = take(sizeof(T));
    for (size_t i = 0; i < bytes.size(); ++i)
      bits |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i]))
              << (8 * i);
    value = static_cast<T>(bits);
  }
  /// They are in the message.
  void get(std::span<const std::byte> &bytes) {
    uint64_t size = 0;
    get(size);
    const std::string_view taken = take(size);
    bytes = std::as_bytes(std::span(taken.data(), taken.size()));
  }
  void get(std::string &text) {
    uint64_t size = 0;
    get(size);
    text = take(size);
  }

private:
  /// The next `count` bytes; none where there are fewer.
  std::string_view take(uint64_t count) {
    if (count > rest.size()) {
      bad = true;
      rest = {};
      return {};
    }
    const std::string_view taken = rest.substr(0, count);
    rest.remove_prefix(count);
    return taken;
  }

  std::string_view rest;
  bool bad = false;
};

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_MESSAGEBYTES_H
