//===- ExpandMathTest.cpp - Errors of expanded functions ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kf-nvvm-expand-math makes operations that every IEEE machine rounds alike, so
// the host computes what a GPU would. Each function is compiled for the host
// and compared with the C library's in f64, over all of f32.
//
//===----------------------------------------------------------------------===//

#include "kf/Target/NVVM/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace mlir;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// An op of the math dialect on f32, expanded and compiled for the host.
class Function {
public:
  Function(StringRef op, int operands) {
    std::string x = operands == 2 ? "%x, %y" : "%x";
    std::string parameters = operands == 2 ? "%x: f32, %y: f32" : "%x: f32";
    std::string dialect = op == "remf" ? "arith." : "math.";
    compile("func.func @f(" + parameters + ") -> f32 {\n  %r = " + dialect +
            op.str() + " " + x + " : f32\n  return %r : f32\n}");
  }
  /// A function of f32 to f32, named @f.
  explicit Function(const std::string &text) { compile(text); }

  bool isReady() const { return address != nullptr; }
  float operator()(float x) const {
    return reinterpret_cast<float (*)(float)>(address)(x);
  }
  float operator()(float x, float y) const {
    return reinterpret_cast<float (*)(float, float)>(address)(x, y);
  }

private:
  void compile(const std::string &text) {
    MLIRContext context;
    context.loadDialect<func::FuncDialect, math::MathDialect,
                        cf::ControlFlowDialect, LLVM::LLVMDialect>();
    auto module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    PassManager passes(&context);
    passes.addPass(mlir::kf::createExpandNvvmMath());
    passes.addPass(createSCFToControlFlowPass());
    passes.addPass(createConvertMathToLLVMPass());
    passes.addPass(createArithToLLVMConversionPass());
    passes.addPass(createConvertControlFlowToLLVMPass());
    passes.addPass(createConvertFuncToLLVMPass());
    passes.addPass(createReconcileUnrealizedCastsPass());
    ASSERT_TRUE(succeeded(passes.run(*module)));

    registerBuiltinDialectTranslation(context);
    registerLLVMDialectTranslation(context);
    auto llvmContext = std::make_unique<llvm::LLVMContext>();
    auto code = translateModuleToLLVMIR(*module, *llvmContext);
    ASSERT_TRUE(code);
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto machine = llvm::orc::JITTargetMachineBuilder::detectHost();
    ASSERT_TRUE(bool(machine)) << llvm::toString(machine.takeError());
    machine->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Standard;
    auto created = llvm::orc::LLJITBuilder()
                       .setJITTargetMachineBuilder(std::move(*machine))
                       .create();
    ASSERT_TRUE(bool(created)) << llvm::toString(created.takeError());
    jit = std::move(*created);
    llvm::Error error = jit->addIRModule(
        llvm::orc::ThreadSafeModule(std::move(code), std::move(llvmContext)));
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    auto found = jit->lookup("f");
    ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
    address = found->toPtr<void *>();
  }

  std::unique_ptr<llvm::orc::LLJIT> jit;
  void *address = nullptr;
};

/// Distance to `expected` in units of the last place of f32 there; infinite
/// where one of the two is NaN or infinite alone, or the sign differs.
double errorOf(float found, double expected) {
  const float rounded = static_cast<float>(expected);
  if (std::isnan(found) || std::isnan(rounded))
    return std::isnan(found) == std::isnan(rounded) ? 0 : infinity;
  if (std::signbit(found) != std::signbit(rounded))
    return infinity;
  const float largest = std::numeric_limits<float>::max();
  if (std::isinf(found) || std::isinf(rounded)) {
    // Next to the largest number, either may be what the exact result rounds
    // to.
    if (found == rounded)
      return 0;
    found = std::min(std::abs(found), largest);
    return std::abs(std::abs(expected) - found) < 2 * 0x1p104 ? 1 : infinity;
  }
  const float size =
      std::clamp(std::abs(rounded), 0x1p-126f, std::nextafter(largest, 0.0f));
  return std::abs(found - expected) / (std::nextafter(size, infinity) - size);
}

struct UnaryCase {
  const char *name;
  double (*expected)(double);
  double most; ///< units in the last place
};

void PrintTo(const UnaryCase &test, std::ostream *out) { *out << test.name; }

class ExpandUnary : public testing::TestWithParam<UnaryCase> {};

/// Every 1009th float, and what is special.
TEST_P(ExpandUnary, IsCloseEverywhere) {
  const UnaryCase &test = GetParam();
  Function function(test.name, 1);
  ASSERT_TRUE(function.isReady());
  double worst = 0;
  float worstAt = 0;
  auto check = [&](float x) {
    const double error = errorOf(function(x), test.expected(x));
    if (error > worst)
      worst = error, worstAt = x;
  };
  for (float x :
       {0.0f, 1.0f, infinity, nan, std::numeric_limits<float>::denorm_min(),
        std::numeric_limits<float>::min(), std::numeric_limits<float>::max()})
    check(x), check(-x);
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += 1009)
    check(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  EXPECT_LE(worst, test.most) << "at " << worstAt;
}

