//===- GradientsTest.cpp - Every derivative against differences and PyTorch's
//===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of test/conformance/gradients have arguments with kf.gradient
// and a loss. What kf-differentiate makes of each runs on the reference, where
// its gradients are compared with differences of the loss, and with those that
// PyTorch has computed in float64 (torch.json, by torch_gradients.py). Then
// they run on the CPU, by each policy, and on Vulkan, with one, a few and many
// rows.
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/Compiler.h"
#include "kf/Pipelines/KernelCodes.h"
#include "kf/Pipelines/Registration.h"
#include "kf/Transforms/Passes.h"
#include "runtime/core/BlockFormat.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "runtime/engine/ProgramRunner.h"
#include "test/conformance/TestDevice.h"
#include "test/runtime/TestFiles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>

using namespace kf;
using mlir::kf::GradientPolicy;

namespace {

const std::string folder =
    test::testFile(KF_SOURCE_DIR "/test/conformance/gradients");
/// As torch_gradients.py has them.
constexpr int64_t goldenRows = 5, mostElements = 64, step = 7;
constexpr uint32_t weightNumber = 99;

uint32_t mixed(uint32_t argument, uint32_t i) {
  uint32_t state = i * 2654435761u + argument * 974711u + 12345u;
  state ^= state >> 15;
  state *= 2246822519u;
  return state ^ (state >> 13);
}

/// Multiples of 1/24 and a half, so that none is near a corner of a function.
std::vector<float> makeFloats(const std::string &function, uint32_t argument,
                              int64_t count) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    const auto number = mixed(argument, static_cast<uint32_t>(i)) % 48;
    values[i] = (static_cast<float>(number) + 0.5f) / 24.0f - 1.0f;
    if (function.starts_with("unit_"))
      values[i] = values[i] / 4.0f + 0.55f;
    if (function.starts_with("above_one_"))
      values[i] = values[i] * 0.9f + 2.1f;
  }
  return values;
}

HostTensor makeTensor(DataType type, std::vector<int64_t> shape,
                      const std::string &function, uint32_t argument) {
  HostTensor tensor = HostTensor::zeros(type, std::move(shape)).take();
  const int64_t count = tensor.elementCount();
  if (type == DataType::I32 || type == DataType::I1) {
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t bits = mixed(argument, static_cast<uint32_t>(i));
      if (type == DataType::I1)
        tensor.bytes[i] = std::byte(bits & 1);
      else
        tensor.data<int32_t>()[i] = static_cast<int32_t>(bits % 8);
    }
    return tensor;
  }
  const std::vector<float> values = makeFloats(function, argument, count);
  if (isBlock(type))
    quantizeBlocks(type, values.data(), count / elementsPerBlock(type),
                   tensor.bytes.data());
  else
    EXPECT_TRUE(
        convertFromFloat(type, values.data(), count, tensor.bytes.data()).ok());
  return tensor;
}

/// The weight "w" of a program.
class TestWeights : public WeightSource {
public:
  explicit TestWeights(const Executable &reference) {
    for (const WeightSpec &spec : reference.weights)
      weight = makeTensor(spec.type, spec.shape, "", weightNumber);
  }
  Result<TensorView> find(const std::string &) const override {
    return TensorView{weight.type, weight.shape, weight.bytes.data(),
                      weight.bytes.size()};
  }
  std::vector<std::string> names() const override { return {"w"}; }

private:
  HostTensor weight;
};

using Results = std::vector<HostTensor>;

std::vector<double> toDoubles(const HostTensor &tensor) {
  EXPECT_EQ(tensor.type, DataType::F32);
  const auto *data = tensor.data<float>();
  return {data, data + tensor.elementCount()};
}

double largest(const std::vector<double> &values) {
  double most = 0;
  for (double value : values)
    most = std::max(most, std::fabs(value));
  return most;
}

/// A function of the folder's files, and what it is compiled to.
class Function {
public:
  Function(const std::string &file, const std::string &name)
      : name(name),
        context(makeRegistry(), mlir::MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
    whole =
        mlir::parseSourceFile<mlir::ModuleOp>(folder + "/" + file, &context);
    for (auto function :
         llvm::make_early_inc_range(whole->getOps<mlir::func::FuncOp>())) {
      if (function.getName() != name) {
        function.erase();
        continue;
      }
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (function.getArgAttr(i, mlir::kf::kGradientAttrName))
          wanted.push_back(i);
    }
  }

