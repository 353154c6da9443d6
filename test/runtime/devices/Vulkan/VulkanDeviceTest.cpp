//===- VulkanDeviceTest.cpp - Programs on Vulkan compute ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every test runs with the Khronos validation layer and, but where it provokes
// a message, demands that it says nothing from first call to destruction.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/VulkanBoundProgram.h"

#include "SpirvTestModules.h"
#include "test/runtime/DeviceSteps.h"
#include "test/runtime/StatusAssertions.h"
#include "test/runtime/VulkanRequirement.h"
#include "test/runtime/devices/ScalePrograms.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

Executable scaleTwice() {
  return test::scaleTwice("vulkan", lengthPrefixed(readSpirv("scale")));
}

class VulkanDeviceTest : public testing::Test {
protected:
  /// A device with validation.
  void open(VulkanDeviceOptions options = {}) {
    KF_REQUIRE_VULKAN();
    options.validation = true;
    options.onMessage = [this](std::string_view message) {
      messages.emplace_back(message);
    };
    Result<std::unique_ptr<Device>> opened = createVulkanDevice(options);
    ASSERT_TRUE(opened.ok()) << opened.message();
    device = opened.take();
  }

  void SetUp() override { open(); }

  void TearDown() override {
    instance.reset();
    program.reset();
    x.reset();
    a.reset();
    arena.reset();
    z.reset();
    device.reset();
    EXPECT_EQ(messages, expectedMessages);
  }

