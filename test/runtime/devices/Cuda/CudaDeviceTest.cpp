//===- CudaDeviceTest.cpp - Opening GPUs, their memory and programs -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/CudaDevice.h"

#include "FakeCuda.h"
#include "test/runtime/StatusAssertions.h"
#include "test/runtime/devices/ScalePrograms.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

constexpr uint64_t mebibyte = uint64_t(1) << 20;

/// z = a * x of 16 elements, in steps of any size.
Executable scale() {
  Executable executable = scaleOnce("cuda", scaleImage());
  executable.maxTokens = int64_t(1) << 31;
  executable.inputs = executable.outputs = {{DataType::F32, {16}}};
  return executable;
}

class CudaDeviceTest : public testing::Test {
protected:
  void TearDown() override {
    device.reset();
    EXPECT_EQ(fake.violations, std::vector<std::string>());
    EXPECT_EQ(fake.leftOver(), std::vector<std::string>());
  }

  Result<std::unique_ptr<Device>> open(const std::string &which = {}) {
    return createCudaDevice({which, &fake.functions()});
  }
  Status errorOf(const std::string &which = {}) { return open(which).status(); }

  /// Opens the device for a test.
  void start() {
    auto opened = open();
    ASSERT_TRUE(opened.ok()) << opened.message();
    device = opened.take();
  }

  /// What loading `scale`, changed so, comes to.
  Status loadWith(const std::function<void(Executable &)> &change) {
    Executable executable = scale();
    change(executable);
    return device->load(executable).status();
  }

  FakeCuda fake;
  std::unique_ptr<Device> device;
};

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

/// The machines that tests run on; where there is a driver, it has its say.
TEST(CudaDriverTest, OpensTheLibraryOrSaysWhatIsMissing) {
  auto loaded = loadCudaFunctions();
  if (loaded.ok())
    EXPECT_NE(loaded->cuGraphLaunch, nullptr);
  else
    EXPECT_TRUE(failsWith(loaded.status(), "libcuda.so.1"));
}

TEST_F(CudaDeviceTest, NamesAndDescribesItself) {
  start();
  EXPECT_EQ(device->name(), "cuda");
  EXPECT_EQ(device->description(), "Fake GPU, compute capability 9.0, 4 "
                                   "multiprocessors, 1.0 GiB");
  EXPECT_EQ(device->target(), "#kf.cuda_target<chip = \"sm_90a\", "
                              "multiprocessors = 4, memory = 232448>");
}

TEST_F(CudaDeviceTest, ChoosesTheChipByComputeCapability) {
  struct {
    int major, minor;
    const char *chip;
  } cases[] = {{8, 0, "sm_80"},    {8, 6, "sm_86"},    {8, 7, "sm_87"},
               {8, 8, "sm_80"},    {8, 9, "sm_89"},    {9, 0, "sm_90a"},
               {10, 0, "sm_100a"}, {10, 3, "sm_103a"}, {11, 0, "sm_90"},
               {12, 0, "sm_120a"}, {12, 1, "sm_121a"}, {13, 0, "sm_90"}};
  for (const auto &[major, minor, chip] : cases) {
    fake.gpus[0].major = major;
    fake.gpus[0].minor = minor;
    auto opened = open();
    ASSERT_TRUE(opened.ok()) << opened.message();
    EXPECT_NE((*opened)->target().find(std::string("\"") + chip + "\""),
              std::string::npos)
        << major << "." << minor << ": " << (*opened)->target();
    // These are of wgmma.
    EXPECT_EQ((*opened)->hasTilesBetween(), std::string(chip) == "sm_90a");
    EXPECT_TRUE((*opened)->takesRowsInTiles());
    EXPECT_TRUE((*opened)->roundsBlocks());
  }
}

