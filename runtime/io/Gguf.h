//===- Gguf.h - Checkpoints in the GGUF format ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A GGUF file holds metadata (the model's sizes, its tokenizer, its chat
// template) and tensors; GgufFormat.h has the layout. Every length, count,
// type and offset is checked when the file is opened, so that what is handed
// out later needs no check. Opening allocates a small multiple of what the
// entries take in the file, and copies no value.
//
// A large model may be split (llama-gguf-split): NAME-00001-of-00003.gguf has
// the metadata, and tensors lie in it and in the files of the other numbers,
// each with metadata that says which it is. Opening the first opens all.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_GGUF_H
#define KF_RUNTIME_IO_GGUF_H

#include "runtime/core/MappedFile.h"
#include "runtime/io/GgufFormat.h"
#include "runtime/weights/WeightSource.h"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// A metadata value, as it lies in the file; valid as long as the Gguf.
class GgufValue {
public:
  GgufValueType type() const { return kind; }
  /// The type of an array's elements, and their number.
  GgufValueType elementType() const { return elementKind; }
  uint64_t size() const { return count; }

  /// An integer type's value if it is in the range; nothing otherwise.
  std::optional<uint64_t> toUnsigned() const;
  std::optional<int64_t> toSigned() const;
  /// The value of an f32 or f64.
  std::optional<double> toFloat() const;
  std::optional<bool> toBool() const;
  std::optional<std::string_view> toString() const;
  /// The value as the file has it; without a string's or array's length.
  std::string_view bytes() const { return payload; }
  /// The first elements of an array, at most `limit`.
  std::vector<GgufValue> elements(uint64_t limit) const;
  /// All elements of an array of that type; nothing for other values.
  std::optional<std::vector<std::string_view>> toStrings() const;
  std::optional<std::vector<int64_t>> toIntegers() const; ///< that fit in i64
  std::optional<std::vector<float>> toFloats() const;     ///< f32 only

private:
  friend class GgufParser;

  GgufValueType kind = GgufValueType::U8;
  GgufValueType elementKind = GgufValueType::U8;
  uint64_t count = 0; ///< of an array
  /// The bytes of a number, the text of a string, the elements of an array.
  std::string_view payload;
};

struct GgufEntry {
  std::string_view key;
  GgufValue value;
};

struct GgufTensor {
  std::string_view name;
  std::vector<int64_t> shape; ///< row-major: the innermost size last
  uint32_t typeNumber = 0;
  const GgmlType *type = nullptr; ///< null: ggml has no such type
  uint64_t offset = 0;            ///< into the data
  uint64_t bytes = 0;             ///< 0 without a type
  size_t file = 0;                ///< which of the model's has it

  /// ggml's name of the type, or "type <number>".
  std::string typeName() const;
};

/// A GGUF file of version 2 or 3, little-endian, mapped or in memory, or all
/// the files of a model that is split, mapped. Any number of threads may call
/// the const functions at once.
class Gguf : public WeightSource {
public:
  /// Maps and checks the file at `path` and, where it is the first of a model
  /// that is split, the others. Errors begin with the path of a file: it is
  /// none, is broken, is another one than the first, or does not belong to the
  /// first.
  static Result<std::unique_ptr<Gguf>> open(const std::string &path);
  /// The same, or null where the file at `path` does not begin as GGUF does.
  static Result<std::unique_ptr<Gguf>> openIfGguf(const std::string &path);
  /// Checks `bytes`, which must outlive the result; errors begin with `name`. A
  /// file of a model that is split stands for itself.
  static Result<std::unique_ptr<Gguf>> parse(std::span<const std::byte> bytes,
                                             std::string name);
  /// Whether `bytes` begin as a GGUF file does.
  static bool recognize(std::span<const std::byte> bytes);

  /// The file's name, the first's of several, for errors.
  const std::string &source() const { return name; }
  /// The files: this one first.
  std::vector<const Gguf *> files() const;
  uint32_t version() const { return formatVersion; }
  uint64_t alignment() const { return align; }
  /// Bytes of the whole file, without others of the model.
  uint64_t fileBytes() const { return image.size(); }

