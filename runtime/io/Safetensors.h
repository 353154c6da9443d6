//===- Safetensors.h - Checkpoints in the safetensors format ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A safetensors file is an 8-byte little-endian length, a JSON header of that
// length, and the tensors' bytes. The header says where each tensor lies; every
// one of its claims is checked when the file is opened, so that views handed
// out later need no check.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_SAFETENSORS_H
#define KF_RUNTIME_IO_SAFETENSORS_H

#include "runtime/core/MappedFile.h"
#include "runtime/weights/WeightSource.h"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// One safetensors file, mapped or in memory.
class Safetensors : public WeightSource {
public:
  /// Maps and checks the file at `path`.
  static Result<std::unique_ptr<Safetensors>> open(const std::string &path);
  /// Checks `bytes`, which must outlive the result; `name` appears in errors.
  static Result<std::unique_ptr<Safetensors>>
  fromMemory(std::span<const std::byte> bytes, const std::string &name);

  /// F32, F16, BF16, F8_E4M3, I8 and U8 tensors; one of another type is an
  /// error that names its type.
  Result<TensorView> find(const std::string &name) const override;
  void release(const std::string &name) const override;
  void releasePart(const std::string &name, uint64_t first,
                   uint64_t bytes) const override;
  std::vector<FileIdentity> mappedFiles() const override;
  std::vector<std::string> names() const override;
  bool contains(const std::string &name) const { return tensors.count(name); }
  /// The header's `__metadata__`.
  const std::map<std::string, std::string> &metadata() const { return notes; }

private:
  struct Entry {
    std::string dtype; ///< as the header spells it
    std::vector<int64_t> shape;
    uint64_t begin = 0, end = 0; ///< into `data`
  };

  Safetensors() = default;
  Status parse(std::span<const std::byte> bytes);
  Status parseHeader(std::string_view header);
  Status checkCoverage() const;

  std::string source; ///< the file's name, for errors
  std::optional<MappedFile> file;
  std::span<const std::byte> data; ///< what follows the header
  std::map<std::string, Entry> tensors;
  std::map<std::string, std::string> notes;
};

/// A checkpoint split over several files by a `*.safetensors.index.json`.
class ShardedSafetensors : public WeightSource {
public:
  /// Opens the index and every file that it names (each in the index's
  /// folder); every tensor of the index must be where the index says. Tensors
  /// of these files that the index leaves out are there as well; one that two
  /// files have is an error.
  static Result<std::unique_ptr<ShardedSafetensors>>
  open(const std::string &indexPath);

  Result<TensorView> find(const std::string &name) const override;
  void release(const std::string &name) const override;
  void releasePart(const std::string &name, uint64_t first,
                   uint64_t bytes) const override;
  std::vector<FileIdentity> mappedFiles() const override;
  std::vector<std::string> names() const override;

private:
  ShardedSafetensors() = default;

  std::string source;
  std::map<std::string, std::unique_ptr<Safetensors>> shards; ///< by file name
  std::map<std::string, const Safetensors *> where;           ///< by tensor
};

/// Opens what `path` is: a .safetensors file, a .index.json, or a folder that
/// holds model.safetensors or model.safetensors.index.json. 8-bit tensors are
/// presented as bf16 ones, their scales applied (ScaledWeights,
/// PackedWeights); what takes much more memory so is said in `notes`, a line
/// each, if it is not null.
Result<std::unique_ptr<WeightSource>>
openSafetensors(const std::string &path,
                std::vector<std::string> *notes = nullptr);

} // namespace kf

#endif // KF_RUNTIME_IO_SAFETENSORS_H
