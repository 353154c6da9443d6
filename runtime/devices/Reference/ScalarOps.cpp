//===- ScalarOps.cpp - Elementwise ops of arith and math ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// f16 and bf16 are computed in f32 and rounded; integers are sign-extended to
// 64 bits (a true i1 is -1) and wrap. What arith leaves undefined has a meaning
// here, which compiled code shares (lib/Conversion/Common/ElementwiseEmitter):
// x / 0 is 0 and x mod 0 is x, shifts by the width or more shift everything
// out, and conversions to integers saturate, with 0 for a NaN.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceOps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace kf::reference {

/// One of the members is set; each computes an element.
struct ScalarOp {
  std::string_view name;
  size_t operands = 1;
  float (*ofFloats)(const float *) = nullptr;
  double (*ofDoubles)(const double *) = nullptr;
  int64_t (*ofIntegers)(const int64_t *, int bits) = nullptr;
  bool (*testsFloat)(double) = nullptr;
  enum class Special {
    None,
    CmpF,
    CmpI,
    Select,
    Cast,
    Bitcast
  } special = Special::None;
};

namespace {

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

template <typename Fn>
constexpr ScalarOp floats(std::string_view name, size_t operands, Fn) {
  ScalarOp op{name, operands};
  op.ofFloats = [](const float *x) -> float { return Fn()(x); };
  op.ofDoubles = [](const double *x) -> double { return Fn()(x); };
  return op;
}

template <typename Fn>
constexpr ScalarOp integers(std::string_view name, size_t operands, Fn fn) {
  ScalarOp op{name, operands};
  op.ofIntegers = fn;
  return op;
}

constexpr ScalarOp test(std::string_view name, bool (*fn)(double)) {
  ScalarOp op{name, 1};
  op.testsFloat = fn;
  return op;
}

constexpr ScalarOp special(std::string_view name, size_t operands,
                           ScalarOp::Special kind) {
  ScalarOp op{name, operands};
  op.special = kind;
  return op;
}

uint64_t mask(int bits) {
  return bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
}
uint64_t toUnsigned(int64_t x, int bits) { return uint64_t(x) & mask(bits); }
int64_t wrap(uint64_t x, int bits) {
  return int64_t(x << (64 - bits)) >> (64 - bits);
}

/// NaN where either is; -0 is smaller than 0.
template <typename T> T largest(T a, T b, bool wantsLargest) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<T>::quiet_NaN();
  if (a == b)
    return std::signbit(a) == wantsLargest ? b : a;
  return (a > b) == wantsLargest ? a : b;
}

int64_t divide(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  return b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
}
int64_t remainder(int64_t a, int64_t b) {
  if (b == 0)
    return a;
  return b == -1 ? 0 : a % b;
}
uint64_t divideUnsigned(uint64_t a, uint64_t b) { return b ? a / b : 0; }
uint64_t remainderUnsigned(uint64_t a, uint64_t b) { return b ? a % b : a; }

using Special = ScalarOp::Special;

#define KF_FLOATS(name, operands, expression)                                  \
  floats(name, operands, [](const auto *x) { return expression; })
#define KF_INTEGERS(name, operands, expression)                                \
  integers(name, operands, [](const int64_t *x, [[maybe_unused]] int bits) {   \
    return int64_t(expression);                                                \
  })

