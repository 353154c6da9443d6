//===- ByteCount.h - Numbers of bytes as people write them ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_BYTECOUNT_H
#define KF_RUNTIME_CORE_BYTECOUNT_H

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kf {

/// Reads "512", "500M" or "2G": a number of bytes, or of KiB, MiB or GiB.
/// Nothing for any other text.
inline std::optional<uint64_t> parseByteCount(std::string_view text) {
  uint64_t number = 0;
  auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, text.data() + text.size());
  const size_t scale = std::string_view("KMG").find(unit) + 1;
  const int shift = unit.empty() ? 0 : static_cast<int>(10 * scale);
  if (code != std::errc() || unit.size() > 1 || scale == 0 ||
      number > UINT64_MAX >> shift)
    return std::nullopt;
  return number << shift;
}

/// What parseByteCount reads, for errors.
inline constexpr std::string_view kByteCountText =
    "a number of bytes, with K, M or G behind it for KiB, MiB or GiB";

} // namespace kf

#endif // KF_RUNTIME_CORE_BYTECOUNT_H
