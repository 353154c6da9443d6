//===- SafetensorsWriter.h - Writing safetensors files ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file is written front to back, its tensors' bytes as they are produced, and
// takes its name when it is complete (AtomicFile): until then, what had the
// name before stays.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_SAFETENSORSWRITER_H
#define KF_RUNTIME_IO_SAFETENSORSWRITER_H

#include "runtime/core/Tensor.h"
#include "runtime/core/WriteFile.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// A tensor to be written.
struct SafetensorsInfo {
  std::string name;
  std::vector<int64_t> shape; ///< row-major
  DataType type = DataType::F32;
};

/// What the header calls elements of `type` ("F32", "BF16"); empty where
/// Safetensors would not read them.
std::string_view safetensorsType(DataType type);

/// One file that is being written. One thread.
class SafetensorsWriter {
public:
  struct Options {
    /// `__metadata__`.
    std::map<std::string, std::string> metadata = {};
    /// Takes the place of a file of that name; otherwise one is an error.
    bool replace = true;
  };
  /// Starts the file `path` with `tensors`, whose bytes follow by append(), in
  /// this order. Errors name the file or the tensor: a disk without room, a
  /// name that is there twice or is `__metadata__`, an element type that
  /// safetensorsType() lacks, more bytes than a file can have.
  static Result<std::unique_ptr<SafetensorsWriter>>
  create(const std::string &path, std::span<const SafetensorsInfo> tensors,
         const Options &options);
  SafetensorsWriter(const SafetensorsWriter &) = delete;
  SafetensorsWriter &operator=(const SafetensorsWriter &) = delete;

  /// The next bytes, which may be of several tensors; not past the last one's
  /// end.
  Status append(std::span<const std::byte> bytes);
  /// Gives the file its name, once all tensors are complete and on the disk.
  Status finish();

private:
  SafetensorsWriter(std::string path, AtomicFile file)
      : name(std::move(path)), file(std::move(file)) {}
  Status start(std::span<const SafetensorsInfo> tensors,
               const Options &options);

  std::string name; ///< of the file, for errors
  AtomicFile file;
  uint64_t left = 0; ///< bytes of tensors that have not been appended
};

/// Tensors that are in memory, by their names, as one file.
Status writeSafetensors(const std::string &path,
                        const std::map<std::string, HostTensor> &tensors,
                        const SafetensorsWriter::Options &options);

} // namespace kf

#endif // KF_RUNTIME_IO_SAFETENSORSWRITER_H