const ScalarOp kScalarOps[] = {
    KF_FLOATS("arith.addf", 2, x[0] + x[1]),
    KF_FLOATS("arith.subf", 2, x[0] - x[1]),
    KF_FLOATS("arith.mulf", 2, x[0] * x[1]),
    KF_FLOATS("arith.divf", 2, x[0] / x[1]),
    KF_FLOATS("arith.remf", 2, std::fmod(x[0], x[1])),
    KF_FLOATS("arith.maximumf", 2, largest(x[0], x[1], true)),
    KF_FLOATS("arith.minimumf", 2, largest(x[0], x[1], false)),
    KF_FLOATS("arith.maxnumf", 2, std::fmax(x[0], x[1])),
    KF_FLOATS("arith.minnumf", 2, std::fmin(x[0], x[1])),
    KF_FLOATS("arith.negf", 1, -x[0]),
    KF_FLOATS("math.absf", 1, std::abs(x[0])),
    KF_FLOATS("math.ceil", 1, std::ceil(x[0])),
    KF_FLOATS("math.floor", 1, std::floor(x[0])),
    KF_FLOATS("math.round", 1, std::round(x[0])),
    KF_FLOATS("math.roundeven", 1, std::nearbyint(x[0])),
    KF_FLOATS("math.trunc", 1, std::trunc(x[0])),
    KF_FLOATS("math.sqrt", 1, std::sqrt(x[0])),
    KF_FLOATS("math.rsqrt", 1, 1 / std::sqrt(x[0])),
    KF_FLOATS("math.cbrt", 1, std::cbrt(x[0])),
    KF_FLOATS("math.exp", 1, std::exp(x[0])),
    KF_FLOATS("math.exp2", 1, std::exp2(x[0])),
    KF_FLOATS("math.expm1", 1, std::expm1(x[0])),
    KF_FLOATS("math.log", 1, std::log(x[0])),
    KF_FLOATS("math.log2", 1, std::log2(x[0])),
    KF_FLOATS("math.log10", 1, std::log10(x[0])),
    KF_FLOATS("math.log1p", 1, std::log1p(x[0])),
    KF_FLOATS("math.powf", 2, std::pow(x[0], x[1])),
    KF_FLOATS("math.erf", 1, std::erf(x[0])),
    KF_FLOATS("math.erfc", 1, std::erfc(x[0])),
    KF_FLOATS("math.sin", 1, std::sin(x[0])),
    KF_FLOATS("math.cos", 1, std::cos(x[0])),
    KF_FLOATS("math.tan", 1, std::tan(x[0])),
    KF_FLOATS("math.asin", 1, std::asin(x[0])),
    KF_FLOATS("math.acos", 1, std::acos(x[0])),
    KF_FLOATS("math.atan", 1, std::atan(x[0])),
    KF_FLOATS("math.atan2", 2, std::atan2(x[0], x[1])),
    KF_FLOATS("math.sinh", 1, std::sinh(x[0])),
    KF_FLOATS("math.cosh", 1, std::cosh(x[0])),
    KF_FLOATS("math.tanh", 1, std::tanh(x[0])),
    KF_FLOATS("math.asinh", 1, std::asinh(x[0])),
    KF_FLOATS("math.acosh", 1, std::acosh(x[0])),
    KF_FLOATS("math.atanh", 1, std::atanh(x[0])),
    KF_FLOATS("math.copysign", 2, std::copysign(x[0], x[1])),
    KF_FLOATS("math.fma", 3, std::fma(x[0], x[1], x[2])),
    KF_INTEGERS("arith.addi", 2, uint64_t(x[0]) + uint64_t(x[1])),
    KF_INTEGERS("arith.subi", 2, uint64_t(x[0]) - uint64_t(x[1])),
    KF_INTEGERS("arith.muli", 2, uint64_t(x[0]) * uint64_t(x[1])),
    KF_INTEGERS("arith.divsi", 2, divide(x[0], x[1])),
    KF_INTEGERS("arith.remsi", 2, remainder(x[0], x[1])),
    KF_INTEGERS("arith.divui", 2,
                divideUnsigned(toUnsigned(x[0], bits), toUnsigned(x[1], bits))),
    KF_INTEGERS(
        "arith.remui", 2,
        remainderUnsigned(toUnsigned(x[0], bits), toUnsigned(x[1], bits))),
    KF_INTEGERS("arith.floordivsi", 2,
                divide(x[0], x[1]) - (x[1] != 0 && remainder(x[0], x[1]) != 0 &&
                                      (x[0] < 0) != (x[1] < 0))),
    KF_INTEGERS("arith.ceildivsi", 2,
                divide(x[0], x[1]) + (x[1] != 0 && remainder(x[0], x[1]) != 0 &&
                                      (x[0] < 0) == (x[1] < 0))),
    KF_INTEGERS("arith.ceildivui", 2,
                divideUnsigned(toUnsigned(x[0], bits), toUnsigned(x[1], bits)) +
                    (x[1] != 0 && remainderUnsigned(toUnsigned(x[0], bits),
                                                    toUnsigned(x[1], bits)))),
    KF_INTEGERS("arith.maxsi", 2, std::max(x[0], x[1])),
    KF_INTEGERS("arith.minsi", 2, std::min(x[0], x[1])),
    KF_INTEGERS("arith.maxui", 2,
                std::max(toUnsigned(x[0], bits), toUnsigned(x[1], bits))),
    KF_INTEGERS("arith.minui", 2,
                std::min(toUnsigned(x[0], bits), toUnsigned(x[1], bits))),
    KF_INTEGERS("arith.andi", 2, x[0] & x[1]),
    KF_INTEGERS("arith.ori", 2, x[0] | x[1]),
    KF_INTEGERS("arith.xori", 2, x[0] ^ x[1]),
    KF_INTEGERS("arith.shli", 2,
                toUnsigned(x[1], bits) >= uint64_t(bits)
                    ? 0
                    : uint64_t(x[0]) << toUnsigned(x[1], bits)),
    KF_INTEGERS("arith.shrui", 2,
                toUnsigned(x[1], bits) >= uint64_t(bits)
                    ? 0
                    : toUnsigned(x[0], bits) >> toUnsigned(x[1], bits)),
    KF_INTEGERS("arith.shrsi", 2,
                x[0] >> std::min<uint64_t>(toUnsigned(x[1], bits), bits - 1)),
    KF_INTEGERS("math.absi", 1, x[0] < 0 ? 0 - uint64_t(x[0]) : uint64_t(x[0])),
    test("math.isfinite", [](double x) { return bool(std::isfinite(x)); }),
    test("math.isinf", [](double x) { return bool(std::isinf(x)); }),
    test("math.isnan", [](double x) { return bool(std::isnan(x)); }),
    // Of the operand's own type, which widening does not keep.
    test("math.isnormal", nullptr),
    special("arith.cmpf", 2, Special::CmpF),
    special("arith.cmpi", 2, Special::CmpI),
    special("arith.select", 3, Special::Select),
    special("arith.extf", 1, Special::Cast),
    special("arith.truncf", 1, Special::Cast),
    special("arith.extsi", 1, Special::Cast),
    special("arith.extui", 1, Special::Cast),
    special("arith.trunci", 1, Special::Cast),
    special("arith.sitofp", 1, Special::Cast),
    special("arith.uitofp", 1, Special::Cast),
    special("arith.fptosi", 1, Special::Cast),
    special("arith.fptoui", 1, Special::Cast),
    special("arith.bitcast", 1, Special::Bitcast),
    special("kf.copy", 1, Special::Bitcast),
};

