//===- Npy.cpp - NumPy files ----------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Npy.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"
#include "runtime/core/WriteFile.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <optional>

using namespace kf;

namespace {

struct NpyType {
  std::string_view descr; ///< NumPy's spelling
  DataType type;
};

constexpr NpyType kNpyTypes[] = {
    {"<f2", DataType::F16}, {"<f4", DataType::F32}, {"<f8", DataType::F64},
    {"|i1", DataType::I8},  {"<i2", DataType::I16}, {"<i4", DataType::I32},
    {"<i8", DataType::I64}, {"|u1", DataType::U8},  {"|b1", DataType::I1},
};

/// The header's Python dictionary.
struct NpyHeader {
  std::optional<std::string> descr;
  std::optional<bool> fortranOrder;
  std::optional<std::vector<int64_t>> shape;
};

/// Parses the one form of Python dictionary that the format allows:
/// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 8), }
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : rest(text) {}

  Result<NpyHeader> parse() {
    NpyHeader header;
    if (!take('{'))
      return malformed();
    while (!take('}')) {
      std::string_view key;
      if (!takeString(key) || !take(':'))
        return malformed();
      if (key == "descr" && !header.descr) {
        std::string_view descr;
        if (!takeString(descr))
          return Status::error(
              "structured element types are not supported; save one field");
        header.descr = std::string(descr);
      } else if (key == "fortran_order" && !header.fortranOrder) {
        if (takeWord("True"))
          header.fortranOrder = true;
        else if (takeWord("False"))
          header.fortranOrder = false;
        else
          return malformed();
      } else if (key == "shape" && !header.shape) {
        header.shape.emplace();
        if (!takeShape(*header.shape))
          return malformed();
      } else {
        return malformed();
      }
      if (!take(',')) {
        if (!take('}'))
          return malformed();
        break;
      }
    }
    skipSpace();
    if (!rest.empty() || !header.descr || !header.fortranOrder || !header.shape)
      return malformed();
    return header;
  }

private:
  static Status malformed() {
    return Status::error("malformed .npy header: expected {'descr': ..., "
                         "'fortran_order': ..., 'shape': (...)}");
  }

  void skipSpace() {
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\n' ||
                             rest.front() == '\t'))
      rest.remove_prefix(1);
  }

  bool take(char c) {
    skipSpace();
    if (rest.empty() || rest.front() != c)
      return false;
    rest.remove_prefix(1);
    return true;
  }

  bool takeWord(std::string_view word) {
    skipSpace();
    if (!rest.starts_with(word))
      return false;
    rest.remove_prefix(word.size());
    return true;
  }

  bool takeString(std::string_view &out) {
    skipSpace();
    if (rest.empty() || (rest.front() != '\'' && rest.front() != '"'))
      return false;
    size_t end = rest.find(rest.front(), 1);
    if (end == std::string_view::npos)
      return false;
    out = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    return true;
  }

  bool takeShape(std::vector<int64_t> &shape) {
    if (!take('('))
      return false;
    while (!take(')')) {
      skipSpace();
      int64_t dim;
      auto [end, code] =
          std::from_chars(rest.data(), rest.data() + rest.size(), dim);
      if (code != std::errc() || dim < 0)
        return false;
      shape.push_back(dim);
      rest.remove_prefix(end - rest.data());
      if (!take(','))
        return take(')');
    }
    return true;
  }

  std::string_view rest;
};

} // namespace

