//===- ReferenceDeviceTest.cpp - Programs on the reference ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/reference/ReferenceDevice.h"

#include "ReferenceTestUtils.h"

namespace kf {
namespace {

using reference::expectError;

/// Two kernels. "project": x [?, 2] and a weight [2, 2] give y [?, 1, 2] (in
/// the arena), which is appended to layer 0 of a cache of one layer as key and
/// value. "attend": the attention of y to that layer, over positions [?].
const char *kCode = R"([
  {"name": "project",
   "arguments": [
     {"tensor": "f32", "shape": [-1, 2]},
     {"tensor": "f32", "shape": [2, 2]},
     {"cache": {"layers": 1, "kv_heads": 1, "head_dim": 2, "type": "f32",
                "key_block": 2, "page": 2}},
     {"tensor": "i32", "shape": [-1]},
     {"tensor": "i32", "shape": [-1]},
     {"tensor": "i32", "shape": [1, 2]}],
   "ops": [
     {"name": "kf.matmul", "operands": [0, 1],
      "results": [{"id": 10, "type": {"tensor": "f32", "shape": [-1, 2]}}],
      "attributes": {}},
     {"name": "tensor.expand_shape", "operands": [10],
      "results": [{"id": 11, "type": {"tensor": "f32", "shape": [-1, 1, 2]}}]},
     {"name": "kf.kv_append", "operands": [2, 11, 11, 3, 4, 5], "results": [],
      "attributes": {"layer": 0}}],
   "results": [11]},
  {"name": "attend",
   "arguments": [
     {"tensor": "f32", "shape": [-1, 1, 2]},
     {"cache": {"layers": 1, "kv_heads": 1, "head_dim": 2, "type": "f32",
                "key_block": 2, "page": 2}},
     {"tensor": "i32", "shape": [-1]},
     {"tensor": "i32", "shape": [-1]},
     {"tensor": "i32", "shape": [1, 2]}],
   "ops": [
     {"name": "kf.attention", "operands": [0, 1, 2, 3, 4],
      "results": [{"id": 5, "type": {"tensor": "f32", "shape": [-1, 1, 2]}}],
      "attributes": {"layer": 0, "scale": 0.0}}],
   "results": [5]}])";

/// The program of both kernels on layer 1 of a cache of two layers.
Executable makeExecutable() {
  Executable executable;
  executable.target = "reference";
  executable.programName = "step";
  executable.maxTokens = 4;
  executable.arenaBytes = 64 + 4 * 2 * sizeof(float);
  executable.kernels = {{"project"}, {"attend"}};
  WeightSpec weight;
  weight.names = {"w"};
  weight.shape = {2, 2};
  executable.weights = {weight};
  executable.caches = {{DataType::F32, 2, 1, 2, 2, 2}};
  executable.inputs = {{DataType::F32, {-1, 2}},
                       {DataType::I32, {-1}},
                       {DataType::I32, {-1}},
                       {DataType::I32, {1, 2}}};
  executable.outputs = {{DataType::F32, {-1, 1, 2}}};
  DispatchSpec project, attend;
  project.kernel = 0;
  project.bindings = {{KF_BINDING_INPUT, 0, 0}, {KF_BINDING_WEIGHT, 0, 0},
                      {KF_BINDING_CACHE, 0, 1}, {KF_BINDING_INPUT, 1, 0},
                      {KF_BINDING_INPUT, 2, 0}, {KF_BINDING_INPUT, 3, 0},
                      {KF_BINDING_ARENA, 0, 64}};
  attend.kernel = 1;
  attend.bindings = {{KF_BINDING_ARENA, 0, 64}, {KF_BINDING_CACHE, 0, 1},
                     {KF_BINDING_INPUT, 1, 0},  {KF_BINDING_INPUT, 2, 0},
                     {KF_BINDING_INPUT, 3, 0},  {KF_BINDING_OUTPUT, 0, 0}};
  executable.dispatches = {project, attend};
  executable.binary = kCode;
  return executable;
}

class ReferenceDeviceTest : public testing::Test {
protected:
  static constexpr int64_t kPages = 2;

  void SetUp() override {
    arena = allocate(executable.arenaBytes);
    cache = allocate(2 * kPages * 2 * 2 * 2 * sizeof(float));
    ids = allocate(4 * sizeof(int32_t));
    sequences = allocate(4 * sizeof(int32_t));
    pageTable = allocate(2 * sizeof(int32_t));
    write<int32_t>(*pageTable, {1, 0});
    x = allocate(4 * 2 * sizeof(float));
    out = allocate(4 * 2 * sizeof(float));
    Result<std::unique_ptr<Buffer>> wrapped =
        device->wrap(weights, sizeof(weights));
    ASSERT_TRUE(wrapped.ok()) << wrapped.message();
    weight = wrapped.take();
  }

