//===- FuzzExecutable.cpp - Any bytes as an executable --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The checksum and the lengths would stop nearly every mutation. An input that
// starts with '{' is the head of a file that is otherwise right; any other is a
// file without its checksum, and gets a right one.
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Executable.h"

#include <zlib.h>

#include <cstdlib>

using namespace kf;

template <typename T> static void append(std::string &out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    out += static_cast<char>(value >> (8 * i));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string input(reinterpret_cast<const char *>(data), size), bytes;
  if (input.starts_with('{')) {
    bytes.assign("KFEXEC\0", 7);
    append<uint8_t>(bytes, Executable::kFileVersion);
    append<uint32_t>(bytes, KF_ABI_VERSION);
    append<uint64_t>(bytes, size);
    bytes += input;
    append<uint64_t>(bytes, 4);
    bytes += "code";
  } else {
    bytes = input;
  }
  append<uint32_t>(bytes, static_cast<uint32_t>(crc32_z(
                              0, reinterpret_cast<const Bytef *>(bytes.data()),
                              bytes.size())));
  auto executable = Executable::deserialize(bytes);
  if (!executable.ok())
    return 0;
  // What is accepted is sound, and survives a round trip.
  if (!executable->verify().ok() ||
      !Executable::deserialize(executable->serialize()).ok())
    std::abort();
  return 0;
}