#undef KF_FLOATS
#undef KF_INTEGERS

//===----------------------------------------------------------------------===//
// Elements in memory
//===----------------------------------------------------------------------===//

int bitsOf(DataType type) {
  return type == DataType::I1 ? 1 : static_cast<int>(sizeOf(type) * 8);
}

template <typename T> T at(const TensorView &x, int64_t i) {
  T value;
  std::memcpy(&value, x.data + i * int64_t(sizeof(T)), sizeof(T));
  return value;
}

double realAt(const TensorView &x, int64_t i) {
  if (x.type == DataType::F64)
    return at<double>(x, i);
  if (x.type == DataType::F16)
    return halfToFloat(at<uint16_t>(x, i));
  if (x.type == DataType::BF16)
    return bfloatToFloat(at<uint16_t>(x, i));
  return at<float>(x, i);
}

int64_t integerAt(const TensorView &x, int64_t i) {
  switch (x.type) {
  case DataType::I1:
    return at<uint8_t>(x, i) ? -1 : 0;
  case DataType::I8:
    return at<int8_t>(x, i);
  case DataType::I16:
    return at<int16_t>(x, i);
  case DataType::I32:
    return at<int32_t>(x, i);
  default:
    return at<int64_t>(x, i);
  }
}

//===----------------------------------------------------------------------===//
// Compares and casts
//===----------------------------------------------------------------------===//