  std::unique_ptr<Buffer> allocate(uint64_t bytes) {
    Result<std::unique_ptr<Buffer>> buffer = device->allocate(bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.message();
    return buffer.ok() ? buffer.take() : nullptr;
  }

  /// Loads and binds `executable` with x = 0.5 i and a = 3.
  Status prepare(const Executable &executable) {
    x = allocate(maxTokens * 4);
    arena = allocate(executable.arenaBytes);
    z = allocate(maxTokens * 4);
    const float three = 3;
    KF_ASSIGN_OR_RETURN(a, device->wrap(&three, sizeof(three)));
    std::vector<float> values(maxTokens);
    for (int64_t i = 0; i < maxTokens; ++i)
      values[i] = 0.5f * static_cast<float>(i);
    KF_RETURN_IF_ERROR(
        writeAndWait(*device, *x, 0, values.data(), maxTokens * 4));
    KF_ASSIGN_OR_RETURN(program, device->load(executable));
    KF_ASSIGN_OR_RETURN(instance, program->bind(table()));
    return {};
  }

  BindingTable table() {
    return {arena.get(), {a.get()}, {}, {x.get()}, {z.get()}};
  }

  /// Runs `tokens` rows over a z of -1 and checks all of z.
  void runAndCheck(int64_t tokens) {
    std::vector<float> got(maxTokens, -1.0f);
    ASSERT_TRUE(
        succeeds(writeAndWait(*device, *z, 0, got.data(), maxTokens * 4)));
    ASSERT_TRUE(succeeds(runAndWait(*device, *instance, scalarsFor(tokens))));
    ASSERT_TRUE(
        succeeds(readAndWait(*device, *z, 0, got.data(), maxTokens * 4)));
    for (int64_t i = 0; i < maxTokens; ++i)
      ASSERT_EQ(got[i], i < tokens ? 4.5f * static_cast<float>(i) : -1.0f)
          << "at " << i << " of " << tokens;
  }

  std::vector<std::string> messages, expectedMessages;
  std::unique_ptr<Device> device;
  std::unique_ptr<Buffer> x, a, arena, z;
  std::unique_ptr<LoadedProgram> program;
  std::unique_ptr<Instance> instance;
};

/// As on a GPU whose memory the host cannot address.
class VulkanStagingTest : public VulkanDeviceTest {
protected:
  void SetUp() override {
    VulkanDeviceOptions options;
    options.mapBuffers = false;
    open(options);
  }
};

TEST_F(VulkanDeviceTest, NamesAndDescribesItself) {
  EXPECT_EQ(device->name(), "vulkan");
  EXPECT_NE(device->description().find("Vulkan 1."), std::string::npos);
  EXPECT_EQ(device->description().find('\n'), std::string::npos);
}

/// As the compiler does, which rounds rows to f16 and makes f16 of codes.
TEST(VulkanMatrices, MultiplyManyRowsOfF16WithItsNeighbours) {
  const char *all = "f16, i8, i16, i64";
  EXPECT_TRUE(multipliesManyRows(all, "f16"));
  EXPECT_TRUE(multipliesManyRows(all, "f16, bf16, i8"));
  EXPECT_TRUE(multipliesManyRows("f16, i16", "f16, i8"));
  EXPECT_TRUE(multipliesManyRows("i16, f16", "i8, f16"));
  EXPECT_FALSE(multipliesManyRows(all, ""));
  EXPECT_FALSE(multipliesManyRows(all, "bf16"));
  EXPECT_FALSE(multipliesManyRows(all, "bf16, i8"));
  EXPECT_FALSE(multipliesManyRows(all, "i8"));
  EXPECT_FALSE(multipliesManyRows("i8, i16, i64", "f16, i8"));
  EXPECT_FALSE(multipliesManyRows("f16, i8, i64", "f16, i8"));
  EXPECT_FALSE(multipliesManyRows("bf16, i16", "f16"));
  EXPECT_FALSE(multipliesManyRows("", "f16"));
}

/// Radeons round f16 and f64 by one mode, and f32 by another.
TEST(VulkanMatrices, RoundHalvesWhereF32IsLeftAsItIs) {
  VkPhysicalDeviceFloatControlsProperties floats{};
  floats.shaderRoundingModeRTEFloat16 = VK_TRUE;
  floats.roundingModeIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
  EXPECT_TRUE(roundsHalves(floats));
  floats.roundingModeIndependence =
      VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY;
  EXPECT_TRUE(roundsHalves(floats));
  floats.roundingModeIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  EXPECT_FALSE(roundsHalves(floats));
  floats.roundingModeIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
  floats.shaderRoundingModeRTEFloat16 = VK_FALSE;
  floats.shaderRoundingModeRTEFloat32 = VK_TRUE;
  EXPECT_FALSE(roundsHalves(floats));
}

/// Their programs are for as many rows as tiles have.
TEST_F(VulkanDeviceTest, TakesRowsInTilesWhereItMultipliesMatrices) {
  auto listOf = [&](const std::string &name) -> std::string {
    const std::string target = device->target();
    const size_t at = target.find(" " + name + " = [");
    if (at == std::string::npos)
      return {};
    const size_t begin = target.find('[', at) + 1;
    return target.substr(begin, target.find(']', begin) - begin);
  };
  const bool multiplies =
      multipliesManyRows(listOf("types"), listOf("matrices"));
  EXPECT_EQ(device->takesRowsInTiles(), multiplies);
  EXPECT_EQ(device->roundsBlocks(), multiplies);
}

TEST_F(VulkanDeviceTest, ChoosesByIndexAndName) {
  Result<std::vector<VulkanDeviceInfo>> list = listVulkanDevices();
  ASSERT_TRUE(list.ok()) << list.message();
  VulkanDeviceOptions options;
  options.device = "0";
  EXPECT_TRUE(createVulkanDevice(options).ok());
  const std::string &first = list->front().description;
  options.device = first.substr(0, first.find(','));
  EXPECT_TRUE(createVulkanDevice(options).ok());
  options.device = std::to_string(list->size());
  EXPECT_TRUE(failsWith(createVulkanDevice(options).status(), "known are 0:"));
  options.device = "99999999999999999999999";
  EXPECT_TRUE(failsWith(createVulkanDevice(options).status(), "known are 0:"));
  options.device = "no such card";
  EXPECT_TRUE(failsWith(createVulkanDevice(options).status(),
                        "no Vulkan device named 'no such card'"));
}

TEST_F(VulkanDeviceTest, RunsAndRecordsAgainForOtherGrids) {
  ASSERT_TRUE(succeeds(prepare(scaleTwice())));
  for (int64_t tokens : {1, 1, 64, 65, 1000, 1000, 7})
    runAndCheck(tokens);
}

TEST_F(VulkanDeviceTest, BindsOtherBuffers) {
  ASSERT_TRUE(succeeds(prepare(scaleTwice())));
  runAndCheck(100);
  std::unique_ptr<Buffer> old = std::move(z);
  z = allocate(maxTokens * 4);
  Result<std::unique_ptr<Instance>> again = program->bind(table());
  ASSERT_TRUE(again.ok()) << again.message();
  instance = again.take();
  old.reset();
  runAndCheck(100);
}

TEST_F(VulkanDeviceTest, BindsLayersOfCaches) {
  // z goes to layer 1 of a cache instead, which begins at byte 32 * capacity.
  Executable executable = scaleTwice();
  executable.caches = {{DataType::F32, 2, 1, 4, 1, 1}};
  executable.dispatches[1].bindings[2] = {KF_BINDING_CACHE, 0, 1};
  ASSERT_TRUE(succeeds(prepare(scaleTwice())));
  Result<std::unique_ptr<LoadedProgram>> cached = device->load(executable);
  ASSERT_TRUE(cached.ok()) << cached.message();
  std::vector<float> got(1024);
  std::unique_ptr<Buffer> cache = allocate(got.size() * 4);
  BindingTable caches = table();
  caches.caches = {cache.get()};
  Result<std::unique_ptr<Instance>> bound = (*cached)->bind(caches);
  ASSERT_TRUE(bound.ok()) << bound.message();
  for (int64_t capacity : {8, 64}) {
    std::fill(got.begin(), got.end(), -1.0f);
    ASSERT_TRUE(succeeds(writeAndWait(*device, *cache, 0, got.data(), 4096)));
    std::vector<int64_t> scalars = scalarsFor(32);
    scalars[KF_SCALAR_CACHE_PAGES] = capacity;
    ASSERT_TRUE(succeeds(runAndWait(*device, **bound, scalars)));
    ASSERT_TRUE(succeeds(readAndWait(*device, *cache, 0, got.data(), 4096)));
    for (int64_t i = 0; i < 1024; ++i) {
      int64_t at = i - 8 * capacity;
      ASSERT_EQ(got[i], at >= 0 && at < 32 ? 4.5f * static_cast<float>(at) : -1)
          << "at " << i << " of capacity " << capacity;
    }
  }
  std::vector<int64_t> scalars = scalarsFor(1);
  scalars[KF_SCALAR_CACHE_PAGES] = 65;
  EXPECT_TRUE(
      failsWith(runAndWait(*device, **bound, scalars), "cache 0 needs"));
  executable.dispatches[1].bindings[2].offset = 2;
  EXPECT_FALSE(device->load(executable).ok());
}

TEST_F(VulkanStagingTest, RunsThroughStagingCopies) {
  ASSERT_TRUE(succeeds(prepare(scaleTwice())));
  EXPECT_EQ(x->hostPointer(), nullptr);
  for (int64_t tokens : {1, 1000, 64})
    runAndCheck(tokens);
}

TEST_F(VulkanDeviceTest, RefusesBuffersThatNoAllocationHolds) {
  for (uint64_t bytes : {uint64_t(1) << 50, UINT64_MAX - 1, UINT64_MAX}) {
    Status status = device->allocate(bytes).status();
    EXPECT_TRUE(failsWith(status, "bytes at once (max")) << bytes;
    EXPECT_TRUE(failsWith(status, "buffer of " + std::to_string(bytes)));
  }
}

/// Sizes past 4 GiB are more than any device binds.
TEST_F(VulkanDeviceTest, RefusesWhatNoBindingHolds) {
  const int64_t tooMany = int64_t(1) << 31; // floats
  Executable executable = scaleTwice();
  executable.weights[0].shape = {tooMany};
  EXPECT_TRUE(failsWith(device->load(executable).status(),
                        "dispatch 0: weight 0 'a' has 8589934592 bytes, "));
  executable = scaleTwice();
  executable.inputs[0].shape = {-1, tooMany / 1000};
  EXPECT_TRUE(failsWith(device->load(executable).status(),
                        "dispatch 0: input 0 has 8589932000 bytes, "));
  executable = scaleTwice();
  executable.outputs[0].shape = {tooMany};
  EXPECT_TRUE(failsWith(device->load(executable).status(),
                        "dispatch 1: output 0 has 8589934592 bytes, "));
  executable = scaleTwice();
  executable.arenaBytes = uint64_t(1) << 33;
  Status status = device->load(executable).status();
  EXPECT_TRUE(failsWith(status, "dispatch 0: arena has 8589934336 bytes, "));
  EXPECT_TRUE(failsWith(status, "(maxStorageBufferRange)"));
  // Bytes, of which fewer can be counted than bound.
  executable = scaleTwice();
  executable.weights[0].type = DataType::Q8_0;
  executable.weights[0].shape = {2, int64_t(1) << 30};
  EXPECT_TRUE(failsWith(device->load(executable).status(),
                        "dispatch 0: weight 0 'a' has 2281701376 bytes, of "
                        "which Vulkan's kernels count 2147483647"));
}

TEST_F(VulkanDeviceTest, BindsOneLayerOfALargeCache) {
  // Layers of 48 MiB: lavapipe binds at most 128 MiB.
  Executable executable = scaleTwice();
  executable.caches = {{DataType::F32, 3, 1, 64, 1, 1}};
  executable.dispatches[1].bindings[2] = {KF_BINDING_CACHE, 0, 1};
  ASSERT_TRUE(succeeds(prepare(scaleTwice())));
  Result<std::unique_ptr<LoadedProgram>> cached = device->load(executable);
  ASSERT_TRUE(cached.ok()) << cached.message();
  const int64_t capacity = 98304, layerBytes = 2 * capacity * 64 * 4;
  std::unique_ptr<Buffer> cache = allocate(3 * layerBytes);
  ASSERT_NE(cache, nullptr);
  BindingTable caches = table();
  caches.caches = {cache.get()};
  Result<std::unique_ptr<Instance>> bound = (*cached)->bind(caches);
  ASSERT_TRUE(bound.ok()) << bound.message();
  std::vector<int64_t> scalars = scalarsFor(32);
  scalars[KF_SCALAR_CACHE_PAGES] = capacity;
  ASSERT_TRUE(succeeds(runAndWait(*device, **bound, scalars)));
  float got = 0;
  ASSERT_TRUE(
      succeeds(readAndWait(*device, *cache, layerBytes + 31 * 4, &got, 4)));
  EXPECT_EQ(got, 4.5f * 31);

  // The whole of it as one layer is more than some devices bind, and is named
  // there; others write where it begins.
  executable.caches[0].layers = 1;
  executable.dispatches[1].bindings[2].offset = 0;
  scalars[KF_SCALAR_CACHE_PAGES] = 3 * capacity;
  Result<std::unique_ptr<LoadedProgram>> wide = device->load(executable);
  ASSERT_TRUE(wide.ok()) << wide.message();
  Result<std::unique_ptr<Instance>> tooWide = (*wide)->bind(caches);
  ASSERT_TRUE(tooWide.ok()) << tooWide.message();
  if (Status status = runAndWait(*device, **tooWide, scalars); !status) {
    EXPECT_TRUE(failsWith(status, "layer 0 of cache 0 has 150994944 bytes, "));
    return;
  }
  ASSERT_TRUE(succeeds(readAndWait(*device, *cache, 31 * 4, &got, 4)));
  EXPECT_EQ(got, 4.5f * 31);
}

TEST_F(VulkanDeviceTest, RefusesDamagedBinaries) {
  Executable executable = scaleTwice();
  executable.binary.resize(executable.binary.size() / 2);
  EXPECT_TRUE(failsWith(device->load(executable).status(), "states"));
  executable.binary = lengthPrefixed(std::string(400, 'x'));
  EXPECT_TRUE(failsWith(device->load(executable).status(), "magic"));
  executable.binary = std::string(7, '\0');
  EXPECT_TRUE(failsWith(device->load(executable).status(), "ends before"));
  executable.binary.clear();
  EXPECT_FALSE(device->load(executable).ok());
}

TEST_F(VulkanDeviceTest, RefusesKernelsThatDoNotMatchTheirModule) {
  Executable executable = scaleTwice();
  executable.kernels[0].name = "scal";
  EXPECT_TRUE(failsWith(device->load(executable).status(), "no compute entry"));
  executable = scaleTwice();
  executable.kernels[0].workgroupSize = {32, 1, 1};
  EXPECT_TRUE(failsWith(device->load(executable).status(), "LocalSize"));
  executable = scaleTwice();
  for (DispatchSpec &dispatch : executable.dispatches)
    dispatch.bindings.pop_back();
  EXPECT_TRUE(failsWith(device->load(executable).status(), "uses binding 3"));
  executable = scaleTwice();
  executable.dispatches[1].bindings.push_back({KF_BINDING_INPUT, 0, 0});
  EXPECT_TRUE(failsWith(device->load(executable).status(), "took 3 before"));
}

TEST_F(VulkanDeviceTest, RefusesWhatExceedsLimits) {
  Executable executable = scaleTwice();
  executable.kernels[0].scratchBytes = 1u << 30;
  EXPECT_TRUE(failsWith(device->load(executable).status(),
                        "maxComputeSharedMemorySize"));

  executable = scaleTwice();
  std::string module = readSpirv("scale");
  setWord(module, 5 + 1, 6); // OpCapability's operand: OpenCL's kernels
  executable.binary = lengthPrefixed(module);
  EXPECT_TRUE(failsWith(device->load(executable).status(), "capability"));

  executable = scaleTwice();
  executable.binary =
      lengthPrefixed(withDenormPreserve(readSpirv("scale"), 128));
  EXPECT_TRUE(failsWith(device->load(executable).status(),
                        "subnormal numbers of floats of 128 bits"));

  for (uint32_t width : {32, 64}) {
    executable = scaleTwice();
    executable.binary =
        lengthPrefixed(withRoundingModeRTE(readSpirv("scale"), width));
    EXPECT_TRUE(failsWith(device->load(executable).status(),
                          "round floats of " + std::to_string(width) +
                              " bits to the nearest"));
  }

  executable = scaleTwice();
  executable.kernels[0].subgroupThreads = 1u << 20;
  EXPECT_TRUE(failsWith(device->load(executable).status(),
                        "compiled for subgroups of 1048576 threads"));

  executable = scaleTwice();
  for (DispatchSpec &dispatch : executable.dispatches)
    dispatch.bindings.resize(2000000, {KF_BINDING_INPUT, 0, 0});
  EXPECT_TRUE(failsWith(device->load(executable).status(), "binds at most"));

  executable = scaleTwice();
  executable.dispatches[0].bindings[2].offset = 4;
  executable.dispatches[1].bindings[0].offset = 4;
  EXPECT_FALSE(device->load(executable).ok());
}

TEST_F(VulkanDeviceTest, RefusesGridsOutOfRange) {
  Executable executable = scaleTwice();
  executable.dispatches[1].grid[2] = {-1, int64_t(1) << 40};
  ASSERT_TRUE(succeeds(prepare(executable)));
  EXPECT_TRUE(failsWith(runAndWait(*device, *instance, scalarsFor(1)),
                        "1099511627776 workgroups along z"));
  executable.dispatches[1].grid[2] = {-1, 0};
  EXPECT_FALSE(device->load(executable).ok());
  executable.dispatches[1].grid[2] = {KF_SCALAR_COUNT, 1};
  EXPECT_FALSE(device->load(executable).ok());
}

/// Kernels read the low words of scalars.
TEST_F(VulkanDeviceTest, RefusesScalarsOfMoreThan31Bits) {
  ASSERT_TRUE(succeeds(prepare(scaleTwice())));
  for (int64_t value : {int64_t(-1), int64_t(1) << 31}) {
    std::vector<int64_t> scalars = scalarsFor(1);
    scalars[KF_SCALAR_COUNT - 1] = value;
    EXPECT_TRUE(failsWith(runAndWait(*device, *instance, scalars),
                          "scalar 7 is " + std::to_string(value)));
  }
}

/// More grids than are kept recorded, more than once each, none waited for.
TEST_F(VulkanDeviceTest, RecordsForManyGridsWithoutWaiting) {
  constexpr int grids = kKeptRecordings + 11, rounds = 2 * grids;
  constexpr auto lastRowOf = [](int round) -> int64_t {
    return 3 * (round * 7 % grids);
  };
  Executable executable = scaleTwice();
  for (DispatchSpec &dispatch : executable.dispatches)
    dispatch.grid[0].value = 1;
  ASSERT_TRUE(succeeds(prepare(executable)));
  std::unique_ptr<Stream> stream = device->createStream().take();
  std::vector<std::unique_ptr<Buffer>> results;
  for (int round = 0; round < rounds; ++round) {
    results.push_back(allocate(maxTokens * 4));
    ASSERT_TRUE(succeeds(stream->fill(*z, 0, maxTokens * 4, 0)));
    ASSERT_TRUE(
        succeeds(stream->enqueue(*instance, scalarsFor(1 + lastRowOf(round)))));
    ASSERT_TRUE(
        succeeds(stream->copy(*results.back(), 0, *z, 0, maxTokens * 4)));
  }
  ASSERT_TRUE(succeeds(stream->synchronize()));
  for (int round = 0; round < rounds; ++round) {
    std::vector<float> got(maxTokens);
    ASSERT_TRUE(succeeds(
        readAndWait(*device, *results[round], 0, got.data(), maxTokens * 4)));
    const int64_t last = lastRowOf(round);
    EXPECT_EQ(got[last], 4.5f * static_cast<float>(last)) << round;
    EXPECT_EQ(got[last + 1], 0.0f) << round;
  }
}

/// Two dispatches write to parts of the arena, and the third reads the first's.
TEST_F(VulkanDeviceTest, WaitsOnlyWhereDispatchesDepend) {
  Executable executable = scaleTwice();
  executable.arenaBytes += rowBytes;
  std::vector<DispatchSpec> &dispatches = executable.dispatches;
  dispatches.insert(dispatches.begin() + 1, dispatches[0]);
  dispatches[1].bindings[2].offset += rowBytes;
  const BindingAccess read = {false, 0}, write = {true, 0};
  const BindingAccess readRow = {false, rowBytes}, writeRow = {true, rowBytes};
  dispatches[0].accesses = dispatches[1].accesses = {read, read, writeRow};
  dispatches[2].accesses = {readRow, read, write};
  ASSERT_TRUE(succeeds(prepare(executable)));
  runAndCheck(1000);
  auto &recorded = static_cast<VulkanBoundProgram &>(*instance);
  auto recording = recorded.recordingFor(scalarsFor(1000));
  ASSERT_TRUE(succeeds(recording.status()));
  EXPECT_EQ((*recording)->barriers, 1u);
  // Each time is that of one dispatch alone.
  auto timed = recorded.recordTimed(scalarsFor(1000));
  ASSERT_TRUE(succeeds(timed.status()));
  EXPECT_EQ((*timed)->barriers, 2u);

  // Nothing is known of what the second does.
  dispatches[1].accesses.clear();
  instance.reset();
  ASSERT_TRUE(succeeds(prepare(executable)));
  auto &unknown = static_cast<VulkanBoundProgram &>(*instance);
  recording = unknown.recordingFor(scalarsFor(1000));
  ASSERT_TRUE(succeeds(recording.status()));
  EXPECT_EQ((*recording)->barriers, 2u);
}

TEST_F(VulkanDeviceTest, ValidationMessagesAreErrors) {
  Executable executable = scaleTwice();
  executable.binary = lengthPrefixed(readSpirv("invalid"));
  EXPECT_TRUE(failsWith(device->load(executable).status(), "Int64"));
  EXPECT_FALSE(messages.empty());
  expectedMessages = messages;
  ASSERT_TRUE(succeeds(prepare(scaleTwice())));
  runAndCheck(10);
}

/// What the listener throws does not get into the driver's or the layer's code.
TEST_F(VulkanDeviceTest, ListenersMayThrow) {
  VulkanDeviceOptions options;
  options.validation = true;
  int calls = 0;
  options.onMessage = [&](std::string_view) {
    ++calls;
    throw std::bad_alloc();
  };
  auto opened = createVulkanDevice(options);
  ASSERT_TRUE(opened.ok()) << opened.message();
  Executable executable = scaleTwice();
  executable.binary = lengthPrefixed(readSpirv("invalid"));
  Status status = (*opened)->load(executable).status();
  EXPECT_TRUE(failsWith(status, "Int64"));
  EXPECT_TRUE(failsWith(status, "or its listener failed"));
  EXPECT_GT(calls, 0);
  EXPECT_TRUE((*opened)->load(scaleTwice()).ok());
}

/// Holds on every machine: one without a loader says so as well.
TEST(VulkanMissingTest, AMachineWithoutDriversIsAnError) {
  setenv("VK_ICD_FILENAMES", "/nonexistent.json", 1);
  setenv("VK_DRIVER_FILES", "/nonexistent.json", 1);
  Status listed = listVulkanDevices().status();
  Status opened = createVulkanDevice().status();
  unsetenv("VK_ICD_FILENAMES");
  unsetenv("VK_DRIVER_FILES");
  EXPECT_TRUE(failsWith(listed, "no Vulkan"));
  EXPECT_TRUE(failsWith(opened, "no Vulkan"));
}

/// Allocates, loads and runs much work on a device.
Status useForLong(Device &device) {
  Executable executable = scaleTwice();
  executable.dispatches[0].grid[1] =
      executable.dispatches[0].grid[2] = {-1, 300};
  KF_ASSIGN_OR_RETURN(auto program, device.load(executable));
  KF_ASSIGN_OR_RETURN(auto arena, device.allocate(executable.arenaBytes));
  KF_ASSIGN_OR_RETURN(auto row, device.allocate(rowBytes));
  KF_ASSIGN_OR_RETURN(
      auto instance,
      program->bind({arena.get(), {row.get()}, {}, {row.get()}, {row.get()}}));
  return runAndWait(device, *instance, scalarsFor(1));
}

/// Where the host cannot address the device's memory, zeros are the first work
/// of the device that has no time, and the run is where it can.
TEST(VulkanTimeoutTest, ATimeoutEndsTheDevice) {
  KF_REQUIRE_VULKAN();
  for (bool mapBuffers : {true, false}) {
    VulkanDeviceOptions options;
    options.mapBuffers = mapBuffers;
    options.timeout = std::chrono::nanoseconds(0);
    Result<std::unique_ptr<Device>> device = createVulkanDevice(options);
    ASSERT_TRUE(device.ok()) << device.message();
    EXPECT_TRUE(failsWith(useForLong(**device), "did not finish"));
    EXPECT_TRUE(failsWith(useForLong(**device), "failed earlier"));
  }
}

} // namespace