  /// The function itself where there is no policy. Values larger than
  /// `mostBytes` are computed by parts of their rows.
  Executable compile(const std::string &target,
                     std::optional<GradientPolicy> policy,
                     std::optional<int64_t> mostBytes = {}) {
    mlir::OwningOpRef<mlir::ModuleOp> module = whole->clone();
    if (policy) {
      mlir::PassManager passes(&context);
      passes.addPass(mlir::kf::createDifferentiate({*policy}));
      if (mostBytes)
        passes.addNestedPass<mlir::func::FuncOp>(
            mlir::kf::createSplitRows({*mostBytes}));
      EXPECT_TRUE(succeeded(passes.run(*module)));
    }
    // Whatever the policy, most kernels are the same.
    static mlir::kf::KernelCodes kernelCodes;
    mlir::kf::CompileOptions options;
    options.target = target;
    options.kernelCodes = &kernelCodes;
    auto executable = mlir::kf::compile(*module, options);
    if (!executable) {
      ADD_FAILURE() << llvm::toString(executable.takeError());
      return {};
    }
    return std::move(*executable);
  }

  std::vector<HostTensor> makeInputs(const Executable &program, int64_t rows) {
    StepSizes sizes(rows);
    sizes.scalars.fill(rows); // and those that have names
    std::vector<HostTensor> inputs;
    for (const TensorSpec &spec : program.inputs)
      inputs.push_back(makeTensor(spec.type,
                                  resolveShape(spec.shape, sizes.scalars), name,
                                  static_cast<uint32_t>(inputs.size())));
    return inputs;
  }

  const std::string name;
  std::vector<unsigned> wanted; ///< numbers of arguments with gradients

private:
  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    mlir::kf::registerDialects(registry);
    return registry;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> whole;
};

/// A program on a device.
class Running {
public:
  Running(Device &device, Executable program, const WeightSource &source)
      : program(std::move(program)), weights(device, &source),
        cache(device, /*pages=*/1, kCachePage),
        loaded(device.load(this->program)) {
    EXPECT_TRUE(loaded.ok()) << loaded.message();
    auto created = ProgramRunner::create(**loaded, device, weights, cache);
    EXPECT_TRUE(created.ok()) << created.message();
    runner = created.take();
  }

  Results run(const std::vector<HostTensor> &inputs) {
    auto results = runner->run(inputs);
    EXPECT_TRUE(results.ok()) << results.message();
    return results.ok() ? results.take() : Results();
  }

  const Executable program;

private:
  WeightStore weights;
  KVCache cache;
  Result<std::unique_ptr<LoadedProgram>> loaded;
  std::unique_ptr<ProgramRunner> runner;
};

struct Place {
  std::string file, name;
};

void PrintTo(const Place &place, std::ostream *stream) {
  *stream << place.name << " of " << place.file;
}

std::vector<Place> listFunctions() {
  std::vector<Place> places;
  for (const char *file : {"elementwise.mlir", "layers.mlir", "losses.mlir",
                           "products.mlir", "tensors.mlir"}) {
    std::ifstream stream(folder + "/" + file);
    for (std::string line; std::getline(stream, line);) {
      const std::string_view prefix = "func.func @";
      if (line.starts_with(prefix))
        places.push_back(
            {file, line.substr(prefix.size(), line.find('(') - prefix.size())});
    }
  }
  return places;
}

class Gradients : public ::testing::TestWithParam<Place> {
protected:
  Gradients() : function(GetParam().file, GetParam().name) {}

  Running runOnReference(std::optional<GradientPolicy> policy) {
    Executable program = function.compile("reference", policy);
    if (!source) // programs read it where it lies
      source.emplace(program);
    return {*reference, std::move(program), *source};
  }

  Function function;
  std::unique_ptr<Device> reference = createReferenceDevice();
  std::optional<TestWeights> source;
};

