//===- LinearTensors.cpp - Linear attention in GGUF files -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/LinearTensors.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/core/ShapeText.h"

#include <cmath>
#include <cstring>

using namespace kf;

/// log(-r).
struct LinearTensors::Decay : Tensor {
  Status make(const WeightSource &source, const std::string &name,
              std::byte *dst) const override {
    KF_ASSIGN_OR_RETURN(const TensorView rates, source.find(name));
    const auto *from = static_cast<const std::byte *>(rates.data);
    for (int64_t i = 0; i < shape.front(); ++i) {
      float rate;
      std::memcpy(&rate, from + i * sizeof(float), sizeof(float));
      if (!std::isfinite(rate) || !(rate < 0))
        return Status::error("tensor " + inQuotes(name) + " has " +
                             spellNumber(rate) +
                             ", but finite numbers below 0 are expected");
      const float logarithm = std::log(-rate);
      std::memcpy(dst + i * sizeof(float), &logarithm, sizeof(float));
    }
    return Status();
  }
};

/// Its shape is [rows, 1, taps].
struct LinearTensors::Convolution : Tensor {
  std::vector<Rows> parts;

  Status make(const WeightSource &source, const std::string &name,
              std::byte *dst) const override {
    KF_ASSIGN_OR_RETURN(const TensorView whole, source.find(name));
    const auto *from = static_cast<const std::byte *>(whole.data);
    const size_t rowBytes =
        static_cast<size_t>(shape.back()) * sizeOf(whole.type);
    for (const Rows &part : parts) {
      const size_t size = static_cast<size_t>(part.rows) * rowBytes;
      for (int64_t i = 0; i < part.times; ++i, dst += size)
        std::memcpy(dst, from, size);
      from += size;
    }
    return Status();
  }
};

LinearTensors::LinearTensors(std::unique_ptr<WeightSource> source)
    : MadeWeights(std::move(source)) {}
LinearTensors::~LinearTensors() = default;

static Status wrongTensor(const std::string &name, const TensorView &view,
                          const std::vector<int64_t> &shape,
                          const std::string &type) {
  return Status::error("checkpoint tensor " + inQuotes(name) + " has shape " +
                       shapeText(view.shape) + " of " +
                       std::string(nameOf(view.type)) + ", but " +
                       shapeText(shape) + " of " + type + " is expected");
}

Status LinearTensors::addDecay(const std::string &name, int64_t heads) try {
  KF_ASSIGN_OR_RETURN(const TensorView view, source->describe(name));
  if (view.type != DataType::F32 || view.shape != std::vector<int64_t>{heads})
    return wrongTensor(name, view, {heads}, "f32");
  auto decay = std::make_unique<Decay>();
  decay->type = view.type;
  decay->shape = view.shape;
  decay->bytes = view.bytes;
  made[name] = std::move(decay);
  return Status();
} catch (...) {
  return statusOfException();
}

Status LinearTensors::addConvolution(const std::string &name,
                                     const std::vector<Rows> &parts,
                                     int64_t taps) try {
  int64_t rows = 0, shown = 0;
  for (const Rows &part : parts) {
    rows += part.rows;
    shown += part.rows * part.times;
  }
  KF_ASSIGN_OR_RETURN(const TensorView view, source->describe(name));
  if (!isFloat(view.type) || view.shape != std::vector<int64_t>{rows, taps})
    return wrongTensor(name, view, {rows, taps}, "f32, f16 or bf16");
  auto convolution = std::make_unique<Convolution>();
  convolution->parts = parts;
  convolution->type = view.type;
  convolution->shape = {shown, 1, taps};
  KF_ASSIGN_OR_RETURN(const int64_t bytes,
                      checkedByteCount(view.type, convolution->shape));
  convolution->bytes = static_cast<uint64_t>(bytes);
  made[name] = std::move(convolution);
  return Status();
} catch (...) {
  return statusOfException();
}
