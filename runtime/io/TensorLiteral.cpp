//===- TensorLiteral.cpp - Tensors written on the command line ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"
#include "runtime/io/Npy.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <unistd.h>

using namespace kf;

namespace {

/// Reads all of `text` as a T. Integers are range-checked by from_chars.
template <typename T> bool parseNumber(std::string_view text, T &out) {
  const char *last = text.data() + text.size();
  if (text.starts_with('+') && !text.starts_with("+-"))
    text.remove_prefix(1);
  auto [end, code] = std::from_chars(text.data(), last, out);
  return code == std::errc() && end == last;
}

template <typename T> bool storeNumber(std::string_view text, std::byte *dst) {
  T value;
  if (!parseNumber(text, value))
    return false;
  std::memcpy(dst, &value, sizeof(T));
  return true;
}

/// Writes the element of `type` that `text` spells to `dst`.
bool storeElement(DataType type, std::string_view text, std::byte *dst) {
  switch (type) {
  case DataType::F32:
    return storeNumber<float>(text, dst);
  case DataType::F64:
    return storeNumber<double>(text, dst);
  case DataType::F16:
  case DataType::BF16: {
    float value;
    if (!parseNumber(text, value))
      return false;
    uint16_t bits =
        type == DataType::F16 ? floatToHalf(value) : floatToBfloat(value);
    std::memcpy(dst, &bits, sizeof(bits));
    return true;
  }
  case DataType::I1: {
    bool value = text == "1" || text == "true";
    if (!value && text != "0" && text != "false")
      return false;
    *dst = std::byte(value);
    return true;
  }
  case DataType::I8:
    return storeNumber<int8_t>(text, dst);
  case DataType::U8:
    return storeNumber<uint8_t>(text, dst);
  case DataType::I16:
    return storeNumber<int16_t>(text, dst);
  case DataType::I32:
    return storeNumber<int32_t>(text, dst);
  case DataType::I64:
    return storeNumber<int64_t>(text, dst);
  default:
    return false; // no literal has such a type
  }
  return false;
}

/// Reads `2x3xf32` into a tensor of zeros.
Result<HostTensor> parseTensorType(std::string_view text) {
  std::vector<int64_t> shape;
  for (size_t x; (x = text.find('x')) != std::string_view::npos;) {
    int64_t dim;
    if (!parseNumber(text.substr(0, x), dim) || dim < 0)
      return Status::error("dimension " + inQuotes(text.substr(0, x)) +
                           " is not a number of elements");
    shape.push_back(dim);
    text.remove_prefix(x + 1);
  }
  KF_ASSIGN_OR_RETURN(DataType type, parseDataType(text));
  if (isBlock(type) || type == DataType::F8E4M3)
    return Status::error("elements of type " + std::string(nameOf(type)) +
                         " are those of weights alone, which come from a file "
                         "by a kf.weight");
  KF_ASSIGN_OR_RETURN(int64_t count, checkedByteCount(type, shape));
  // A few characters can ask for any amount of memory.
  uint64_t bytes = uint64_t(count);
  uint64_t machine =
      uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  if (bytes > machine)
    return Status::error("a tensor of " + std::to_string(bytes) +
                         " bytes exceeds this machine's memory");
  return HostTensor::zeros(type, std::move(shape));
}

/// Calls `use(word)` for every word of `values` between commas, spaces and
/// brackets, which must be balanced; stops when it returns an error.
template <typename Use> Status forEachValue(std::string_view values, Use use) {
  constexpr std::string_view separators = ", \t\r\n[]";
  int64_t depth = 0;
  for (size_t i = 0; i < values.size();) {
    size_t end = values.find_first_of(separators, i);
    if (end == i) {
      depth += values[i] == '[' ? 1 : values[i] == ']' ? -1 : 0;
      if (depth < 0)
        return Status::error("']' without '['");
      ++i;
      continue;
    }
    end = std::min(end, values.size());
    KF_RETURN_IF_ERROR(use(values.substr(i, end - i)));
    i = end;
  }
  return depth == 0 ? Status() : Status::error("'[' without ']'");
}

Status fillFromValues(HostTensor &tensor, std::string_view values) {
  size_t elementSize = sizeOf(tensor.type);
  int64_t count = tensor.elementCount(), given = 0;
  std::byte single[8] = {}; // the first value; alone, it fills the tensor
  KF_RETURN_IF_ERROR(forEachValue(values, [&](std::string_view word) {
    std::byte value[8];
    if (!storeElement(tensor.type, word, value))
      return Status::error(inQuotes(word) + " is not a value of type " +
                           std::string(nameOf(tensor.type)));
    if (given == 0)
      std::memcpy(single, value, elementSize);
    if (given < count)
      std::memcpy(tensor.bytes.data() + given * elementSize, value,
                  elementSize);
    ++given;
    return Status();
  }));
  if (given == 1) {
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(tensor.bytes.data() + i * elementSize, single, elementSize);
    return Status();
  }
  if (given != count)
    return Status::error(std::to_string(given) + " values for a tensor of " +
                         std::to_string(count));
  return Status();
}

Status fillFromFile(HostTensor &tensor, const std::string &path) {
  static_assert(std::endian::native == std::endian::little,
                "raw files hold little-endian elements");
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  if (file.bytes().size() != tensor.bytes.size())
    return Status::error(
        inQuotes(path) + " has " + std::to_string(file.bytes().size()) +
        " bytes, the tensor " + std::to_string(tensor.bytes.size()));
  if (!tensor.bytes.empty())
    std::memcpy(tensor.bytes.data(), file.bytes().data(), tensor.bytes.size());
  return Status();
}

Result<HostTensor> parseLiteral(std::string_view text) {
  if (text.starts_with('@'))
    return readNpy(std::string(text.substr(1)));
  size_t equals = text.find('=');
  KF_ASSIGN_OR_RETURN(HostTensor tensor,
                      parseTensorType(text.substr(0, equals)));
  if (equals == std::string_view::npos)
    return tensor;
  std::string_view values = text.substr(equals + 1);
  KF_RETURN_IF_ERROR(values.starts_with('@')
                         ? fillFromFile(tensor, std::string(values.substr(1)))
                         : fillFromValues(tensor, values));
  return tensor;
}

} // namespace

Result<HostTensor> kf::parseTensorLiteral(std::string_view text) {
  Result<HostTensor> tensor = parseLiteral(text);
  if (!tensor.ok())
    return tensor.status().in("tensor " + inQuotes(text));
  return tensor;
}