/// The derivative of the loss by element `i` of `inputs[number]`, by
/// differences of fourth order.
double differenceAt(Running &loss, std::vector<HostTensor> inputs,
                    unsigned number, int64_t i) {
  constexpr float h = 1.0f / 128;
  const float at = inputs[number].data<float>()[i];
  auto lossAt = [&](float x) {
    inputs[number].data<float>()[i] = x;
    return toDoubles(loss.run(inputs).at(0)).at(0);
  };
  const double near = lossAt(at + h) - lossAt(at - h);
  const double far = lossAt(at + 2 * h) - lossAt(at - 2 * h);
  return (8 * near - far) / (12 * h);
}

TEST_P(Gradients, AreDifferencesOfTheLoss) {
  Running loss = runOnReference(std::nullopt);
  Running both = runOnReference(GradientPolicy::Recompute);
  const std::vector<HostTensor> inputs =
      function.makeInputs(both.program, goldenRows);
  const Results results = both.run(inputs);
  ASSERT_EQ(results.size(), 1 + function.wanted.size());
  EXPECT_EQ(toDoubles(results[0]), toDoubles(loss.run(inputs)[0]));
  for (auto [place, number] : llvm::enumerate(function.wanted)) {
    // Steps of rounded numbers are none.
    if (inputs[number].type != DataType::F32 ||
        function.name == "rounded_casts")
      continue;
    const std::vector<double> gradient = toDoubles(results[1 + place]);
    const auto count = static_cast<int64_t>(gradient.size());
    const int64_t each = count > mostElements ? count / 24 + 1 : 1;
    for (int64_t i = 0; i < count; i += each)
      EXPECT_NEAR(gradient[i], differenceAt(loss, inputs, number, i),
                  2e-3 * largest(gradient) + 3e-4)
          << "element " << i << " of argument " << number;
  }
}

TEST_P(Gradients, ArePyTorchs) {
  std::ifstream stream(folder + "/torch.json");
  const auto goldens = nlohmann::json::parse(stream);
  if (function.name.starts_with("blocks_"))
    GTEST_SKIP() << "PyTorch has no such weights";
  ASSERT_TRUE(goldens.contains(function.name))
      << "run test/conformance/gradients/torch_gradients.py";
  const nlohmann::json &golden = goldens[function.name];
  for (GradientPolicy policy :
       {GradientPolicy::Recompute, GradientPolicy::Store}) {
    Running both = runOnReference(policy);
    const Results results =
        both.run(function.makeInputs(both.program, goldenRows));
    ASSERT_EQ(results.size(), 1 + function.wanted.size());
    ASSERT_EQ(golden["gradients"].size(), function.wanted.size());
    // What is rounded to bf16 has a loss that PyTorch's is not.
    const double tolerance =
        function.name.starts_with("rounded_") ? 1e-2 : 2e-6;
    const double loss = golden["loss"];
    EXPECT_NEAR(toDoubles(results[0])[0], loss,
                tolerance * (1 + std::fabs(loss)));
    for (size_t place = 0; place < function.wanted.size(); ++place) {
      const std::vector<double> gradient = toDoubles(results[1 + place]);
      const auto expected =
          golden["gradients"][place].get<std::vector<double>>();
      const size_t each = gradient.size() > mostElements ? step : 1;
      ASSERT_EQ((gradient.size() + each - 1) / each, expected.size());
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(gradient[i * each], expected[i],
                    4e-6 * (largest(expected) + 0.1))
            << "element " << i * each << " of gradient " << place;
    }
  }
}

void expectAgrees(Function &function, const std::string &deviceName,
                  GradientPolicy policy, Running &reference,
                  const WeightSource &source) {
  std::unique_ptr<Device> device = test::openTestDevice(deviceName);
  Running tested(*device,
                 function.compile(test::targetFor(*device, deviceName), policy),
                 source);
  const bool hasBlocks = function.name.starts_with("blocks_");
  // Rows may be rounded to 16 bits beside bf16. Matrix units of a GPU multiply
  // f32 as two numbers of bf16.
  const double tolerance = function.name.starts_with("rounded_") ? 1e-2
                           : deviceName == "cuda"                ? 5e-5
                                                                 : 2e-5;
  for (int64_t rows : {1, 5, 19}) {
    const std::vector<HostTensor> inputs =
        function.makeInputs(reference.program, rows);
    const Results expected = reference.run(inputs), found = tested.run(inputs);
    ASSERT_EQ(found.size(), expected.size());
    // Beside blocks they are rounded to 8, and the loss is a sum of such; the
    // gradient of the rows is not.
    for (size_t place = hasBlocks; place < expected.size(); ++place) {
      const std::vector<double> a = toDoubles(found[place]),
                                b = toDoubles(expected[place]);
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], tolerance * (largest(b) + 0.1))
            << "element " << i << " of result " << place << " with " << rows
            << " rows";
    }
  }
}