  /// Metadata in the file's order; those of other files are not among them.
  const std::vector<GgufEntry> &metadata() const { return entries; }
  bool contains(std::string_view key) const { return lookUp(key) != nullptr; }
  /// The value of `key`; null if there is none.
  const GgufValue *lookUp(std::string_view key) const;

  // Values by key and type. An error names the file, the key, and what the
  // value is: "metadata 'llama.block_count' is a string where an unsigned
  // integer is expected". Any integer type will do for getUnsigned, f32 and
  // f64 for getFloat. Without `fallback` an absent key is an error.
  Result<uint64_t> getUnsigned(std::string_view key,
                               std::optional<uint64_t> fallback = {}) const;
  Result<double> getFloat(std::string_view key,
                          std::optional<double> fallback = {}) const;
  Result<bool> getBool(std::string_view key,
                       std::optional<bool> fallback = {}) const;
  Result<std::string_view>
  getString(std::string_view key,
            std::optional<std::string_view> fallback = {}) const;
  // Arrays: texts are views into the file; integers are of any type that fits;
  // floats are f32.
  Result<std::vector<std::string_view>> getStrings(std::string_view key) const;
  Result<std::vector<int64_t>> getIntegers(std::string_view key) const;
  Result<std::vector<float>> getFloats(std::string_view key) const;

  // The same, with nothing for an absent key.
  Result<std::optional<uint64_t>> findUnsigned(std::string_view key) const;
  Result<std::optional<double>> findFloat(std::string_view key) const;
  Result<std::optional<bool>> findBool(std::string_view key) const;
  Result<std::optional<std::string_view>>
  findString(std::string_view key) const;

  /// Tensors in the file's order, in which their data lie, too; behind its own,
  /// those of the other files.
  const std::vector<GgufTensor> &tensors() const { return infos; }
  std::span<const GgufTensor> ownTensors() const {
    return std::span(infos).first(own);
  }
  /// What follows the last of its own tensors and the padding; nothing where
  /// that one's type does not say where it ends.
  std::span<const std::byte> rest() const { return behind; }
  /// The tensor of that name; null if there is none.
  const GgufTensor *lookUpTensor(std::string_view tensor) const;

  /// Shapes are row-major, [out, in] for matrices. A tensor whose type the
  /// runtime cannot read is an error that names the type.
  Result<TensorView> find(const std::string &tensor) const override;
  /// The tensor's bytes, whether the runtime can read its type or not; none
  /// where there is no such tensor.
  std::span<const std::byte> bytesOf(const std::string &tensor) const;
  void release(const std::string &tensor) const override;
  void releasePart(const std::string &tensor, uint64_t first,
                   uint64_t bytes) const override;
  std::vector<FileIdentity> mappedFiles() const override;
  std::vector<std::string> names() const override;

private:
  friend class GgufParser;
  friend class GgufJoiner;
  Gguf() = default;
  static Result<std::unique_ptr<Gguf>> openMapped(MappedFile mapped);

  /// The value of `key` as `convert` reads it; nothing without the key.
  template <typename T, typename Convert>
  Result<std::optional<T>> findAs(std::string_view key, const char *expected,
                                  Convert convert) const;
  template <typename T>
  Result<T> orFallback(std::string_view key, Result<std::optional<T>> found,
                       std::optional<T> fallback) const;

  std::string name;
  std::optional<MappedFile> file;
  std::span<const std::byte> image; ///< the whole file
  std::span<const std::byte> data;  ///< what tensors' offsets count from
  std::span<const std::byte> behind;
  uint32_t formatVersion = 0;
  uint64_t align = kGgufDefaultAlignment;
  std::vector<GgufEntry> entries;
  std::vector<GgufTensor> infos;
  size_t own = 0; ///< tensors
  std::vector<std::unique_ptr<Gguf>> others;
  /// Ordered: no choice of names makes lookups slow.
  std::map<std::string_view, size_t> entryIndex, tensorIndex;
};

} // namespace kf

#endif // KF_RUNTIME_IO_GGUF_H