INSTANTIATE_TEST_SUITE_P(
    AllFunctions, ExpandUnary,
    testing::Values(
        UnaryCase{"exp", std::exp, 1}, UnaryCase{"log", std::log, 2},
        UnaryCase{"sin", std::sin, 3}, UnaryCase{"cos", std::cos, 3},
        UnaryCase{"tanh", std::tanh, 2}, UnaryCase{"erf", std::erf, 2},
        UnaryCase{"tan", std::tan, 5}, UnaryCase{"acos", std::acos, 2},
        UnaryCase{"acosh", std::acosh, 3}, UnaryCase{"asin", std::asin, 6},
        UnaryCase{"asinh", std::asinh, 3}, UnaryCase{"atan", std::atan, 3},
        UnaryCase{"atanh", std::atanh, 3}, UnaryCase{"cbrt", std::cbrt, 1},
        UnaryCase{"cosh", std::cosh, 2}, UnaryCase{"erfc", std::erfc, 3},
        UnaryCase{"exp2", std::exp2, 1}, UnaryCase{"expm1", std::expm1, 2},
        UnaryCase{"log10", std::log10, 2}, UnaryCase{"log1p", std::log1p, 2},
        UnaryCase{"log2", std::log2, 3}, UnaryCase{"sinh", std::sinh, 2}),
    [](const auto &info) { return std::string(info.param.name); });

/// Rounding to f16 is what the host's is, but for what a NaN carries.
TEST(ExpandHalfBits, AreTheHosts) {
  Function function("func.func @f(%x: f32) -> f32 {\n"
                    "  %h = arith.truncf %x : f32 to f16\n"
                    "  %b = arith.bitcast %h : f16 to i16\n"
                    "  %w = arith.extui %b : i16 to i32\n"
                    "  %r = arith.sitofp %w : i32 to f32\n"
                    "  return %r : f32\n}");
  ASSERT_TRUE(function.isReady());
  auto check = [&](uint32_t bits) {
    const float x = std::bit_cast<float>(bits);
    const auto found = static_cast<uint16_t>(function(x));
    const auto expected = std::bit_cast<uint16_t>(static_cast<_Float16>(x));
    if (std::isnan(x))
      ASSERT_GT(found & 0x7fff, 0x7c00) << bits;
    else
      ASSERT_EQ(found, expected) << bits;
  };
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += 1009)
    check(static_cast<uint32_t>(bits));
  // Every f16, and the ties between, with their neighbours.
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float x = static_cast<float>(
        std::bit_cast<_Float16>(static_cast<uint16_t>(half)));
    const auto bits = std::bit_cast<uint32_t>(x);
    for (uint32_t offset : {0u, 0x1000u, 0x0fffu, 0x1001u, ~0u})
      check(bits + offset);
  }
}

constexpr float specialNumbers[] = {
    0,      1,      2,      0.5f,    3,           2.5f,        infinity, nan,
    1e-45f, 1e-40f, 1e-38f, 3.4e38f, 0x1p23f + 1, 0x1p24f + 2, 1e-30f};

/// Calls `check` for pairs of special numbers, of both signs each.
void forSpecialPairs(llvm::function_ref<void(float, float)> check) {
  for (float x : specialNumbers)
    for (float y : specialNumbers)
      for (int signs = 0; signs < 4; ++signs)
        check(signs & 1 ? -x : x, signs & 2 ? -y : y);
}

/// Makes numbers of any 32 bits.
class RandomBits {
public:
  uint32_t operator()() {
    const auto high = static_cast<uint32_t>(random());
    return high << 16 ^ static_cast<uint32_t>(random());
  }

private:
  std::minstd_rand random{1};
};

TEST(ExpandPow, IsCloseEverywhere) {
  Function function("powf", 2);
  ASSERT_TRUE(function.isReady());
  double worst = 0;
  float worstX = 0, worstY = 0;
  auto check = [&](float x, float y) {
    const double error =
        errorOf(function(x, y), std::pow(double(x), double(y)));
    if (error > worst)
      worst = error, worstX = x, worstY = y;
  };
  forSpecialPairs(check);
  RandomBits bits;
  for (int i = 0; i < 1000000; ++i) {
    check(std::bit_cast<float>(bits()), std::bit_cast<float>(bits()));
    // Results of every size, and whole exponents of negative numbers.
    const float x = std::ldexp(1 + (bits() & 0xffff) / 65536.0f,
                               static_cast<int>(bits() % 20) - 10);
    const float size = static_cast<int32_t>(bits()) / 2147483648.0f * 100;
    const float y = size / (std::abs(std::log(x)) + 1e-3f);
    check(x, y);
    check(-x, std::rint(y));
  }
  EXPECT_LE(worst, 16) << "at " << worstX << ", " << worstY;
}

/// Calls `check` for pairs of special numbers of both signs, of numbers of any
/// bits, and of such that are about as large.
void forPairs(llvm::function_ref<void(float, float)> check) {
  forSpecialPairs(check);
  RandomBits bits;
  for (int i = 0; i < 500000; ++i) {
    const float x = std::bit_cast<float>(bits());
    check(x, std::bit_cast<float>(bits()));
    check(x, std::bit_cast<float>(std::bit_cast<uint32_t>(x) ^
                                  (bits() & 0x81ffffff)));
  }
}

TEST(ExpandAtan2, IsCloseEverywhere) {
  Function function("atan2", 2);
  ASSERT_TRUE(function.isReady());
  double worst = 0;
  float worstX = 0, worstY = 0;
  forPairs([&](float y, float x) {
    const double error =
        errorOf(function(y, x), std::atan2(double(y), double(x)));
    if (error > worst)
      worst = error, worstX = x, worstY = y;
  });
  EXPECT_LE(worst, 3) << "at " << worstY << ", " << worstX;
}

/// What a remainder is has no error, however large the quotient.
TEST(ExpandRemainder, IsExact) {
  Function function("remf", 2);
  ASSERT_TRUE(function.isReady());
  forPairs([&](float x, float y) {
    const float found = function(x, y), expected = std::fmod(x, y);
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(found)) << x << ", " << y;
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(found),
                std::bit_cast<uint32_t>(expected))
          << x << ", " << y;
  });
}

} // namespace