TEST_P(Gradients, AreTheSameOnCpuComputedAgain) {
  Running both = runOnReference(GradientPolicy::Recompute);
  expectAgrees(function, "cpu", GradientPolicy::Recompute, both, *source);
}

TEST_P(Gradients, AreTheSameOnCpuStored) {
  Running both = runOnReference(GradientPolicy::Recompute);
  expectAgrees(function, "cpu", GradientPolicy::Store, both, *source);
}

TEST_P(Gradients, AreTheSameOnVulkan) {
  KF_REQUIRE_DEVICE("vulkan");
  Running both = runOnReference(GradientPolicy::Recompute);
  expectAgrees(function, "vulkan", GradientPolicy::Recompute, both, *source);
}

TEST_P(Gradients, AreTheSameOnCuda) {
  KF_REQUIRE_DEVICE("cuda");
  Running both = runOnReference(GradientPolicy::Recompute);
  expectAgrees(function, "cuda", GradientPolicy::Recompute, both, *source);
}

class PartsOfRows : public ::testing::TestWithParam<const char *> {};

// Each row is computed by the ops that it was computed by, whose sums may have
// another order where there are fewer rows.
TEST_P(PartsOfRows, HaveTheSameResults) {
  const std::string name = GetParam();
  KF_REQUIRE_DEVICE(name);
  std::unique_ptr<Device> device = test::openTestDevice(name);
  Function function("parts.mlir", "capped_logits");
  const std::string target = test::targetFor(*device, name);
  Executable whole = function.compile(target, GradientPolicy::Recompute);
  Executable parts = function.compile(target, GradientPolicy::Recompute,
                                      /*mostBytes=*/128 * 96 * 4);
  EXPECT_GT(parts.dispatches.size(), whole.dispatches.size());
  const TestWeights source(whole);
  Running expected(*device, std::move(whole), source);
  Running found(*device, std::move(parts), source);
  const std::vector<HostTensor> inputs =
      function.makeInputs(expected.program, 150);
  const Results a = expected.run(inputs), b = found.run(inputs);
  ASSERT_EQ(a.size(), b.size());
  // Matrix units multiply numbers of f32 as two of bf16 each, and threads
  // multiply the few rows of the last part as they are.
  const double tolerance = name == "cuda" ? 5e-5 : 2e-6;
  for (size_t place = 0; place < a.size(); ++place) {
    const std::vector<double> x = toDoubles(a[place]), y = toDoubles(b[place]);
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(y[i], x[i], tolerance * largest(x))
          << "element " << i << " of result " << place;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PartsOfRows,
                         ::testing::Values("reference", "cpu", "vulkan",
                                           "cuda"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

// Whatever the logits of a row are: without its label, nothing depends on them.
TEST(CrossEntropy, HasNoGradientForRowsWithoutLabel) {
  for (const char *name : {"reference", "cpu"}) {
    SCOPED_TRACE(name);
    std::unique_ptr<Device> device = test::openTestDevice(name);
    Function function("losses.mlir", "cross_entropy_of_rows");
    Executable program = function.compile(test::targetFor(*device, name),
                                          GradientPolicy::Recompute);
    const TestWeights source(program);
    Running both(*device, std::move(program), source);
    std::vector<HostTensor> inputs = function.makeInputs(both.program, 3);
    const int64_t columns = inputs[0].shape[1];
    auto *logits = inputs[0].data<float>();
    logits[columns] = std::numeric_limits<float>::quiet_NaN();
    logits[2 * columns] = std::numeric_limits<float>::infinity();
    for (int64_t row : {1, 2})
      inputs[1].data<int32_t>()[row] = -100;
    const std::vector<double> gradient = toDoubles(both.run(inputs).at(1));
    for (int64_t i = columns; i < 3 * columns; ++i)
      EXPECT_EQ(gradient[i], 0) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, Gradients,
                         ::testing::ValuesIn(listFunctions()),
                         [](const auto &info) { return info.param.name; });

} // namespace