TEST_F(CudaDeviceTest, SaysWhyThereIsNone) {
  fake.driverVersion = 11080;
  EXPECT_TRUE(failsWith(errorOf(), "the NVIDIA driver has CUDA 11.8: install "
                                   "NVIDIA's driver 525 (CUDA 12.0) or later"));
  fake.driverVersion = 12000;
  EXPECT_TRUE(succeeds(errorOf()));
  const std::pair<CUresult, const char *> results[] = {
      {CUDA_ERROR_NO_DEVICE, "the NVIDIA driver finds no device"},
      {CUDA_ERROR_STUB_LIBRARY, "is the stub"},
      {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "are of different versions"},
      {CUDA_ERROR_UNKNOWN, "cuInit: CUDA_ERROR_UNKNOWN"}};
  for (auto [result, message] : results) {
    fake.fail("cuInit", result);
    EXPECT_TRUE(failsWith(errorOf(), message));
    EXPECT_TRUE(
        failsWith(listCudaDevices(&fake.functions()).status(), message));
  }
  fake.fail("cuDevicePrimaryCtxRetain", CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_TRUE(failsWith(errorOf(), "in use by another process"));
}

TEST_F(CudaDeviceTest, ChoosesAmongDevices) {
  fake.gpus = {{"Old GPU", 7, 5}, {"First GPU", 8, 0}, {"Second GPU", 9, 0}};
  EXPECT_EQ((*open())->description().substr(0, 9), "First GPU");
  EXPECT_EQ((*open("2"))->description().substr(0, 10), "Second GPU");
  EXPECT_TRUE(failsWith(errorOf("0"),
                        "CUDA device 0: Old GPU has compute capability 7.5: "
                        "kernels are made for 8.0 (Ampere) and later"));
  for (const char *which : {"3", "-1", "x", "1x", "99999999999"})
    EXPECT_TRUE(failsWith(errorOf(which), "there is no CUDA device '" +
                                              std::string(which) +
                                              "': the driver has number 0 to "
                                              "2"));
  EXPECT_EQ(errorOf("3").code(), StatusCode::NotFound);
  auto list = listCudaDevices(&fake.functions());
  ASSERT_TRUE(list.ok()) << list.message();
  ASSERT_EQ(list->size(), 3u);
  EXPECT_EQ((*list)[0].description.substr(0, 20), "unavailable: Old GPU");
  EXPECT_EQ((*list)[0].target, "");
  EXPECT_EQ((*list)[1].description.substr(0, 10), "First GPU,");
  EXPECT_EQ((*list)[1].target, (*open("1"))->target());
  fake.gpus.resize(1);
  EXPECT_TRUE(failsWith(errorOf(), "Old GPU has compute capability 7.5"));
  EXPECT_EQ(errorOf().code(), StatusCode::Unsupported);
  fake.gpus.clear();
  EXPECT_EQ(errorOf().code(), StatusCode::Unavailable);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST_F(CudaDeviceTest, SaysWhatMemoryIsLeft) {
  fake.gpus[0].memory = 16 * mebibyte;
  for (bool hasPools : {true, false}) {
    fake.gpus[0].hasPools = hasPools;
    start();
    std::unique_ptr<Buffer> most = device->allocate(14 * mebibyte).take();
    auto second = device->allocate(3 * mebibyte);
    EXPECT_EQ(second.status().code(), StatusCode::OutOfMemory);
    EXPECT_TRUE(failsWith(
        second.status(),
        "CUDA memory of 3145728 bytes: 3145728 bytes are needed, Fake GPU has "
        "2097152 of 16777216 free; use a smaller model, context or token "
        "count"));
    EXPECT_TRUE(failsWith(device->allocate(uint64_t(1) << 40).status(),
                          "1099511627776 bytes are needed"));
    EXPECT_EQ(device->memory()->free, 2 * mebibyte);
    most.reset();
    EXPECT_EQ(device->memory()->free, 16 * mebibyte);
    // What the pool keeps in other sizes is given up for it.
    EXPECT_TRUE(device->allocate(15 * mebibyte).ok());
    device.reset();
  }
}

TEST_F(CudaDeviceTest, PinnedMemoryMayBeShort) {
  start();
  fake.fail("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  const Status status =
      device->allocate(mebibyte, MemoryKind::HostPinned).status();
  EXPECT_EQ(status.code(), StatusCode::OutOfMemory);
  EXPECT_TRUE(failsWith(status, "pinned memory of 1048576 bytes: "
                                "cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY"));
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

TEST_F(CudaDeviceTest, ChecksCode) {
  start();
  auto errorWith = [&](const std::string &code) {
    return loadWith([&](Executable &e) { e.binary = lengthPrefixed(code); });
  };
  auto ptx = [](const std::string &text) { return text + '\0'; };
  EXPECT_TRUE(succeeds(loadWith([](Executable &) {})));
  EXPECT_TRUE(failsWith(loadWith([](Executable &e) { e.binary.pop_back(); }),
                        "code of kernel 0"));
  EXPECT_TRUE(failsWith(errorWith(ptx("\n.target sm_100a\n")),
                        "kernel 'scale': its code is for sm_100a, Fake GPU has "
                        "compute capability 9.0: compile the program for "
                        "cuda:sm_90a"));
  EXPECT_TRUE(failsWith(
      errorWith(ptx("\n.target sm_80\nsyntax error\n")),
      "kernel 'scale': compiling its PTX: CUDA_ERROR_INVALID_PTX: line 3; "
      "fatal: no such thing"));
  const std::pair<CUresult, const char *> results[] = {
      {CUDA_ERROR_NO_BINARY_FOR_GPU, "its code is for another device"},
      {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "its PTX is newer than the driver"},
      {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "the driver has no compiler of PTX"}};
  for (auto [result, message] : results) {
    fake.fail("cuModuleLoadDataEx", result);
    EXPECT_TRUE(failsWith(loadWith([](Executable &) {}), message));
  }
  fake.fail("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND);
  EXPECT_TRUE(failsWith(loadWith([](Executable &) {}),
                        "its code has no entry kf_kernel"));
}

/// Text says how many it takes, so that the driver is asked for no others.
TEST_F(CudaDeviceTest, ChecksParameters) {
  start();
  const char *message = "kernel 'scale': its code does not take pointers to 3 "
                        "buffers and the scalars";
  EXPECT_TRUE(succeeds(loadWith([](Executable &) {})));
  EXPECT_EQ(fake.calls["cuFuncGetParamInfo"], 4);
  auto loadText = [&](const std::string &parameters, int buffers) {
    return loadWith([&](Executable &e) {
      e.binary =
          lengthPrefixed("// runs scale " + std::to_string(buffers) +
                         "\n.entry kf_kernel(" + parameters + ") {}" + '\0');
    });
  };
  const std::string three = ".param .u64 a, .param .u64 b, .param .u64 c",
                    four = three + ", .param .u64 d";
  EXPECT_TRUE(succeeds(loadText(four, 3)));
  EXPECT_TRUE(failsWith(loadText(three, 2), message));
  EXPECT_TRUE(failsWith(loadText(four + ", .param .u64 e", 4), message));
  EXPECT_TRUE(failsWith(loadText(four, 2), message)); // the driver knows better
  for (size_t buffers : {2, 3, 4}) {
    fake.cubinBuffers = buffers;
    const Status status = loadWith(
        [](Executable &e) { e.binary = lengthPrefixed(Cubin().bytes()); });
    EXPECT_TRUE(buffers == 3 ? succeeds(status) : failsWith(status, message));
  }
}

/// Before CUDA 12.4, the driver tells nothing about parameters.
TEST_F(CudaDeviceTest, TakesDriversThatDoNotTellParameters) {
  CudaFunctions older = fake.functions();
  older.cuFuncGetParamInfo = nullptr;
  auto opened = createCudaDevice({{}, &older});
  ASSERT_TRUE(opened.ok()) << opened.message();
  EXPECT_TRUE(succeeds((*opened)->load(scale()).status()));
}

TEST_F(CudaDeviceTest, ChecksLimits) {
  start();
  auto sized = [](std::array<uint32_t, 3> size) {
    return [size](Executable &e) { e.kernels[0].workgroupSize = size; };
  };
  EXPECT_TRUE(failsWith(loadWith(sized({1, 1, 65})),
                        "blocks of 65 threads along z, Fake GPU allows 64"));
  EXPECT_TRUE(failsWith(loadWith(sized({64, 32, 1})),
                        "blocks of 2048 threads, Fake GPU allows 1024"));
  fake.threadsPerBlock = 32;
  EXPECT_TRUE(failsWith(loadWith([](Executable &) {}),
                        "blocks of 64 threads, its registers allow 32"));
  fake.threadsPerBlock = 1024;
  EXPECT_TRUE(failsWith(
      loadWith([](Executable &e) { e.kernels[0].scratchBytes = 232449; }),
      "232449 bytes of shared memory, Fake GPU gives a block 232448"));
  auto givenTo = [](uint64_t bytes) {
    return [bytes](Executable &e) {
      e.kernels[0].scratchBytes = e.kernels[0].dynamicBytes = bytes;
    };
  };
  EXPECT_TRUE(succeeds(loadWith(givenTo(232448))));
  fake.staticShared = 16; // which the program does not tell of
  EXPECT_TRUE(failsWith(loadWith(givenTo(232448)),
                        "232464 bytes of shared memory, Fake GPU gives a block "
                        "232448"));
  fake.staticShared = 0;
  EXPECT_TRUE(
      failsWith(loadWith([](Executable &e) { e.kernels[0].waits = true; }),
                "kernel 'scale': its code does not wait for the "
                "kernels before it, as the program says"));
  EXPECT_TRUE(failsWith(loadWith([](Executable &e) {
                          e.dispatches.push_back(e.dispatches[0]);
                          e.dispatches[1].bindings.pop_back();
                        }),
                        "dispatch 1: 2 buffers for kernel 'scale', which took "
                        "3 before"));
  EXPECT_TRUE(failsWith(loadWith([](Executable &e) {
                          e.dispatches[0].bindings.assign(
                              512, e.dispatches[0].bindings[0]);
                        }),
                        "dispatch 0: 512 buffers, a CUDA kernel takes at most "
                        "511"));
}

/// The driver does not let kernels with different ones run beside one another.
/// Those that need little keep the cache that shares the memory.
TEST_F(CudaDeviceTest, AsksForOneCarveoutWhereMuchIsShared) {
  start();
  ASSERT_TRUE(succeeds(loadWith([](Executable &) {})));
  EXPECT_TRUE(fake.carveouts.empty());
  auto needsMuch = [](Executable &e) {
    e.kernels[0].scratchBytes = e.kernels[0].dynamicBytes = 65536;
  };
  ASSERT_TRUE(succeeds(loadWith(needsMuch)));
  EXPECT_EQ(fake.carveouts, std::vector<int>{100});
  fake.fail("cuFuncSetAttribute", CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(
      failsWith(loadWith(needsMuch), "kernel 'scale': cuFuncSetAttribute"));
}

TEST_F(CudaDeviceTest, ChecksGrids) {
  start();
  Executable executable = scale();
  executable.dispatches[0].grid[1] = {KF_SCALAR_N_TOKENS, 1};
  auto loaded = device->load(executable);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  std::unique_ptr<Buffer> x = device->allocate(64).take(),
                          a = device->allocate(4).take(),
                          z = device->allocate(64).take();
  auto instance =
      (*loaded)->bind({nullptr, {a.get()}, {}, {x.get()}, {z.get()}});
  ASSERT_TRUE(instance.ok()) << instance.message();
  std::unique_ptr<Stream> stream = device->createStream().take();
  std::array<int64_t, KF_SCALAR_COUNT> scalars = {};
  scalars[KF_SCALAR_N_TOKENS] = 65536;
  EXPECT_TRUE(failsWith(stream->enqueue(**instance, scalars),
                        "dispatch 0: 65536 workgroups along y, Fake GPU allows "
                        "65535"));
  scalars[KF_SCALAR_N_TOKENS] = int64_t(1) << 31;
  EXPECT_TRUE(failsWith(stream->enqueue(**instance, scalars),
                        "scalar 0 is 2147483648: not within 0..2147483647"));
}

} // namespace
