//===- ElementwiseOps.cpp - Norms, activations, arithmetic ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceOps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace kf::reference {
namespace {

/// x [..., D] of floats with D > 0.
Status checkRows(const char *op, const TensorView &x) {
  if (x.rank() < 1 || x.columns() < 1 || !isFloat(x.type))
    return Status::error(std::string(op) + " C1: x is " +
                         describe(x.type, x.shape) +
                         ", not rows of one or more float elements");
  return Status();
}

/// A vector of floats over the last dimension of x.
Status checkVector(const char *op, const char *what, const TensorView &vector,
                   const TensorView &x) {
  if (vector.rank() != 1 || vector.columns() != x.columns() ||
      !isFloat(vector.type))
    return Status::error(std::string(op) + " C2: " + what + " is " +
                         describe(vector.type, vector.shape) + " for an x of " +
                         describe(x.type, x.shape));
  return Status();
}

Status checkFloat(const char *op, const TensorView &x) {
  if (!isFloat(x.type))
    return Status::error(std::string(op) + " C1: x is " +
                         describe(x.type, x.shape) +
                         "; float elements are expected");
  return Status();
}

} // namespace

Result<Tensor> rmsNorm(const TensorView &x, const TensorView &weight, float eps,
                       bool zeroCentered) {
  KF_RETURN_IF_ERROR(checkRows("kf.rms_norm", x));
  KF_RETURN_IF_ERROR(checkVector("kf.rms_norm", "weight", weight, x));
  KF_ASSIGN_OR_RETURN(std::vector<float> scale, widen(weight)); // [D]
  if (zeroCentered)
    for (float &factor : scale)
      factor += 1;
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, x.shape));
  int64_t columns = x.columns();
  widen(x, 0, x.count(), result.floats());
  for (int64_t row = 0; row < x.rows(); ++row) {
    float *values = result.floats() + row * columns; // [D]
    double squares = 0;
    for (int64_t i = 0; i < columns; ++i)
      squares += static_cast<double>(values[i]) * values[i];
    double root = std::sqrt(squares / static_cast<double>(columns) + eps);
    for (int64_t i = 0; i < columns; ++i)
      values[i] = static_cast<float>(values[i] / root) * scale[i];
  }
  return result;
}

Result<Tensor> layerNorm(const TensorView &x, const TensorView &weight,
                         const TensorView *bias, float eps) {
  KF_RETURN_IF_ERROR(checkRows("kf.layer_norm", x));
  KF_RETURN_IF_ERROR(checkVector("kf.layer_norm", "weight", weight, x));
  KF_ASSIGN_OR_RETURN(std::vector<float> scale, widen(weight)); // [D]
  std::vector<float> shift(scale.size());                       // [D]
  if (bias) {
    KF_RETURN_IF_ERROR(checkVector("kf.layer_norm", "bias", *bias, x));
    widen(*bias, 0, bias->count(), shift.data());
  }
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, x.shape));
  int64_t columns = x.columns();
  widen(x, 0, x.count(), result.floats());
  for (int64_t row = 0; row < x.rows(); ++row) {
    float *values = result.floats() + row * columns; // [D]
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < columns; ++i)
      mean += values[i];
    mean /= static_cast<double>(columns);
    for (int64_t i = 0; i < columns; ++i)
      variance += (values[i] - mean) * (values[i] - mean);
    double root = std::sqrt(variance / static_cast<double>(columns) + eps);
    for (int64_t i = 0; i < columns; ++i)
      values[i] =
          static_cast<float>((values[i] - mean) / root) * scale[i] + shift[i];
  }
  return result;
}

Result<Tensor> softmax(const TensorView &x) {
  KF_RETURN_IF_ERROR(checkRows("kf.softmax", x));
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, x.shape));
  int64_t columns = x.columns();
  widen(x, 0, x.count(), result.floats());
  for (int64_t row = 0; row < x.rows(); ++row) {
    float *values = result.floats() + row * columns; // [D]
    float largest = *std::max_element(values, values + columns);
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) {
      values[i] = std::exp(values[i] - largest);
      sum += values[i];
    }
    for (int64_t i = 0; i < columns; ++i)
      values[i] = static_cast<float>(values[i] / sum);
  }
  return result;
}

float activate(Activation kind, float x) {
  switch (kind) {
  case Activation::Identity:
    return x;
  case Activation::Silu:
    return x / (1.0f + std::exp(-x));
  case Activation::Gelu:
    return 0.5f * x * (1.0f + std::erf(x / std::numbers::sqrt2_v<float>));
  case Activation::GeluTanh: {
    constexpr float root = 0.797884560802865f; // sqrt(2 / pi)
    return 0.5f * x * (1.0f + std::tanh(root * (x + 0.044715f * x * x * x)));
  }
  case Activation::Relu:
    return x > 0 || std::isnan(x) ? x : 0.0f;
  }
  return 0;
}

float gated(const Glu &glu, float gate, float up) {
  if (!glu.clamp)
    return activate(glu.activation, gate) * up;
  // Comparisons that leave a NaN what it is.
  const auto [limit, alpha] = *glu.clamp;
  gate = gate > limit ? limit : gate;
  up = up > limit ? limit : up < -limit ? -limit : up;
  return gate / (1.0f + std::exp(-alpha * gate)) * (up + 1.0f);
}

Result<Tensor> activation(Activation kind, const TensorView &x) {
  KF_RETURN_IF_ERROR(checkFloat("kf.activation", x));
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, x.shape));
  float *values = result.floats();
  widen(x, 0, x.count(), values);
  for (int64_t i = 0; i < x.count(); ++i)
    values[i] = activate(kind, values[i]);
  return result;
}

} // namespace kf::reference