Result<HostTensor> kf::parseNpy(std::span<const std::byte> bytes) try {
  std::string_view text(reinterpret_cast<const char *>(bytes.data()),
                        bytes.size());
  if (text.size() < 10 || !text.starts_with("\x93NUMPY"))
    return Status::error("not a .npy file");
  auto byteAt = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  unsigned version = byteAt(6);
  if (version < 1 || version > 3)
    return Status::error(".npy format " + std::to_string(version) +
                         " is not supported (1, 2 and 3 are)");
  size_t start = version == 1 ? 10 : 12;
  if (text.size() < start)
    return Status::error("truncated .npy header");
  uint64_t length = byteAt(8) | byteAt(9) << 8;
  if (version != 1)
    length |= uint64_t(byteAt(10)) << 16 | uint64_t(byteAt(11)) << 24;
  if (length > text.size() - start)
    return Status::error("truncated .npy header");

  KF_ASSIGN_OR_RETURN(NpyHeader header,
                      HeaderParser(text.substr(start, length)).parse());
  auto known = std::find_if(
      std::begin(kNpyTypes), std::end(kNpyTypes), [&](const NpyType &type) {
        // One-byte types have no byte order; NumPy reads any mark for them.
        return type.descr == *header.descr ||
               (type.descr[0] == '|' &&
                "<" + std::string(type.descr.substr(1)) == *header.descr);
      });
  if (known == std::end(kNpyTypes))
    return Status::error("element type " + inQuotes(*header.descr) +
                         " is not supported; save as little-endian f2, f4, "
                         "f8, i1, i2, i4, i8, u1 or b1");
  if (*header.fortranOrder && header.shape->size() > 1)
    return Status::error("Fortran order is not supported; save "
                         "numpy.ascontiguousarray(x)");

  size_t elementSize = sizeOf(known->type);
  KF_ASSIGN_OR_RETURN(int64_t count,
                      checkedElementCount(*header.shape, elementSize));
  std::string_view payload = text.substr(start + length);
  if (payload.size() != static_cast<uint64_t>(count) * elementSize)
    return Status::error(
        "the shape needs " + std::to_string(uint64_t(count) * elementSize) +
        " bytes of elements, the file has " + std::to_string(payload.size()));
  if (known->type == DataType::I1 &&
      std::any_of(payload.begin(), payload.end(),
                  [](char c) { return c != 0 && c != 1; }))
    return Status::error("a b1 element is neither 0 nor 1");

  KF_ASSIGN_OR_RETURN(HostTensor tensor,
                      HostTensor::zeros(known->type, *header.shape));
  if (!payload.empty())
    std::memcpy(tensor.bytes.data(), payload.data(), payload.size());
  return tensor;
} catch (...) {
  return statusOfException();
}

Result<HostTensor> kf::readNpy(const std::string &path) try {
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  Result<HostTensor> tensor = parseNpy(file.bytes());
  if (!tensor.ok())
    return tensor.status().in(path);
  return tensor;
} catch (...) {
  return statusOfException();
}

Result<std::string> kf::formatNpy(const HostTensor &tensor) try {
  auto known = std::find_if(
      std::begin(kNpyTypes), std::end(kNpyTypes),
      [&](const NpyType &type) { return type.type == tensor.type; });
  if (known == std::end(kNpyTypes))
    return Status::error("a .npy file cannot hold " +
                         std::string(nameOf(tensor.type)) +
                         " elements; convert them to f32");
  std::string dict = "{'descr': '" + std::string(known->descr) +
                     "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    dict += (i == 0 ? "" : ", ") + std::to_string(tensor.shape[i]);
  dict += tensor.shape.size() == 1 ? ",), }" : "), }";
  // The elements start at a multiple of 64 bytes; the header ends in newline.
  constexpr size_t prefix = 10, alignment = 64;
  dict.append(alignment - 1 - (prefix + dict.size()) % alignment, ' ');
  dict += '\n';
  if (dict.size() > UINT16_MAX)
    return Status::error("a shape of " + std::to_string(tensor.shape.size()) +
                         " dimensions does not fit a .npy header");

  std::string result("\x93NUMPY\x01\x00", 8);
  result += static_cast<char>(dict.size() & 0xff);
  result += static_cast<char>(dict.size() >> 8);
  result += dict;
  result.append(reinterpret_cast<const char *>(tensor.bytes.data()),
                tensor.bytes.size());
  return result;
} catch (...) {
  return statusOfException();
}

Status kf::writeNpy(const std::string &path, const HostTensor &tensor) try {
  KF_ASSIGN_OR_RETURN(std::string bytes, formatNpy(tensor));
  return writeFile(path, bytes);
} catch (...) {
  return statusOfException();
}
