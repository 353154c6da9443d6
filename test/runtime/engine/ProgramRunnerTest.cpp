//===- ProgramRunnerTest.cpp - One program, its inputs and weights --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/ProgramRunner.h"

#include "runtime/devices/Reference/ReferenceDevice.h"
#include "test/runtime/DeviceSteps.h"
#include "test/runtime/FakeDevice.h"

#include <gtest/gtest.h>

using namespace kf;
using kf::test::FakeSource;

namespace {

/// y = x + x w^T for x [?, 2], w [2, 2], in the reference's kernel code.
Executable addMatmul() {
  Executable executable;
  executable.target = "reference";
  executable.programName = "f";
  executable.maxTokens = 4;
  executable.arenaBytes = 64;
  executable.kernels = {{"matmul", 0, {1, 1, 1}}, {"add", 0, {1, 1, 1}}};
  WeightSpec weight;
  weight.names = {"w"};
  weight.shape = {2, 2};
  executable.weights = {weight};
  executable.inputs = executable.outputs = {{DataType::F32, {-1, 2}}};
  DispatchSpec matmul, add;
  matmul.bindings = {{KF_BINDING_INPUT, 0, 0},
                     {KF_BINDING_WEIGHT, 0, 0},
                     {KF_BINDING_ARENA, 0, 0}};
  add.kernel = 1;
  add.bindings = {{KF_BINDING_INPUT, 0, 0},
                  {KF_BINDING_ARENA, 0, 0},
                  {KF_BINDING_OUTPUT, 0, 0}};
  executable.dispatches = {matmul, add};
  executable.binary = R"([
    {"name": "matmul",
     "arguments": [{"tensor": "f32", "shape": [-1, 2]},
                   {"tensor": "f32", "shape": [2, 2]}],
     "ops": [{"name": "kf.matmul", "operands": [0, 1],
              "results": [{"id": 2,
                           "type": {"tensor": "f32", "shape": [-1, 2]}}],
              "attributes": {}}],
     "results": [2]},
    {"name": "add",
     "arguments": [{"tensor": "f32", "shape": [-1, 2]},
                   {"tensor": "f32", "shape": [-1, 2]}],
     "ops": [{"name": "arith.addf", "operands": [0, 1],
              "results": [{"id": 2,
                           "type": {"tensor": "f32", "shape": [-1, 2]}}],
              "attributes": {}}],
     "results": [2]}])";
  return executable;
}

