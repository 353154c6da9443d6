//===- CpuDeviceTest.cpp - Programs on the host's cores -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cpu/CpuDevice.h"

#include "runtime/core/EventCount.h"
#include "test/runtime/DeviceSteps.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

using namespace kf;
using kf::test::readAndWait;
using kf::test::runAndWait;
using kf::test::writeAndWait;

namespace {

std::string readFile(const char *path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

using Scalars = std::vector<int64_t>;

Scalars scalarsFor(int64_t tokens, int64_t capacity = 0) {
  Scalars scalars(KF_SCALAR_COUNT, 0);
  scalars[KF_SCALAR_N_TOKENS] = tokens;
  scalars[KF_SCALAR_CACHE_PAGES] = capacity;
  return scalars;
}

/// An executable over the test's object with the given kernels.
Executable withKernels(std::vector<std::string> names,
                       const char *object = KF_TEST_KERNELS) {
  Executable executable;
  executable.target = "cpu";
  executable.programName = "test";
  executable.binary = readFile(object);
  for (std::string &name : names)
    executable.kernels.push_back({std::move(name), 4096, {1, 1, 1}});
  return executable;
}

std::unique_ptr<Device> makeDevice(int threads) {
  Result<std::unique_ptr<Device>> device = createCpuDevice({threads});
  EXPECT_TRUE(device.ok()) << device.message();
  return device.ok() ? device.take() : nullptr;
}

template <typename T> T *dataOf(Buffer &buffer) {
  return static_cast<T *>(buffer.hostPointer());
}

class CpuDeviceTest : public testing::TestWithParam<int> {};

/// Rows through a weight, with a grid that follows n_tokens.
TEST_P(CpuDeviceTest, DynamicGrid) {
  std::unique_ptr<Device> device = makeDevice(GetParam());
  Executable executable = withKernels({"scale_rows"});
  executable.maxTokens = 100;
  executable.inputs = executable.outputs = {{DataType::F32, {-1, 16}}};
  WeightSpec weight;
  weight.names = {"w"};
  weight.shape = {16};
  executable.weights = {weight};
  DispatchSpec dispatch;
  dispatch.bindings = {{KF_BINDING_INPUT, 0, 0},
                       {KF_BINDING_WEIGHT, 0, 0},
                       {KF_BINDING_OUTPUT, 0, 0}};
  dispatch.grid[1] = {KF_SCALAR_N_TOKENS, 4};
  executable.dispatches = {dispatch};
  Result<std::unique_ptr<LoadedProgram>> program = device->load(executable);
  ASSERT_TRUE(program.ok()) << program.message();

  float weights[16];
  for (int c = 0; c < 16; ++c)
    weights[c] = c - 3.0f;
  std::unique_ptr<Buffer> w = device->wrap(weights, sizeof(weights)).take();
  std::unique_ptr<Buffer> x = device->allocate(100 * 16 * 4).take();
  std::unique_ptr<Buffer> y = device->allocate(100 * 16 * 4).take();
  for (int i = 0; i < 1600; ++i)
    dataOf<float>(*x)[i] = i;
  BindingTable table;
  table.weights = {w.get()};
  table.inputs = {x.get()};
  table.outputs = {y.get()};
  std::unique_ptr<Instance> instance = (*program)->bind(table).take();
  for (int64_t tokens : {1, 100, 3, 1, 1, 17, 100}) {
    std::vector<float> unset(1600, -1.0f), result(1600);
    ASSERT_TRUE(writeAndWait(*device, *y, 0, unset.data(), 6400).ok());
    ASSERT_EQ(runAndWait(*device, *instance, scalarsFor(tokens)).message(), "");
    ASSERT_TRUE(readAndWait(*device, *y, 0, result.data(), 6400).ok());
    for (int64_t i = 0; i < 1600; ++i)
      ASSERT_EQ(result[i], i / 16 < tokens ? i * weights[i % 16] : -1.0f);
  }
  EXPECT_EQ(runAndWait(*device, *instance, scalarsFor(0)).message(),
            "a step of 0 tokens; the program takes 1 to 100");
  EXPECT_FALSE(runAndWait(*device, *instance, scalarsFor(101)).ok());
  EXPECT_FALSE(runAndWait(*device, *instance, Scalars(3, 1)).ok());
}

/// Every workgroup of every dispatch exactly once, run after run.
TEST_P(CpuDeviceTest, EachWorkgroupRunsOnce) {
  std::unique_ptr<Device> device = makeDevice(GetParam());
  Executable executable = withKernels({"count_runs"});
  const int64_t grids[] = {1, 2, 3, 64, 1000, 1, 7, 5};
  uint64_t offset = 0;
  std::vector<uint64_t> offsets;
  for (int64_t grid : grids) {
    DispatchSpec dispatch;
    dispatch.bindings = {{KF_BINDING_ARENA, 0, offset}};
    dispatch.grid[2] = {-1, grid};
    executable.dispatches.push_back(dispatch);
    offsets.push_back(offset);
    offset += (grid * 8 + 63) / 64 * 64;
  }
  executable.arenaBytes = offset;
  std::unique_ptr<Buffer> arena = device->allocate(offset).take();
  std::unique_ptr<LoadedProgram> program = device->load(executable).take();
  BindingTable table;
  table.arena = arena.get();
  std::unique_ptr<Instance> instance = program->bind(table).take();
  for (int64_t run = 1; run <= 500; ++run) {
    if (run % 100 == 0) // workers fall asleep
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_TRUE(runAndWait(*device, *instance, scalarsFor(1)).ok());
    for (size_t d = 0; d < offsets.size(); ++d)
      for (int64_t i = 0; i < grids[d]; ++i)
        ASSERT_EQ(dataOf<int64_t>(*arena)[offsets[d] / 8 + i], run)
            << "dispatch " << d << ", workgroup " << i;
  }
}

/// A chain of dispatches, each of which needs all of the one before.
TEST_P(CpuDeviceTest, DispatchesRunInOrder) {
  std::unique_ptr<Device> device = makeDevice(GetParam());
  Executable executable = withKernels({"add_all"});
  constexpr int length = 40;
  executable.arenaBytes = 2 * 512;
  for (int i = 0; i < length; ++i) {
    DispatchSpec dispatch;
    uint64_t from = i % 2 ? 512 : 0;
    dispatch.bindings = {{KF_BINDING_ARENA, 0, from},
                         {KF_BINDING_ARENA, 0, 512 - from}};
    dispatch.grid[0] = {-1, 8};
    dispatch.grid[1] = {-1, 8};
    executable.dispatches.push_back(dispatch);
  }
  std::unique_ptr<Buffer> arena = device->allocate(1024).take();
  std::unique_ptr<LoadedProgram> program = device->load(executable).take();
  std::unique_ptr<LoadedProgram> other = device->load(executable).take();
  BindingTable table;
  table.arena = arena.get();
  std::unique_ptr<Instance> instance = program->bind(table).take();
  std::unique_ptr<Instance> second = other->bind(table).take();
  int64_t expected = 0;
  for (int run = 0; run < 1000; ++run) {
    // Two programs in turn: workers may still be on their way out of one.
    Instance &current = run % 3 ? *instance : *second;
    ASSERT_TRUE(runAndWait(*device, current, scalarsFor(1)).ok());
    for (int i = 0; i < length; ++i)
      expected = 1 + 64 * expected % 1000003;
    for (int i = 0; i < 64; ++i)
      ASSERT_EQ(dataOf<int64_t>(*arena)[i], expected) << "run " << run;
  }
}

/// Whoever sets the flag, no dispatch after the one that is going on begins,
/// and later runs do all of theirs.
TEST_P(CpuDeviceTest, CancelledBetweenDispatches) {
  std::unique_ptr<Device> device = makeDevice(GetParam());
  Executable executable = withKernels({"count_runs", "set_flag"});
  constexpr int64_t width = 64;
  constexpr int before = 5, after = 20;
  DispatchSpec count, set;
  count.grid[0] = {-1, width};
  set.kernel = 1;
  set.bindings = {{KF_BINDING_OUTPUT, 0, 0}};
  for (int i = 0; i < before + after; ++i) {
    if (i == before)
      executable.dispatches.push_back(set);
    count.bindings = {{KF_BINDING_ARENA, 0, i * width * sizeof(int64_t)}};
    executable.dispatches.push_back(count);
  }
  executable.arenaBytes = (before + after) * width * sizeof(int64_t);
  executable.outputs = {{DataType::F32, {1}}};
  std::unique_ptr<Buffer> arena =
      device->allocate(executable.arenaBytes).take();
  std::unique_ptr<Buffer> output = device->allocate(4).take();
  std::unique_ptr<LoadedProgram> program = device->load(executable).take();
  BindingTable table;
  table.arena = arena.get();
  table.outputs = {output.get()};
  std::unique_ptr<Instance> instance = program->bind(table).take();
  auto *cancelled = new (output->hostPointer()) std::atomic<bool>(false);
  const int64_t *runs = dataOf<int64_t>(*arena);
  int64_t whole = 0;
  for (int64_t run = 1; run <= 200; ++run) {
    *cancelled = false;
    // Every third run has no flag to look at.
    const bool ends = run % 3;
    Status status = runAndWait(*device, *instance, scalarsFor(1),
                               ends ? cancelled : nullptr);
    ASSERT_EQ(status.isCancelled(), ends) << status.message();
    whole += !ends;
    for (int64_t i = 0; i < (before + after) * width; ++i)
      ASSERT_EQ(runs[i], i < before * width ? run : whole)
          << "run " << run << ", workgroup " << i;
  }
}

TEST_P(CpuDeviceTest, MoreThreadsThanCoresOnABusyMachine) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (unsigned i = 0; i < 2; ++i)
    others.emplace_back([&] {
      while (!stop.load())
        spinPause();
    });
  std::unique_ptr<Device> device = makeDevice(GetParam() * 2);
  Executable executable = withKernels({"count_runs"});
  executable.arenaBytes = 64 * 8;
  DispatchSpec dispatch;
  dispatch.bindings = {{KF_BINDING_ARENA, 0, 0}};
  dispatch.grid[0] = {-1, 64};
  executable.dispatches.assign(10, dispatch);
  std::unique_ptr<Buffer> arena = device->allocate(512).take();
  std::unique_ptr<LoadedProgram> program = device->load(executable).take();
  BindingTable table;
  table.arena = arena.get();
  std::unique_ptr<Instance> instance = program->bind(table).take();
  for (int64_t run = 1; run <= 100; ++run)
    ASSERT_TRUE(runAndWait(*device, *instance, scalarsFor(1)).ok());
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(dataOf<int64_t>(*arena)[i], 1000);
  EXPECT_GE(device->readyWorkers(), 1);
  EXPECT_LE(device->readyWorkers(), device->workers());
  stop.store(true);
  for (std::thread &other : others)
    other.join();
}

INSTANTIATE_TEST_SUITE_P(Threads, CpuDeviceTest, testing::Values(1, 2, 4));

TEST(CpuDevice, CacheLayersFollowThePages) {
  std::unique_ptr<Device> device = makeDevice(1);
  Executable executable = withKernels({"mark_layer"});
  executable.caches = {{DataType::F32, 3, 1, 4, 8, 8}};
  for (uint64_t layer = 0; layer < 3; ++layer) {
    DispatchSpec dispatch;
    dispatch.bindings = {{KF_BINDING_CACHE, 0, layer}};
    executable.dispatches.push_back(dispatch);
  }
  uint64_t bytes = *executable.caches[0].bytes(4);
  std::unique_ptr<Buffer> cache = device->allocate(bytes).take();
  std::unique_ptr<LoadedProgram> program = device->load(executable).take();
  BindingTable table;
  table.caches = {cache.get()};
  std::unique_ptr<Instance> instance = program->bind(table).take();
  for (int64_t pages : {1, 2, 4}) {
    ASSERT_TRUE(runAndWait(*device, *instance, scalarsFor(1, pages)).ok());
    for (int64_t layer = 0; layer < 3; ++layer)
      EXPECT_EQ(dataOf<float>(*cache)[layer * pages * 2 * 8 * 4], pages);
  }
  EXPECT_EQ(runAndWait(*device, *instance, scalarsFor(1, 5)).message(),
            "cache 0 needs 3840 bytes for 5 pages; its buffer has 3072");
  EXPECT_FALSE(runAndWait(*device, *instance, scalarsFor(1, 0)).ok());
  EXPECT_FALSE(runAndWait(*device, *instance, scalarsFor(1, -1)).ok());
}

TEST(CpuDevice, KernelsCallTheProcess) {
  std::unique_ptr<Device> device = makeDevice(1);
  Executable executable = withKernels({"exponent"});
  executable.inputs = executable.outputs = {{DataType::F32, {4}}};
  DispatchSpec dispatch;
  dispatch.bindings = {{KF_BINDING_INPUT, 0, 0}, {KF_BINDING_OUTPUT, 0, 0}};
  dispatch.grid[0] = {-1, 4};
  executable.dispatches = {dispatch};
  float values[4] = {0, 1, -1, 2};
  std::unique_ptr<Buffer> x = device->wrap(values, 16).take();
  std::unique_ptr<Buffer> y = device->allocate(16).take();
  std::unique_ptr<LoadedProgram> program = device->load(executable).take();
  BindingTable table;
  table.inputs = {x.get()};
  table.outputs = {y.get()};
  std::unique_ptr<Instance> instance = program->bind(table).take();
  ASSERT_TRUE(runAndWait(*device, *instance, scalarsFor(1)).ok());
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(dataOf<float>(*y)[i], std::exp(values[i]));
}

TEST(CpuDevice, LoadErrors) {
  std::unique_ptr<Device> device = makeDevice(1);
  auto message = [&](const Executable &executable) {
    Result<std::unique_ptr<LoadedProgram>> program = device->load(executable);
    EXPECT_EQ(program.message().find('\n'), std::string::npos);
    return program.message();
  };
  auto contains = [](const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
  };
  Executable executable = withKernels({"scale_rows"});
  executable.target = "vulkan";
  EXPECT_EQ(message(executable),
            "the program 'test' was compiled for 'vulkan', not for 'cpu'");
  EXPECT_PRED2(contains, message(withKernels({"scale_rows", "no_such_kernel"})),
               "no_such_kernel");
  EXPECT_PRED2(contains, message(withKernels({"broken"}, KF_TEST_MISSING)),
               "kf_test_missing_function");
  executable = withKernels({"scale_rows"});
  executable.dispatches.resize(1);
  std::string object = executable.binary;
  executable.binary = "not an object";
  EXPECT_PRED2(contains, message(executable), "cannot load the compiled");
  for (size_t length = 0; length < object.size(); length += 97) {
    executable.binary = object.substr(0, length);
    EXPECT_NE(message(executable), "") << length;
  }
  executable.binary = object;
  executable.binary[18] = 40; // e_machine: ARM
  executable.binary[19] = 0;
  EXPECT_NE(message(executable), "");
  // What failed before does not spoil what comes after.
  EXPECT_EQ(message(withKernels({"scale_rows"})), "");
}

/// A member of an archive, as `ar` writes it.
std::string memberOf(const std::string &object,
                     std::optional<uint64_t> said = std::nullopt) {
  std::string size = std::to_string(said.value_or(object.size()));
  size.resize(10, ' ');
  return "kernel/         0           0     0     644     " + size + "`\n" +
         object + (object.size() % 2 ? "\n" : "");
}

/// Kernels whose objects were made apart.
TEST(CpuDevice, LoadsArchives) {
  std::unique_ptr<Device> device = makeDevice(1);
  Executable executable = withKernels({"scale_rows"});
  const std::string object = executable.binary;
  const std::string other = readFile(KF_TEST_MISSING);
  auto load = [&](const std::string &code) {
    executable.binary = code;
    return device->load(executable).message();
  };
  const std::string whole = "!<arch>\n" + memberOf(object);
  EXPECT_EQ(load(whole), "");
  // Another one has the same functions.
  EXPECT_NE(load(whole + memberOf(other)).find("duplicate definition"),
            std::string::npos);
  EXPECT_NE(load("!<arch>\n"), ""); // without the kernel
  for (const uint64_t said : {object.size() + 1, object.size() + 100,
                              size_t(90000000), size_t(9999999999)})
    EXPECT_EQ(load("!<arch>\n" + memberOf(object, said)),
              "cannot load the compiled kernels: a member is longer than the "
              "archive");
  for (size_t length = 8; length < whole.size(); length += 97)
    EXPECT_NE(load(whole.substr(0, length)), "") << length;
  std::string wrong = whole;
  wrong[8 + 60 + 18] = 40; // e_machine: ARM
  EXPECT_NE(load(wrong).find("not for this machine"), std::string::npos)
      << load(wrong);
  EXPECT_EQ(load(whole), "");
}

TEST(CpuDevice, BindErrors) {
  std::unique_ptr<Device> device = makeDevice(2);
  Executable executable = withKernels({"count_runs"});
  executable.arenaBytes = 128;
  executable.outputs = {{DataType::F32, {-1, 4}}};
  executable.maxTokens = 4;
  DispatchSpec dispatch;
  dispatch.bindings = {{KF_BINDING_ARENA, 0, 64}};
  executable.dispatches = {dispatch};
  std::unique_ptr<LoadedProgram> program = device->load(executable).take();
  std::unique_ptr<Buffer> small = device->allocate(64).take();
  std::unique_ptr<Buffer> right = device->allocate(128).take();
  BindingTable table;
  EXPECT_EQ(program->bind(table).message(), "the arena: no buffer is bound");
  table.arena = small.get();
  EXPECT_EQ(program->bind(table).message(),
            "the arena: its buffer has 64 bytes where 128 are needed");
  table.arena = right.get();
  EXPECT_EQ(program->bind(table).message(),
            "0 output buffers are bound where the program has 1");
  table.outputs = {nullptr};
  EXPECT_EQ(program->bind(table).message(), "output 0: no buffer is bound");
  table.outputs = {small.get()};
  std::unique_ptr<Instance> instance = program->bind(table).take();
  EXPECT_TRUE(runAndWait(*device, *instance, scalarsFor(4)).ok());
  std::unique_ptr<Buffer> tiny = device->allocate(16).take();
  table.outputs = {tiny.get()};
  instance = program->bind(table).take();
  EXPECT_TRUE(runAndWait(*device, *instance, scalarsFor(1)).ok());
  EXPECT_EQ(runAndWait(*device, *instance, scalarsFor(2)).message(),
            "output 0 needs 32 bytes for 2 tokens; its buffer has 16");
}

TEST(CpuDevice, Buffers) {
  std::unique_ptr<Device> device = makeDevice(1);
  std::unique_ptr<Buffer> buffer = device->allocate(16).take();
  char bytes[16] = "fifteen letters";
  EXPECT_TRUE(writeAndWait(*device, *buffer, 0, bytes, 16).ok());
  char back[8];
  EXPECT_TRUE(readAndWait(*device, *buffer, 8, back, 8).ok());
  EXPECT_STREQ(back, "letters");
  EXPECT_FALSE(writeAndWait(*device, *buffer, 9, bytes, 8).ok());
  EXPECT_FALSE(readAndWait(*device, *buffer, ~uint64_t(0), back, 2).ok());
  EXPECT_FALSE(readAndWait(*device, *buffer, 2, back, ~uint64_t(0)).ok());

  alignas(64) static char aligned[128] = "shared";
  std::unique_ptr<Buffer> shared = device->wrap(aligned, 64).take();
  EXPECT_EQ(shared->hostPointer(), aligned);
  EXPECT_FALSE(writeAndWait(*device, *shared, 0, bytes, 1).ok());
  std::unique_ptr<Buffer> within = device->wrap(aligned + 1, 64).take();
  EXPECT_EQ(within->hostPointer(), aligned + 1);
  EXPECT_FALSE(device->allocate(uint64_t(1) << 62).ok());
}

TEST(CpuDevice, Description) {
  std::unique_ptr<Device> device = makeDevice(2);
  EXPECT_EQ(device->name(), "cpu");
  EXPECT_EQ(device->workers(), 2);
  EXPECT_EQ(device->readyWorkers(), 2); // nobody has waited for one
  EXPECT_NE(device->description().find("; 2 threads"), std::string::npos)
      << device->description();
  EXPECT_FALSE(createCpuDevice({-1}).ok());
}

} // namespace