/// arith's predicates of cmpf, in its order: false, oeq, ogt, oge, olt, ole,
/// one, ord, ueq, ugt, uge, ult, ule, une, uno, true.
bool compareReals(int64_t predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  if (predicate == 0 || predicate == 15)
    return predicate == 15;
  if (predicate == 7 || predicate == 14)
    return unordered == (predicate == 14);
  if (unordered)
    return predicate > 7;
  switch (predicate > 7 ? predicate - 7 : predicate) {
  case 1:
    return a == b;
  case 2:
    return a > b;
  case 3:
    return a >= b;
  case 4:
    return a < b;
  case 5:
    return a <= b;
  default:
    return a != b;
  }
}

/// arith's predicates of cmpi: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge.
bool compareIntegers(int64_t predicate, int64_t a, int64_t b, int bits) {
  uint64_t c = toUnsigned(a, bits), d = toUnsigned(b, bits);
  const bool results[] = {
      a == b, a != b, a<b, a <= b, a> b, a >= b, c<d, c <= d, c> d, c >= d};
  return results[predicate];
}

int64_t saturate(double x, int bits, bool isSigned) {
  if (std::isnan(x))
    return 0;
  x = std::trunc(x);
  double top = std::ldexp(1.0, isSigned ? bits - 1 : bits);
  double bottom = isSigned ? -top : 0;
  if (x >= top)
    return isSigned ? int64_t(mask(bits - 1)) : wrap(mask(bits), bits);
  if (x <= bottom)
    return isSigned ? wrap(uint64_t(1) << (bits - 1), bits) : 0;
  return isSigned ? static_cast<int64_t>(x)
                  : wrap(static_cast<uint64_t>(x), bits);
}

void castElement(std::string_view name, const TensorView &x, int64_t i,
                 Tensor &result) {
  if (name == "arith.extf" || name == "arith.truncf")
    return putReal(result, i, realAt(x, i));
  if (name == "arith.fptosi" || name == "arith.fptoui")
    return putInteger(
        result, i,
        saturate(realAt(x, i), bitsOf(result.type), name == "arith.fptosi"));
  int64_t value = integerAt(x, i);
  if (name == "arith.sitofp") {
    if (result.type == DataType::F64)
      return putReal(result, i, static_cast<double>(value));
    return putReal(result, i, static_cast<float>(value));
  }
  uint64_t bits = toUnsigned(value, bitsOf(x.type));
  if (name == "arith.uitofp") {
    if (result.type == DataType::F64)
      return putReal(result, i, static_cast<double>(bits));
    return putReal(result, i, static_cast<float>(bits));
  }
  putInteger(result, i,
             name == "arith.extui" ? static_cast<int64_t>(bits) : value);
}

