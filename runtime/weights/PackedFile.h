//===- PackedFile.h - Packed weights in a file ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A head, which says what the weights are of, where each lies and what its
// bytes sum to, and behind it the weights as kernels read them, from a multiple
// of a huge page on: the file is mapped, not read, and processes share it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_PACKEDFILE_H
#define KF_RUNTIME_WEIGHTS_PACKEDFILE_H

#include "runtime/core/Descriptor.h"
#include "runtime/core/ReadFaults.h"
#include "runtime/core/WriteFile.h"
#include "runtime/weights/WeightPacking.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// A weight in memory, and what it is called.
struct PackedWeight {
  std::string key;
  std::span<const std::byte> bytes;
};

/// Owns the mapping. Any number of threads may read.
class PackedFile {
public:
  /// Bytes of the file that write() makes.
  static uint64_t bytesFor(std::string_view identity, std::string_view model,
                           std::span<const PackedWeight> weights);
  /// Writes `weights`, whose keys differ, in their order, to a new file.
  /// `identity` is all that their bytes depend on, `model` a name for people.
  /// Errors: the file's, packing is cancelled.
  static Status write(AtomicFile &file, std::string_view identity,
                      std::string_view model,
                      std::span<const PackedWeight> weights,
                      const PackOptions &options);

  /// Maps the file of `bytes` bytes that `file` has open at `path`, which says
  /// that it holds what is of `identity`. The sums of those of its bytes are
  /// checked that are not in the system's memory, where damage on the way from
  /// the disk may be; all of them while another process checks them, too.
  /// Errors, which do not name the file: it is another one's, or damaged, cut
  /// off, or cannot be read.
  static Result<std::unique_ptr<PackedFile>>
  open(const Descriptor &file, uint64_t bytes, const std::string &path,
       std::string_view identity, const PackOptions &options);
  /// The name that write() was told.
  static Result<std::string> modelOf(const Descriptor &file, uint64_t bytes);

  PackedFile(const PackedFile &) = delete;
  PackedFile &operator=(const PackedFile &) = delete;
  ~PackedFile();

  /// The weight `key`; empty if there is none.
  std::span<const std::byte> find(const std::string &key) const;

private:
  PackedFile() = default;

  void *mapping = nullptr; ///< what munmap takes
  size_t mappingBytes = 0;
  KnownMapping known;
  std::map<std::string, std::span<const std::byte>> weights; ///< by key
};

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_PACKEDFILE_H
