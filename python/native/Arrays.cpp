//===- Arrays.cpp - Tensors as numpy and DLPack have them -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"

#include "Errors.h"
#include "Gil.h"

#include "runtime/core/Exceptions.h"

#include <nanobind/ndarray.h>

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace kf;

using Array = nb::ndarray<nb::ro>;
using Code = nb::dlpack::dtype_code;

namespace {

struct TypeName {
  DataType type;
  Code code;
  uint8_t bits;
};
/// Those that tensors of programs and arrays of others have in common.
constexpr TypeName kTypes[] = {
    {DataType::F64, Code::Float, 64},
    {DataType::F32, Code::Float, 32},
    {DataType::F16, Code::Float, 16},
    {DataType::BF16, Code::Bfloat, 16},
    {DataType::I64, Code::Int, 64},
    {DataType::I32, Code::Int, 32},
    {DataType::I16, Code::Int, 16},
    {DataType::I8, Code::Int, 8},
    {DataType::U8, Code::UInt, 8},
    {DataType::I1, Code::Bool, 8},
    {DataType::F8E4M3, Code::Float8_E4M3FN, 8},
};

std::optional<DataType> findType(nb::dlpack::dtype type) {
  for (const TypeName &known : kTypes)
    if (type.lanes == 1 && type.bits == known.bits &&
        type.code == static_cast<uint8_t>(known.code))
      return known.type;
  return std::nullopt;
}

/// Copies the elements from dimension `dim` on, whose first is at `from`, to
/// `to`, which they leave behind them.
void copyFrom(const Array &array, size_t dim, const std::byte *from,
              std::byte *&to) {
  const size_t bytes = array.itemsize();
  if (dim == array.ndim()) {
    std::memcpy(to, from, bytes);
    to += bytes;
    return;
  }
  const int64_t step = array.stride(dim) * static_cast<int64_t>(bytes);
  for (size_t i = 0; i < array.shape(dim); ++i)
    copyFrom(array, dim + 1, from + static_cast<int64_t>(i) * step, to);
}

bool isDense(const Array &array) {
  int64_t expected = 1;
  for (size_t dim = array.ndim(); dim-- > 0;) {
    if (array.shape(dim) != 1 && array.stride(dim) != expected)
      return false;
    expected *= static_cast<int64_t>(array.shape(dim));
  }
  return true;
}

} // namespace

HostTensor python::tensorOf(nb::handle object, const std::string &name) {
  Array array;
  if (!nb::try_cast<Array>(object, array, /*convert=*/false)) {
    const std::string text = name + " is of type " +
                             nb::type_name(object.type()).c_str() +
                             ", but an array is expected: numpy's, or one that "
                             "has __dlpack__";
    throw nb::type_error(text.c_str());
  }
  if (array.device_type() != nb::device::cpu::value)
    raise(Status::error(name + " is in a device's memory; give it in the "
                               "host's"));
  const std::optional<DataType> type = findType(array.dtype());
  if (!type)
    raise(Status::error(name + " has elements of a type that functions do not "
                               "take; they take f64, f32, f16, bf16, i64, i32, "
                               "i16, i8, ui8, i1 and f8E4M3FN"));
  std::vector<int64_t> shape(array.ndim());
  for (size_t dim = 0; dim < shape.size(); ++dim)
    shape[dim] = static_cast<int64_t>(array.shape(dim));
  HostTensor tensor = valueOf(catchExceptions(
      [&] { return HostTensor::zeros(*type, std::move(shape)); }));
  if (tensor.bytes.empty())
    return tensor;
  const auto *from = static_cast<const std::byte *>(array.data());
  std::byte *to = tensor.bytes.data();
  withoutGil([&] {
    if (isDense(array))
      std::memcpy(to, from, tensor.bytes.size());
    else
      copyFrom(array, 0, from, to);
  });
  return tensor;
}

nb::object python::arrayOf(HostTensor tensor) {
  nb::dlpack::dtype type;
  for (const TypeName &known : kTypes)
    if (known.type == tensor.type)
      type = {static_cast<uint8_t>(known.code), known.bits, 1};
  if (type.lanes == 0)
    raise(Status::error("a result has blocks of " +
                            std::string(nameOf(tensor.type)) +
                            ", which arrays do not have",
                        StatusCode::Unsupported));
  auto held = std::make_unique<HostTensor>(std::move(tensor));
  std::vector<size_t> shape(held->shape.begin(), held->shape.end());
  void *data = held->bytes.data();
  const bool isNumpys =
      held->type != DataType::BF16 && held->type != DataType::F8E4M3;
  const nb::capsule owner(held.get(), [](void *tensor) noexcept {
    delete static_cast<HostTensor *>(tensor);
  });
  [[maybe_unused]] HostTensor *const owned = held.release();
  if (isNumpys)
    return nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(),
                                           owner, nullptr, type));
  return nb::cast(nb::ndarray<nb::array_api>(data, shape.size(), shape.data(),
                                             owner, nullptr, type));
}
