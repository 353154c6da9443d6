//===- GgufCursor.h - Reads values of GGUF's encoding -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_GGUFCURSOR_H
#define KF_RUNTIME_IO_GGUFCURSOR_H

#include "runtime/io/GgufFormat.h"

#include <cstring>
#include <string_view>

namespace kf {

/// Walks over bytes from the front; no read goes past their end. The bytes
/// outlive what is read from them.
class GgufCursor {
public:
  explicit GgufCursor(std::string_view bytes) : bytes(bytes) {}

  uint64_t position() const { return at; }
  uint64_t left() const { return bytes.size() - at; }

  /// Reads a number; false if the bytes end before it does.
  template <typename T> bool read(T &out) {
    if (left() < sizeof(T))
      return false;
    std::memcpy(&out, bytes.data() + at, sizeof(T));
    at += sizeof(T);
    return true;
  }
  /// Reads `size` bytes.
  bool read(uint64_t size, std::string_view &out) {
    if (left() < size)
      return false;
    out = bytes.substr(at, size);
    at += size;
    return true;
  }
  /// Reads a length and a text; with false, `length` is what was claimed.
  bool readString(std::string_view &out, uint64_t &length) {
    length = 0;
    return read(length) && read(length, out);
  }
  bool readString(std::string_view &out) {
    uint64_t length;
    return readString(out, length);
  }
  /// The bytes from `begin` to the cursor.
  std::string_view since(uint64_t begin) const {
    return bytes.substr(begin, at - begin);
  }

private:
  std::string_view bytes;
  uint64_t at = 0;
};

} // namespace kf

#endif // KF_RUNTIME_IO_GGUFCURSOR_H
