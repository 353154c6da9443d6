//===- Sha256.h - SHA-256 and keyed digests ---------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_SHA256_H
#define KF_RUNTIME_CORE_SHA256_H

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace kf {

using Digest = std::array<uint8_t, 32>;

/// SHA-256 of `bytes` (FIPS 180-4).
Digest sha256(std::string_view bytes);

/// HMAC of `message` with SHA-256 (RFC 2104): who has no `key` cannot make it.
Digest hmacSha256(std::string_view key, std::string_view message);

/// Whether two digests are equal, in a time that does not tell where they
/// differ.
bool areEqual(const Digest &a, const Digest &b);

/// The digest as 64 hexadecimal digits.
std::string hexText(const Digest &digest);

/// The digest's bytes, as text that may have any.
inline std::string_view bytesOf(const Digest &digest) {
  return {reinterpret_cast<const char *>(digest.data()), digest.size()};
}

} // namespace kf

#endif // KF_RUNTIME_CORE_SHA256_H
