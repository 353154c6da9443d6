//===- GgufWriter.h - Writing GGUF files ------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file is written front to back, its tensors' bytes as they are produced, so
// that no more than a piece of one is in memory. It takes its name when it is
// complete: until then its bytes lie in a temporary file beside it, and what
// had the name before stays.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_GGUFWRITER_H
#define KF_RUNTIME_IO_GGUFWRITER_H

#include "runtime/core/WriteFile.h"
#include "runtime/io/Gguf.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Metadata entries in the order in which they are added. A key that is there
/// already is not added again. One thread.
class GgufMetadata {
public:
  void addU32(std::string_view key, uint32_t value);
  void addI32(std::string_view key, int32_t value);
  void addF32(std::string_view key, float value);
  void addBool(std::string_view key, bool value);
  void addText(std::string_view key, std::string_view value);
  void addTexts(std::string_view key, std::span<const std::string> values);
  void addBools(std::string_view key, const std::vector<bool> &values);
  void addI32s(std::string_view key, std::span<const int32_t> values);
  void addF32s(std::string_view key, std::span<const float> values);
  /// An entry of another file as it is.
  void addCopy(const GgufEntry &entry);

  bool contains(std::string_view key) const { return keys.contains(key); }
  uint64_t size() const { return keys.size(); }
  /// The entries as a file has them.
  std::string_view bytes() const { return encoded; }

private:
  /// Writes the key and the type; false if there is such a key.
  bool begin(std::string_view key, GgufValueType type);
  void beginArray(GgufValueType type, uint64_t count);
  void putText(std::string_view text);

  std::string encoded;
  std::set<std::string, std::less<>> keys;
};

/// A tensor to be written.
struct GgufTensorInfo {
  std::string name;
  std::vector<int64_t> shape; ///< row-major: the innermost size last
  DataType type = DataType::F32;
};

/// One file of version 3 that is being written. One thread.
class GgufWriter {
public:
  /// Starts the file `path` (AtomicFile) with `metadata` and the tensors, whose
  /// bytes follow by append(). Fails if the disk has no room, if there is a
  /// file of that name and not `replace`, or if `path` is no regular file;
  /// errors name it.
  static Result<std::unique_ptr<GgufWriter>>
  create(const std::string &path, const GgufMetadata &metadata,
         std::span<const GgufTensorInfo> tensors, bool replace);
  GgufWriter(const GgufWriter &) = delete;
  GgufWriter &operator=(const GgufWriter &) = delete;

  /// The next bytes of the next tensor that is not complete; not past its end.
  Status append(std::span<const std::byte> bytes);
  /// Gives the file its name, once all tensors are complete and on the disk.
  Status finish();
  /// Bytes of the whole file.
  uint64_t fileBytes() const { return totalBytes; }

private:
  GgufWriter(std::string path, AtomicFile file);
  Status start(const GgufMetadata &metadata,
               std::span<const GgufTensorInfo> tensors);

  std::string name; ///< of the file, for errors
  AtomicFile file;
  std::vector<uint64_t> sizes; ///< of the tensors
  size_t current = 0;          ///< tensor
  uint64_t written = 0;        ///< of its bytes
  uint64_t totalBytes = 0;
};

} // namespace kf

#endif // KF_RUNTIME_IO_GGUFWRITER_H
