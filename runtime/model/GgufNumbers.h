//===- GgufNumbers.h - Numbers of an architecture's metadata ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_GGUFNUMBERS_H
#define KF_RUNTIME_MODEL_GGUFNUMBERS_H

#include "runtime/io/Gguf.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Reads the keys of a file that begin with its architecture's name, which
/// `name` leaves out. A value that is beyond its bounds is an error that names
/// the key, the value, and what is expected.
class GgufNumbers {
public:
  GgufNumbers(const Gguf &gguf, std::string_view architecture)
      : gguf(gguf), architecture(architecture) {}

  /// "llama.block_count" for "block_count".
  std::string keyOf(std::string_view name) const {
    return architecture + "." + std::string(name);
  }
  bool contains(std::string_view name) const {
    return gguf.contains(keyOf(name));
  }
  /// "metadata 'llama.block_count' is 0", for the start of an error.
  std::string valueOf(std::string_view name, const std::string &value) const;

  /// An integer from 1 to `most`; without `fallback` it has to be there.
  Result<int64_t> size(std::string_view name, int64_t most,
                       std::optional<int64_t> fallback = {}) const;
  /// The same, or an array of one such integer for each of `layers`, all equal.
  Result<int64_t> layerSize(std::string_view name, int64_t layers, int64_t most,
                            std::optional<int64_t> fallback = {}) const;
  /// The same, where layers may differ: one for each.
  Result<std::vector<int64_t>>
  layerSizes(std::string_view name, int64_t layers, int64_t most,
             std::optional<int64_t> fallback = {}) const;
  /// The elements of `array`, the value of `name`, true or false (1 or 0) for
  /// each of `layers`.
  Result<std::vector<bool>> layerFlags(std::string_view name,
                                       const GgufValue &array,
                                       int64_t layers) const;
  /// A number from `least` to `most`; `fallback`, which may be another one, is
  /// that of an absent key.
  Result<double> number(std::string_view name, double least, double most,
                        std::optional<double> fallback = {}) const;
  /// A factor, of which 0 and none are `fallback`.
  Result<double> scale(std::string_view name, double fallback) const;
  /// A finite number that is not negative.
  Result<double> notNegative(std::string_view name) const;

private:
  const Gguf &gguf;
  std::string architecture;
};

} // namespace kf

#endif // KF_RUNTIME_MODEL_GGUFNUMBERS_H
