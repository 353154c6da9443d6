//===- ReferenceDeviceTest.cpp - Programs on the reference ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceDevice.h"

#include "ReferenceTestUtils.h"
#include "test/runtime/DeviceSteps.h"

namespace kf {
namespace {

using reference::expectError;
using test::readAndWait;
using test::runAndWait;
using test::writeAndWait;

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

  Status step(Instance &instance, int64_t nTokens, int64_t pages = kPages) {
    int64_t scalars[KF_SCALAR_COUNT] = {nTokens, pages};
    return runAndWait(*device, instance, scalars);
  }

  std::unique_ptr<LoadedProgram> load() {
    Result<std::unique_ptr<LoadedProgram>> program = device->load(executable);
    EXPECT_TRUE(program.ok()) << program.message();
    return program.ok() ? program.take() : nullptr;
  }

  template <typename T> void write(Buffer &buffer, std::vector<T> values) {
    Status status = writeAndWait(*device, buffer, 0, values.data(),
                                 values.size() * sizeof(T));
    ASSERT_TRUE(status.ok()) << status.message();
  }

  std::vector<float> read(Buffer &buffer, size_t count) {
    std::vector<float> values(count);
    Status status =
        readAndWait(*device, buffer, 0, values.data(), count * sizeof(float));
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
  std::unique_ptr<Instance> instance = program->bind(table()).take();
  write<float>(*x, {1, 2, 3, 4});
  write<int32_t>(*ids, {0, 1});
  Status status = step(*instance, 2);
  ASSERT_TRUE(status.ok()) << status.message();
  // Rows (2, 2) and (6, 4); with scale 0 attention is the mean of what it sees.
  EXPECT_EQ(read(*out, 4), (std::vector<float>{2, 2, 4, 3}));
  write<float>(*x, {5, 6});
  write<int32_t>(*ids, {2});
  status = step(*instance, 1);
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

TEST_F(ReferenceDeviceTest, ChecksWhatItRunsWith) {
  std::unique_ptr<LoadedProgram> program = load();
  ASSERT_TRUE(program);
  std::unique_ptr<Instance> instance = program->bind(table()).take();
  expectError(step(*instance, 0), "1 to 4");
  expectError(step(*instance, 5), "1 to 4");
  expectError(step(*instance, -1), "1 to 4");
  expectError(step(*instance, 1, 0), "a cache of 0 pages");
  expectError(step(*instance, 1, 3), "cache 0 needs 192 bytes");
  expectError(step(*instance, 1, INT64_MAX - 1), "more elements than");
  expectError(runAndWait(*device, *instance, std::vector<int64_t>{1}),
              "8 scalars, not 1");
  BindingTable other = table();
  std::unique_ptr<Buffer> small = allocate(4);
  other.outputs[0] = small.get();
  instance = program->bind(other).take();
  expectError(step(*instance, 1), "output 0 needs 8 bytes");
}

TEST_F(ReferenceDeviceTest, FindsPagesThatThereAreNot) {
  std::unique_ptr<LoadedProgram> program = load();
  ASSERT_TRUE(program);
  std::unique_ptr<Instance> instance = program->bind(table()).take();
  write<int32_t>(*ids, {3});
  write<int32_t>(*pageTable, {0, 2});
  expectError(step(*instance, 1),
              "kernel 'project': op 2 (kf.kv_append): "
              "kf.kv_append C5: page 1 of sequence 0 is 2 of a "
              "cache of 2 pages");
  write<int32_t>(*sequences, {1});
  expectError(step(*instance, 1),
              "row 0 belongs to sequence 1, but the page table has 1");
}

/// What a kernel finds wrong ends the stream's work, and that of streams that
/// wait for it, until it was reported.
TEST_F(ReferenceDeviceTest, ErrorsOfKernelsEndTheStreamsWork) {
  executable.arenaBytes = 64 + 2 * sizeof(float); // one row
  arena = allocate(executable.arenaBytes);
  std::unique_ptr<LoadedProgram> program = load();
  ASSERT_TRUE(program);
  std::unique_ptr<Instance> instance = program->bind(table()).take();
  std::unique_ptr<Stream> stream = device->createStream().take();
  std::unique_ptr<Stream> waiting = device->createStream().take();
  std::unique_ptr<Event> before = device->createEvent().take();
  std::unique_ptr<Event> after = device->createEvent().take();
  int64_t scalars[KF_SCALAR_COUNT] = {2, kPages};
  write<float>(*out, std::vector<float>(8, -1));
  ASSERT_TRUE(stream->record(*before).ok());
  ASSERT_TRUE(stream->enqueue(*instance, scalars).ok());
  ASSERT_TRUE(stream->fill(*out, 0, 32, 0).ok());
  ASSERT_TRUE(stream->record(*after).ok());
  ASSERT_TRUE(waiting->wait(*before).ok());
  ASSERT_TRUE(waiting->fill(*x, 0, 4, 0x3f800000).ok());
  EXPECT_TRUE(waiting->synchronize().ok());
  ASSERT_TRUE(waiting->wait(*after).ok());
  ASSERT_TRUE(waiting->fill(*x, 4, 4, 0x3f800000).ok());
  const char *message = "kernel 'project': result 0: its memory has 8 of 16";
  expectError(waiting->synchronize(), message);
  expectError(after->synchronize(), message);
  EXPECT_TRUE(before->synchronize().ok());
  EXPECT_EQ(read(*x, 2), (std::vector<float>{1, 0}));
  expectError(stream->synchronize(), message);
  EXPECT_EQ(read(*out, 1), std::vector<float>{-1});
  scalars[KF_SCALAR_N_TOKENS] = 1;
  ASSERT_TRUE(stream->enqueue(*instance, scalars).ok());
  EXPECT_EQ(stream->synchronize().message(), "");
}

TEST_F(ReferenceDeviceTest, RejectsExecutablesThatDoNotFit) {
  auto expectLoadError = [&](auto change, const std::string &message) {
    executable = makeExecutable();
    change();
    expectError(device->load(executable), message);
  };
  auto &e = executable;
  expectLoadError([&] { e.target = "cpu"; }, "compiled for 'cpu'");
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
