//===- MappedFile.h - A file mapped read-only -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_MAPPEDFILE_H
#define KF_RUNTIME_CORE_MAPPEDFILE_H

#include "runtime/core/FileIdentity.h"
#include "runtime/core/ReadFaults.h"
#include "runtime/core/Status.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace kf {

/// A regular file's bytes, mapped read-only and private; owns the mapping.
/// Moving keeps the addresses. Any number of threads may read. Another process
/// that truncates the file while it is mapped makes reads past the new end
/// fault, as with every mapping; see ReadFaults.h.
class MappedFile {
public:
  /// Fails with "cannot open 'x': <reason>" if the file is missing, unreadable
  /// or not a regular file.
  static Result<MappedFile> open(const std::string &path);

  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte *>(data), size};
  }
  std::string_view text() const {
    return {static_cast<const char *>(data), size};
  }
  const std::string &path() const { return name; }
  /// That of the file that was mapped.
  const FileIdentity &identity() const { return id; }

  /// Gives the memory of the whole pages inside `part` of bytes() back to the
  /// system. Reading them again reads the file again.
  void release(std::span<const std::byte> part) const;

private:
  MappedFile() = default;

  void *data = nullptr; ///< null for an empty file
  size_t size = 0;
  std::string name;
  FileIdentity id;
  KnownMapping known;
};

} // namespace kf

#endif // KF_RUNTIME_CORE_MAPPEDFILE_H