  std::unique_ptr<Buffer> allocate(uint64_t bytes) {
    Result<std::unique_ptr<Buffer>> buffer = device->allocate(bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.message();
    return buffer.take();
  }

  BindingTable table() {
    return {arena.get(),
            {weight.get()},
            {cache.get()},
            {x.get(), ids.get(), sequences.get(), pageTable.get()},
            {out.get()}};
  }

  Status step(LoadedProgram &program, int64_t nTokens, int64_t pages = kPages) {
    int64_t scalars[KF_SCALAR_COUNT] = {nTokens, pages};
    return program.run(scalars);
  }

  std::unique_ptr<LoadedProgram> load() {
    Result<std::unique_ptr<LoadedProgram>> program = device->load(executable);
    EXPECT_TRUE(program.ok()) << program.message();
    return program.ok() ? program.take() : nullptr;
  }

  template <typename T> void write(Buffer &buffer, std::vector<T> values) {
    Status status =
        device->write(buffer, 0, values.data(), values.size() * sizeof(T));
    ASSERT_TRUE(status.ok()) << status.message();
  }

  std::vector<float> read(Buffer &buffer, size_t count) {
    std::vector<float> values(count);
    Status status =
        device->read(buffer, 0, values.data(), count * sizeof(float));
    EXPECT_TRUE(status.ok()) << status.message();
    return values;
  }

  const float weights[4] = {2, 0, 0, 1};
  Executable executable = makeExecutable();
  std::unique_ptr<Device> device = createReferenceDevice();
  std::unique_ptr<Buffer> arena, weight, cache, ids, sequences, pageTable, x,
      out;
};

TEST_F(ReferenceDeviceTest, RunsAProgramStepByStep) {
  std::unique_ptr<LoadedProgram> program = load();
  ASSERT_TRUE(program);
  Status status = program->bind(table());
  ASSERT_TRUE(status.ok()) << status.message();
  write<float>(*x, {1, 2, 3, 4});
  write<int32_t>(*ids, {0, 1});
  status = step(*program, 2);
  ASSERT_TRUE(status.ok()) << status.message();
  // Rows (2, 2) and (6, 4); with scale 0 attention is the mean of what it sees.
  EXPECT_EQ(read(*out, 4), (std::vector<float>{2, 2, 4, 3}));
  write<float>(*x, {5, 6});
  write<int32_t>(*ids, {2});
  status = step(*program, 1);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(read(*out, 2), (std::vector<float>{6, 4}));
  // Layer 0 is untouched; a page of layer 1 has keys in a block of 2, then
  // values. The first page of the sequence is the second of the cache.
  EXPECT_EQ(
      read(*cache, 32),
      (std::vector<float>{0,  0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                          10, 0, 6, 0, 10, 6, 0, 0, 2, 6, 2, 4, 2, 2, 6, 4}));
}

TEST_F(ReferenceDeviceTest, DescribesItself) {
  EXPECT_EQ(device->name(), "reference");
  EXPECT_EQ(device->description().find('\n'), std::string::npos);
}

TEST_F(ReferenceDeviceTest, ChecksReadsAndWrites) {
  float value = 1;
  expectError(device->write(*out, 32, &value, 4), "not in a buffer of 32");
  expectError(device->write(*out, UINT64_MAX, &value, 4), "not in a buffer");
  expectError(device->read(*out, 30, &value, 4), "not in a buffer");
  expectError(device->read(*out, 4, &value, UINT64_MAX), "not in a buffer");
  expectError(device->write(*weight, 0, &value, 4), "wraps memory");
  expectError(device->wrap(nullptr, 4), "no memory to wrap");
  expectError(device->allocate(UINT64_MAX), "no memory");
  EXPECT_TRUE(device->write(*out, 32, nullptr, 0).ok());
}

TEST_F(ReferenceDeviceTest, ChecksWhatItRunsWith) {
  std::unique_ptr<LoadedProgram> program = load();
  ASSERT_TRUE(program);
  expectError(step(*program, 1), "before its buffers are bound");
  ASSERT_TRUE(program->bind(table()).ok());
  expectError(step(*program, 0), "1 to 4");
  expectError(step(*program, 5), "1 to 4");
  expectError(step(*program, -1), "1 to 4");
  expectError(step(*program, 1, 0), "a cache of 0 pages");
  expectError(step(*program, 1, 3), "argument 2: its memory has 128 of 192");
  expectError(step(*program, 1, INT64_MAX - 1), "argument 2");
  expectError(program->run(std::vector<int64_t>{1}), "1 scalars of 8");
}

TEST_F(ReferenceDeviceTest, FindsPagesThatThereAreNot) {
  std::unique_ptr<LoadedProgram> program = load();
  ASSERT_TRUE(program);
  ASSERT_TRUE(program->bind(table()).ok());
  write<int32_t>(*ids, {3});
  write<int32_t>(*pageTable, {0, 2});
  expectError(step(*program, 1),
              "kernel 'project': op 2 (kf.kv_append): "
              "kf.kv_append C5: page 1 of sequence 0 is 2 of a "
              "cache of 2 pages");
  write<int32_t>(*sequences, {1});
  expectError(step(*program, 1),
              "row 0 belongs to sequence 1, but the page table has 1");
}

TEST_F(ReferenceDeviceTest, ChecksItsBuffers) {
  std::unique_ptr<LoadedProgram> program = load();
  ASSERT_TRUE(program);
  BindingTable bad = table();
  bad.arena = nullptr;
  expectError(program->bind(bad), "arena has no buffer");
  expectError(step(*program, 1), "before its buffers are bound");
  bad = table();
  bad.inputs.pop_back();
  expectError(program->bind(bad), "input 3 has no buffer");
  bad = table();
  bad.caches[0] = weight.get();
  expectError(program->bind(bad), "cache 0 is written to");
  bad = table();
  std::unique_ptr<Buffer> small = allocate(32);
  bad.arena = small.get();
  expectError(program->bind(bad), "arena: bytes 64");
  bad = table();
  bad.outputs[0] = weight.get();
  expectError(program->bind(bad), "output 0 is written to");
  bad = table();
  small = allocate(12);
  bad.weights[0] = small.get();
  ASSERT_TRUE(program->bind(bad).ok());
  expectError(step(*program, 1), "kernel 'project': argument 1: its memory has "
                                 "12 of 16 bytes");
  bad = table();
  small = allocate(4);
  bad.outputs[0] = small.get();
  ASSERT_TRUE(program->bind(bad).ok());
  expectError(step(*program, 1), "result 0: its memory has 4 of 8 bytes");
}

TEST_F(ReferenceDeviceTest, RejectsBuffersOfOtherDevices) {
  class ForeignBuffer : public Buffer {
  public:
    ForeignBuffer() : Buffer(1024) {}
  } foreign;
  std::unique_ptr<LoadedProgram> program = load();
  ASSERT_TRUE(program);
  BindingTable bad = table();
  bad.inputs[0] = &foreign;
  expectError(program->bind(bad), "input 0 is a buffer of another device");
  float value;
  expectError(device->read(foreign, 0, &value, 4), "another device");
}

TEST_F(ReferenceDeviceTest, RejectsExecutablesThatDoNotFit) {
  auto expectLoadError = [&](auto change, const std::string &message) {
    executable = makeExecutable();
    change();
    expectError(device->load(executable), message);
  };
  auto &e = executable;
  expectLoadError([&] { e.target = "cpu"; }, "target 'cpu'");
  expectLoadError([&] { e.binary = "[{]"; }, "kernel code: ");
  expectLoadError([&] { e.binary = "{}"; }, "not an array of 2 kernels");
  expectLoadError([&] { e.kernels.pop_back(), e.dispatches.pop_back(); },
                  "not an array of 1 kernels");
  expectLoadError([&] { e.kernels[1].name = "other"; },
                  "'attend' where the executable has 'other'");
  expectLoadError([&] { e.dispatches[0].kernel = 2; }, "no kernel 2");
  expectLoadError([&] { e.dispatches[1].bindings.pop_back(); },
                  "dispatch 1: it has 5 bindings; kernel 'attend' has 6");
  expectLoadError([&] { e.dispatches[0].bindings[0].kind = KF_BINDING_CACHE; },
                  "binding 0 is a cache");
  expectLoadError(
      [&] { e.dispatches[0].bindings[2] = {KF_BINDING_INPUT, 0, 0}; },
      "binding 2 is not a cache");
  expectLoadError([&] { e.caches[0].headDim = 4; },
                  "cache 0 does not hold the cache");
  expectLoadError([&] { e.dispatches[0].bindings[2].offset = 2; },
                  "dispatch 0");
  expectLoadError([&] { e.dispatches[0].bindings[2].offset = UINT64_MAX; },
                  "dispatch 0");
  expectLoadError(
      [&] { e.dispatches[1].bindings[5] = {KF_BINDING_WEIGHT, 0, 0}; },
      "it writes to weight 0");
  expectLoadError(
      [&] { e.binary.replace(e.binary.find("kf.matmul"), 9, "kf.mutmal"); },
      "reference device: no reference for op 'kf.mutmal'");
  expectLoadError([&] { e.binary.assign(100000, '['); }, "kernel code: ");
}

} // namespace
} // namespace kf
