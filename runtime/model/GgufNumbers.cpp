//===- GgufNumbers.cpp - Numbers of an architecture's metadata ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/GgufNumbers.h"

#include "runtime/core/Quote.h"

#include <algorithm>
#include <cmath>

using namespace kf;

std::string GgufNumbers::valueOf(std::string_view name,
                                 const std::string &value) const {
  return "metadata " + inQuotes(keyOf(name)) + " is " + value;
}

Result<int64_t> GgufNumbers::size(std::string_view name, int64_t most,
                                  std::optional<int64_t> fallback) const {
  std::optional<uint64_t> otherwise;
  if (fallback)
    otherwise = static_cast<uint64_t>(*fallback);
  KF_ASSIGN_OR_RETURN(uint64_t value, gguf.getUnsigned(keyOf(name), otherwise));
  if (value < 1 || value > static_cast<uint64_t>(most))
    return Status::error(valueOf(name, std::to_string(value)) +
                         ", but a number from 1 to " + std::to_string(most) +
                         " is expected");
  return static_cast<int64_t>(value);
}

Result<std::vector<int64_t>>
GgufNumbers::layerSizes(std::string_view name, int64_t layers, int64_t most,
                        std::optional<int64_t> fallback) const {
  const GgufValue *value = gguf.lookUp(keyOf(name));
  if (!value || value->type() != GgufValueType::Array) {
    KF_ASSIGN_OR_RETURN(const int64_t one, size(name, most, fallback));
    return std::vector<int64_t>(static_cast<size_t>(layers), one);
  }
  KF_ASSIGN_OR_RETURN(std::vector<int64_t> values,
                      gguf.getIntegers(keyOf(name)));
  if (values.size() != static_cast<size_t>(layers))
    return Status::error(
        valueOf(name, "an array of " + std::to_string(values.size())) +
        " numbers for " + std::to_string(layers) + " layers");
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] < 1 || values[i] > most)
      return Status::error(valueOf(name, std::to_string(values[i])) +
                           " in layer " + std::to_string(i) +
                           ", but a number from 1 to " + std::to_string(most) +
                           " is expected");
  return values;
}

Result<int64_t> GgufNumbers::layerSize(std::string_view name, int64_t layers,
                                       int64_t most,
                                       std::optional<int64_t> fallback) const {
  KF_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                      layerSizes(name, layers, most, fallback));
  auto other = std::ranges::find_if(
      values, [&](int64_t v) { return v != values.front(); });
  if (other != values.end())
    return Status::error(
        "metadata " + inQuotes(keyOf(name)) + " differs between layers (" +
            std::to_string(values.front()) + " and " + std::to_string(*other) +
            "), which is not supported",
        StatusCode::Unsupported);
  return values.front();
}

Result<std::vector<bool>> GgufNumbers::layerFlags(std::string_view name,
                                                  const GgufValue &array,
                                                  int64_t layers) const {
  if (array.size() != static_cast<uint64_t>(layers))
    return Status::error(
        valueOf(name, "an array of " + std::to_string(array.size())) +
        " values for " + std::to_string(layers) + " layers");
  std::vector<bool> flags;
  for (const GgufValue &value : array.elements(array.size())) {
    std::optional<int64_t> flag = value.toSigned();
    if (std::optional<bool> truth = value.toBool())
      flag = *truth ? 1 : 0;
    if (flag != 0 && flag != 1)
      return Status::error(
          valueOf(name,
                  "an array of " + std::string(nameOf(array.elementType()))) +
          " with another value for layer " + std::to_string(flags.size()) +
          " than true or false");
    flags.push_back(flag == 1);
  }
  return flags;
}

Result<double> GgufNumbers::number(std::string_view name, double least,
                                   double most,
                                   std::optional<double> fallback) const {
  KF_ASSIGN_OR_RETURN(double value, gguf.getFloat(keyOf(name), fallback));
  if (value == fallback || (value >= least && value <= most))
    return value;
  return Status::error(valueOf(name, spellNumber(value)) +
                       ", but a number from " + spellNumber(least) + " to " +
                       spellNumber(most) + " is expected");
}

Result<double> GgufNumbers::scale(std::string_view name,
                                  double fallback) const {
  KF_ASSIGN_OR_RETURN(double value, gguf.getFloat(keyOf(name), 0));
  if (value == 0)
    return fallback;
  if (value > 0 && std::isnormal(static_cast<float>(value)))
    return value;
  return Status::error(valueOf(name, spellNumber(value)) +
                       ", but a positive number is expected");
}

Result<double> GgufNumbers::notNegative(std::string_view name) const {
  KF_ASSIGN_OR_RETURN(double value, gguf.getFloat(keyOf(name)));
  if (!std::isfinite(value) || value < 0)
    return Status::error(
        valueOf(name, spellNumber(value)) +
        ", but a finite number that is not negative is expected");
  return value;
}