HostTensor floats(std::vector<int64_t> shape, std::vector<float> values) {
  HostTensor tensor = *HostTensor::zeros(DataType::F32, std::move(shape));
  EXPECT_EQ(tensor.elementCount(), static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

std::vector<float> valuesOf(const HostTensor &tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.elementCount()};
}

/// addMatmul() on the reference device, w being [[1, 2], [3, 4]].
struct Fixture {
  Fixture() : device(createReferenceDevice()) {
    source.tensors["w"] = {DataType::F32, {2, 2}, w, sizeof(w)};
    weights = std::make_unique<WeightStore>(*device, &source);
    cache = std::make_unique<KVCache>(*device, 1, kCachePage);
    auto made = ProgramRunner::create(addMatmul(), *device, *weights, *cache);
    EXPECT_TRUE(made.ok()) << made.message();
    if (made.ok())
      runner = made.take();
  }

  /// The error for one input.
  std::string errorOf(const HostTensor &input,
                      std::optional<int64_t> nTokens = {}) {
    auto result = runner->run({&input, 1}, nTokens);
    EXPECT_FALSE(result.ok());
    return result.message();
  }

  alignas(64) float w[4] = {1, 2, 3, 4};
  std::unique_ptr<Device> device;
  FakeSource source;
  std::unique_ptr<WeightStore> weights;
  std::unique_ptr<KVCache> cache;
  std::unique_ptr<ProgramRunner> runner;
};

TEST(ProgramRunner, Runs) {
  Fixture fixture;
  for (int round = 0; round < 2; ++round) {
    HostTensor x = floats({2, 2}, {1, 0, 1, 1});
    auto y = fixture.runner->run({&x, 1});
    ASSERT_TRUE(y.ok()) << y.message();
    ASSERT_EQ(y->size(), 1u);
    EXPECT_EQ((*y)[0].shape, (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(valuesOf((*y)[0]), (std::vector<float>{2, 3, 4, 8}));
  }
  EXPECT_EQ(fixture.runner->arenaBytes(), 64u);
  EXPECT_EQ(fixture.runner->ioBytes(), 2u * 64);
}

/// What one program gives is read by another where it is, and written to where
/// a third one is to find it.
TEST(ProgramRunner, BindsOutsideBuffers) {
  Fixture fixture;
  const auto stream = fixture.device->createStream().take();
  const auto loaded = fixture.device->load(addMatmul()).take();
  auto create = [&](const OutsideBuffers &outside) {
    return ProgramRunner::create(*loaded, *fixture.device, *fixture.weights,
                                 *fixture.cache, stream.get(), outside)
        .take();
  };
  const auto first = create({});
  EXPECT_EQ(first->ioBytes(), 2u * 64);
  const auto target = fixture.device->allocate(16).take(); // two rows
  const auto second = create(
      {.inputs = {{0, &first->output(0)}}, .outputs = {{0, target.get()}}});
  EXPECT_EQ(second->ioBytes(), 0u);
  EXPECT_EQ(&second->output(0), target.get());
  const float x[4] = {1, 0, 1, 1};
  ASSERT_TRUE(first->write(0, x, sizeof(x)).ok());
  ASSERT_TRUE(first->start(StepSizes(2)).ok());
  ASSERT_TRUE(second->start(StepSizes(2)).ok());
  const auto read = second->read(0, 0, 16);
  ASSERT_TRUE(stream->synchronize().ok());
  const float *values = static_cast<const float *>(*read);
  // (2, 3) and (4, 8) once more.
  EXPECT_EQ(std::vector<float>(values, values + 4),
            (std::vector<float>{10, 21, 24, 52}));
  EXPECT_EQ(second->start(StepSizes(3)).message(),
            "output 0 needs 24 bytes for 3 tokens; its buffer has 16");
}

TEST(ProgramRunner, WrongInputs) {
  Fixture fixture;
  EXPECT_EQ(fixture.runner->run({}).message(),
            "0 inputs are given, but the program takes 1: ?x2xf32");
  EXPECT_EQ(fixture.errorOf(floats({2, 3}, {1, 2, 3, 4, 5, 6})),
            "input 0 is 2x3xf32, but the program takes ?x2xf32");
  EXPECT_EQ(fixture.errorOf(floats({2}, {1, 2})),
            "input 0 is 2xf32, but the program takes ?x2xf32");
  EXPECT_EQ(fixture.errorOf(*HostTensor::zeros(DataType::F16, {2, 2})),
            "input 0 is 2x2xf16, but the program takes ?x2xf32");
  EXPECT_EQ(fixture.errorOf(floats({5, 2}, std::vector<float>(10))),
            "program 'f': a step of 5 tokens; the program takes 1 to 4");
  EXPECT_EQ(fixture.errorOf(floats({0, 2}, {})),
            "program 'f': a step of 0 tokens; the program takes 1 to 4");
  EXPECT_EQ(fixture.errorOf(floats({1, 2}, {1, 2}), 2),
            "input 0 has 1 rows where 2 are expected");
  HostTensor torn = floats({2, 2}, {1, 2, 3, 4});
  torn.bytes.pop_back();
  EXPECT_EQ(fixture.errorOf(torn),
            "input 0 has 15 bytes for the shape 2x2xf32");
}

TEST(ProgramRunner, WrongExecutables) {
  Fixture fixture;
  auto errorOf = [&](auto change) {
    Executable executable = addMatmul();
    change(executable);
    auto made = ProgramRunner::create(std::move(executable), *fixture.device,
                                      *fixture.weights, *fixture.cache);
    EXPECT_FALSE(made.ok());
    return made.message();
  };
  EXPECT_EQ(errorOf([](Executable &e) { e.weights[0].names = {"v"}; }),
            "program 'f': there is no tensor 'v'");
  EXPECT_NE(errorOf([](Executable &e) {
              e.dispatches[0].kernel = 9;
            }).find("program 'f': dispatch 0"),
            std::string::npos);
  EXPECT_NE(errorOf([](Executable &e) { e.target = "cpu"; }).find("cpu"),
            std::string::npos);
  WeightStore none(*fixture.device, nullptr);
  auto made =
      ProgramRunner::create(addMatmul(), *fixture.device, none, *fixture.cache);
  EXPECT_EQ(made.message(), "program 'f': the program needs weight 'w', but "
                            "there is no checkpoint");
}

} // namespace