bool isNormal(DataType type, double x) {
  double least = type == DataType::F64   ? 0x1p-1022
                 : type == DataType::F16 ? 0x1p-14
                                         : 0x1p-126;
  return std::isfinite(x) && std::abs(x) >= least;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

bool haveOneShape(std::span<const TensorView> operands) {
  for (const TensorView &operand : operands)
    if (operand.shape != operands[0].shape)
      return false;
  return true;
}

bool isNumber(DataType type) {
  return !isBlock(type) && type != DataType::U8 && type != DataType::F8E4M3;
}

/// Whether the elements of operands and result are what the op has.
bool haveTypes(const ScalarOp &op, std::span<const TensorView> operands,
               DataType result) {
  auto all = [&](bool (*fits)(DataType)) {
    for (const TensorView &operand : operands)
      if (!fits(operand.type) || operand.type != operands[0].type)
        return false;
    return true;
  };
  auto isInteger = [](DataType type) {
    return isNumber(type) && !isReal(type);
  };
  if (op.ofFloats)
    return all(isReal) && isReal(result);
  if (op.ofIntegers)
    return all(isInteger) && isInteger(result);
  if (op.testsFloat || op.name == "math.isnormal" ||
      op.special == Special::CmpF)
    return all(isReal) && result == DataType::I1;
  if (op.special == Special::CmpI)
    return all(isInteger) && result == DataType::I1;
  if (op.special == Special::Select)
    return operands[0].type == DataType::I1 &&
           operands[1].type == operands[2].type && operands[1].type == result;
  bool fromReal = op.name == "arith.extf" || op.name == "arith.truncf" ||
                  op.name.starts_with("arith.fpto");
  bool toReal = op.name == "arith.extf" || op.name == "arith.truncf" ||
                op.name.ends_with("tofp");
  if (op.special == Special::Cast)
    return (fromReal ? isReal : +isInteger)(operands[0].type) &&
           (toReal ? isReal : +isInteger)(result);
  return !isBlock(operands[0].type) &&
         sizeOf(operands[0].type) == sizeOf(result);
}

} // namespace

const ScalarOp *findScalarOp(std::string_view name) {
  for (const ScalarOp &op : kScalarOps)
    if (op.name == name)
      return &op;
  return nullptr;
}

size_t operandCount(const ScalarOp &op) { return op.operands; }

bool hasPredicate(const ScalarOp &op, int64_t predicate) {
  if (op.special == Special::CmpF)
    return predicate >= 0 && predicate < 16;
  return op.special != Special::CmpI || (predicate >= 0 && predicate < 10);
}

bool hasPredicate(const ScalarOp &op) {
  return op.special == Special::CmpF || op.special == Special::CmpI;
}

