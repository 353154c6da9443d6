//===- OpInputs.cpp - Inputs of the conformance suite ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/conformance/OpInputs.h"

#include "runtime/core/BlockFormat.h"
#include "runtime/core/Float8.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace kf;
using namespace kf::test;

/// Floats in [-1, 1), or as `kind` says; integers of 32 and 64 bits count up
/// from 0, as positions and ids do; those of fewer bits are any.
static HostTensor makeInput(const TensorSpec &spec, const StepSizes &sizes,
                            std::mt19937 &random, const InputKind &kind = {}) {
  HostTensor tensor =
      HostTensor::zeros(spec.type, resolveShape(spec.shape, sizes.scalars))
          .take();
  if (spec.type == DataType::I32) {
    for (int64_t i = 0; i < tensor.elementCount(); ++i)
      tensor.data<int32_t>()[i] = static_cast<int32_t>(i);
    return tensor;
  }
  if (spec.type == DataType::I64) {
    for (int64_t i = 0; i < tensor.elementCount(); ++i)
      tensor.data<int64_t>()[i] = i;
    return tensor;
  }
  if (spec.type == DataType::I1 || spec.type == DataType::I8 ||
      spec.type == DataType::I16) {
    for (std::byte &byte : tensor.bytes)
      byte = std::byte(spec.type == DataType::I1 ? random() & 1 : random());
    return tensor;
  }
  std::vector<float> values(tensor.elementCount());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = !kind.fitsBytes
                    ? static_cast<float>(random() % 4096) / 2048.0f - 1.0f
                : i % 32 == 0 ? 127.0f
                              : static_cast<float>(random() % 255) - 127.0f;
  if (!spec.shape.empty() && spec.shape[0] < 0)
    for (float &value : values)
      value *= kind.scale;
  if (spec.type == DataType::F8E4M3) {
    std::ranges::transform(values, tensor.data<uint8_t>(), floatToE4M3);
    return tensor;
  }
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (kind.special && !values.empty())
    for (float value :
         {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()})
      values[random() % values.size()] = value;
  if (spec.type == DataType::F64) {
    std::ranges::copy(values, tensor.data<double>());
    return tensor;
  }
  EXPECT_TRUE(convertFromFloat(spec.type, values.data(), values.size(),
                               tensor.bytes.data())
                  .ok());
  return tensor;
}

StepSizes kf::test::makeSizes(const Executable &program, int64_t rows) {
  StepSizes sizes(rows);
  for (size_t i = 0; i < program.namedSizes.size(); ++i) {
    const SizeRange &range = program.namedSizes[i];
    sizes.scalars[KF_SCALAR_NAMED_SIZES + i] =
        std::clamp(rows / 2 - static_cast<int64_t>(i), range.least, range.most);
  }
  return sizes;
}

std::vector<HostTensor> kf::test::makeInputs(const Executable &program,
                                             const StepSizes &sizes,
                                             std::mt19937 &random,
                                             const InputKind &kind,
                                             const CacheInputs &cacheInputs) {
  std::vector<HostTensor> inputs;
  for (const TensorSpec &spec : program.inputs) {
    HostTensor input = makeInput(spec, sizes, random, kind);
    auto setRows = [&](const std::set<size_t> &numbers, auto valueOf) {
      if (numbers.contains(inputs.size()))
        for (int64_t row = 0; row < input.elementCount(); ++row)
          input.data<int32_t>()[row] = static_cast<int32_t>(valueOf(row));
    };
    const int64_t sequences = cacheInputs.sequenceCount;
    setRows(cacheInputs.sequences,
            [&](int64_t row) { return row % sequences; });
    setRows(cacheInputs.positions,
            [&](int64_t row) { return row / sequences; });
    setRows(cacheInputs.laterPositions,
            [&](int64_t row) { return 100 + row / sequences; });
    setRows(cacheInputs.slots,
            [&](int64_t row) { return sequences - 1 - row; });
    if (auto it = cacheInputs.experts.find(inputs.size());
        it != cacheInputs.experts.end())
      setRows({inputs.size()}, [&](int64_t row) {
        const auto mixed = static_cast<uint32_t>(row) * 2654435761u >> 16;
        return static_cast<int64_t>(mixed % (it->second + 2)) - 1;
      });
    if (cacheInputs.pageTables.contains(inputs.size())) {
      EXPECT_LE(input.elementCount(), cachePages);
      const int32_t pages[cachePages] = {3, 0, 2, 1};
      std::copy_n(pages, input.elementCount(), input.data<int32_t>());
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

static HostTensor makeBlocks(const WeightSpec &spec, std::mt19937 &random) {
  HostTensor tensor = HostTensor::zeros(spec.type, spec.shape).take();
  for (std::byte &byte : tensor.bytes)
    byte = std::byte(random());
  const BlockFormat &format = *findBlockFormat(spec.type);
  float largest = (1 << format.codeBits()) *
                  (format.subScales == SubScales::None ? 1.0f : 32.0f);
  auto part = [&] {
    return static_cast<float>(random() % 64 + 64) / 128.0f / largest;
  };
  // Of more bits of exponent, all those that products of many leave finite;
  // and those of a byte's borders in some rows: 0, which is the smallest, and
  // 255, which makes NaNs.
  const bool isFar = spec.names.front().starts_with("far");
  const auto blocksOfRow =
      static_cast<size_t>(spec.shape.back() / format.elements);
  for (size_t at = 0; at < tensor.bytes.size(); at += format.bytes) {
    const size_t row = at / format.bytes / blocksOfRow,
                 block = at / format.bytes % blocksOfRow;
    storeScale(format, isFar ? std::ldexp(part(), 110) : part(),
               &tensor.bytes[at]);
    if (isFar && row % 8 == 3 && block % 3 == 1)
      tensor.bytes[at + format.scaleOffset] = std::byte(0);
    if (isFar && row % 24 == 13 && block % 3 == 2)
      tensor.bytes[at + format.scaleOffset] = std::byte(255);
    if (format.minOffset < 0)
      continue;
    const uint16_t min = floatToHalf(part());
    std::memcpy(&tensor.bytes[at + format.minOffset], &min, 2);
  }
  return tensor;
}

RandomWeights::RandomWeights(const Executable &program) {
  std::mt19937 random(11);
  for (WeightSpec spec : program.weights) {
    spec.shape.erase(spec.shape.begin(),
                     spec.shape.begin() +
                         static_cast<int64_t>(spec.stackedDims()));
    for (const std::string &name : spec.names)
      tensors[name] = isBlock(spec.type)
                          ? makeBlocks(spec, random)
                          : makeInput({spec.type, spec.shape}, 1, random);
  }
}

Result<TensorView> RandomWeights::find(const std::string &name) const {
  auto it = tensors.find(name);
  if (it == tensors.end())
    return Status::error("no weight " + name);
  const HostTensor &tensor = it->second;
  return TensorView{tensor.type, tensor.shape, tensor.bytes.data(),
                    tensor.bytes.size()};
}