Result<Tensor> apply(const ScalarOp &op, std::span<const TensorView> operands,
                     DataType type, int64_t predicate) {
  std::string types;
  for (const TensorView &operand : operands)
    types +=
        (types.empty() ? "" : ", ") + describe(operand.type, operand.shape);
  if (operands.size() != op.operands || !haveOneShape(operands) ||
      !hasPredicate(op, predicate) || !haveTypes(op, operands, type))
    return Status::error(std::string(op.name) + " does not take " + types +
                         " and make " + std::string(nameOf(type)));
  const TensorView &x = operands[0];
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(type, x.shape));
  if (op.special == Special::Bitcast) {
    if (!result.bytes.empty())
      std::memcpy(result.bytes.data(), x.data, result.bytes.size());
    return result;
  }
  const size_t size = sizeOf(type);
  for (int64_t i = 0; i < x.count(); ++i) {
    if (op.ofFloats && type == DataType::F64) {
      double values[3] = {};
      for (size_t k = 0; k < operands.size(); ++k)
        values[k] = realAt(operands[k], i);
      putReal(result, i, op.ofDoubles(values));
    } else if (op.ofFloats) {
      float values[3] = {};
      for (size_t k = 0; k < operands.size(); ++k)
        values[k] = static_cast<float>(realAt(operands[k], i));
      putReal(result, i, op.ofFloats(values));
    } else if (op.ofIntegers) {
      int64_t values[3] = {};
      for (size_t k = 0; k < operands.size(); ++k)
        values[k] = integerAt(operands[k], i);
      putInteger(result, i, op.ofIntegers(values, bitsOf(x.type)));
    } else if (op.testsFloat) {
      putInteger(result, i, op.testsFloat(realAt(x, i)));
    } else if (op.special == Special::CmpF) {
      putInteger(result, i,
                 compareReals(predicate, realAt(x, i), realAt(operands[1], i)));
    } else if (op.special == Special::CmpI) {
      putInteger(result, i,
                 compareIntegers(predicate, integerAt(x, i),
                                 integerAt(operands[1], i), bitsOf(x.type)));
    } else if (op.special == Special::Select) {
      const TensorView &from = operands[integerAt(x, i) ? 1 : 2];
      std::memcpy(result.bytes.data() + i * size, from.data + i * size, size);
    } else if (op.special == Special::Cast) {
      castElement(op.name, x, i, result);
    } else {
      putInteger(result, i, isNormal(x.type, realAt(x, i)));
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

namespace {

/// The result's element that each element of `x` goes to.
std::vector<int64_t> targets(const TensorView &x,
                             std::span<const int64_t> dims) {
  std::vector<int64_t> strides(x.rank()); // in the result
  int64_t stride = 1;
  for (size_t dim = x.rank(); dim-- > 0;) {
    bool isReduced = std::ranges::count(dims, int64_t(dim)) > 0;
    strides[dim] = isReduced ? 0 : stride;
    stride *= isReduced ? 1 : x.shape[dim];
  }
  std::vector<int64_t> list(x.count()), index(x.rank());
  for (int64_t &target : list) {
    target = 0;
    for (size_t dim = 0; dim < x.rank(); ++dim)
      target += index[dim] * strides[dim];
    for (size_t dim = x.rank(); dim-- > 0;) {
      if (++index[dim] < x.shape[dim])
        break;
      index[dim] = 0;
    }
  }
  return list;
}

template <typename T> T combine(Reduction kind, T a, T b) {
  switch (kind) {
  case Reduction::Sum:
  case Reduction::Mean:
    return a + b;
  case Reduction::Prod:
    return a * b;
  default:
    if constexpr (std::is_floating_point_v<T>)
      return largest(a, b, kind == Reduction::Max);
    else
      return (a > b) == (kind == Reduction::Max) ? a : b;
  }
}

int64_t combineIntegers(Reduction kind, int64_t a, int64_t b) {
  if (kind == Reduction::Sum || kind == Reduction::Prod)
    return static_cast<int64_t>(combine<uint64_t>(kind, a, b));
  return combine<int64_t>(kind, a, b);
}

} // namespace

Result<Tensor> reduce(Reduction kind, const TensorView &x,
                      std::span<const int64_t> dims,
                      std::vector<int64_t> shape) {
  if (!isNumber(x.type) || (kind == Reduction::Mean && !isReal(x.type)))
    return Status::error("kf.reduce C2: x is " + describe(x.type, x.shape));
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0 || dims[i] >= int64_t(x.rank()) ||
        (i > 0 && dims[i] <= dims[i - 1]))
      return Status::error("kf.reduce C1: dims are not dimensions of " +
                           describe(x.type, x.shape) + " in ascending order");
  int64_t reduced = 1;
  for (int64_t dim : dims)
    reduced *= x.shape[dim];
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(x.type, std::move(shape)));
  int64_t count = result.view().count();
  if (count * reduced != x.count() || x.count() == 0)
    return Status::error("kf.reduce C3: x is " + describe(x.type, x.shape) +
                         " for a result of " +
                         describe(result.type, result.shape));
  std::vector<int64_t> target = targets(x, dims);
  std::vector<bool> seen(count);
  std::vector<double> reals(isReal(x.type) ? count : 0);
  std::vector<int64_t> ints(isReal(x.type) ? 0 : count);
  // Numbers by their sign; true and false as 1 and 0.
  auto integer = [&](int64_t i) {
    return x.type == DataType::I1 ? integerAt(x, i) & 1 : integerAt(x, i);
  };
  for (int64_t i = 0; i < x.count(); ++i) {
    int64_t to = target[i];
    bool isFirst = !seen[to];
    seen[to] = true;
    if (isReal(x.type))
      reals[to] =
          isFirst ? realAt(x, i) : combine(kind, reals[to], realAt(x, i));
    else
      ints[to] =
          isFirst ? integer(i) : combineIntegers(kind, ints[to], integer(i));
  }
  for (int64_t i = 0; i < count; ++i) {
    if (!isReal(x.type))
      putInteger(result, i, ints[i]);
    else
      putReal(result, i,
              kind == Reduction::Mean ? reals[i] / double(reduced) : reals[i]);
  }
  return result;
}

} // namespace kf::reference
