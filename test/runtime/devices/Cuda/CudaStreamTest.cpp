//===- CudaStreamTest.cpp - Streams of a driver that fails ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions of the driver are made to fail, one at a time: each error is either
// the call's, which has no effect then, or ends what is behind it, and is told
// by synchronize(). Nothing is left over, whatever fails.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/CudaDevice.h"
#include "runtime/devices/GpuInstance.h"

#include "FakeCuda.h"
#include "test/runtime/StatusAssertions.h"
#include "test/runtime/devices/ScalePrograms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

using namespace kf;
using namespace kf::test;

namespace {

constexpr uint64_t kibibyte = 1024, mebibyte = 1024 * kibibyte;

/// z = a * (a * x), and a dispatch that has nothing to do without adjustments.
Executable scaleTwice() {
  Executable executable = test::scaleTwice("cuda", scaleImage() + scaleImage());
  executable.namedSizes = {{"extra", 0, maxTokens}};
  executable.kernels = {{"times", 0, {64, 1, 1}}, {"again", 0, {64, 1, 1}}};
  executable.dispatches[1].kernel = 1;
  DispatchSpec extra = executable.dispatches[1];
  extra.bindings[0] = extra.bindings[2];
  extra.grid[0].scalar = KF_SCALAR_NAMED_SIZES;
  executable.dispatches.push_back(extra);
  return executable;
}

class CudaStreamTest : public testing::Test {
protected:
  void SetUp() override {
    device = createCudaDevice({{}, &fake.functions()}).take();
    stream = device->createStream().take();
    other = device->createStream().take();
    event = device->createEvent().take();
    small = device->allocate(64).take();
    x = device->allocate(maxTokens * 4).take();
    a = device->allocate(4).take();
    z = device->allocate(maxTokens * 4).take();
    arena = device->allocate(256 + rowBytes).take();
    program = device->load(scaleTwice()).take();
    instance = program->bind({arena.get(), {a.get()}, {}, {x.get()}, {z.get()}})
                   .take();
    const float three = 3;
    const std::vector<float> ones(maxTokens, 1);
    ASSERT_TRUE(
        succeeds(stream->upload(*a, 0, std::as_bytes(std::span(&three, 1)))));
    ASSERT_TRUE(
        succeeds(stream->upload(*x, 0, std::as_bytes(std::span(ones)))));
    ASSERT_TRUE(succeeds(stream->synchronize()));
  }

  void TearDown() override {
    stream.reset();
    other.reset();
    event.reset();
    instance.reset();
    program.reset();
    for (auto *buffer : {&small, &x, &a, &z, &arena})
      buffer->reset();
    device.reset();
    EXPECT_EQ(fake.violations, std::vector<std::string>());
    EXPECT_EQ(fake.leftOver(), std::vector<std::string>());
  }

  std::vector<std::byte> contentOf(Buffer &buffer) {
    std::vector<std::byte> content(buffer.size());
    std::unique_ptr<Stream> reader = device->createStream().take();
    EXPECT_TRUE(succeeds(reader->download(buffer, 0, content)));
    EXPECT_TRUE(succeeds(reader->synchronize()));
    return content;
  }

  /// Every word of `small`; fails the test where they differ.
  uint32_t word() {
    uint32_t words[16];
    std::memcpy(words, contentOf(*small).data(), sizeof(words));
    EXPECT_EQ(std::ranges::count(words, words[0]), 16);
    return words[0];
  }

  /// How many rows of z are 9.
  int64_t rowsDone() {
    std::vector<float> values(maxTokens);
    std::memcpy(values.data(), contentOf(*z).data(), maxTokens * 4);
    return std::ranges::count(values, 9.0f);
  }

  Status enqueue(int64_t tokens, const EnqueueOptions &options = {}) {
    return stream->enqueue(*instance, scalarsFor(tokens), options);
  }

  FakeCuda fake;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream, other;
  std::unique_ptr<Event> event;
  std::unique_ptr<Buffer> small, x, a, z, arena;
  std::unique_ptr<LoadedProgram> program;
  std::unique_ptr<Instance> instance;
};

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// One chunk of staging memory is enough, where no more can be had.
TEST_F(CudaStreamTest, WaitsForStagingMemory) {
  const std::vector<std::byte> source = noise(40 * mebibyte + 13);
  std::unique_ptr<Buffer> buffer = device->allocate(source.size()).take();
  stream = device->createStream().take();
  fake.fail("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY, 1);
  std::vector<std::byte> back(source.size());
  ASSERT_TRUE(succeeds(stream->upload(*buffer, 0, source)));
  ASSERT_TRUE(succeeds(stream->download(*buffer, 0, back)));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(back, source);
}

TEST_F(CudaStreamTest, WithoutStagingMemoryTransfersHaveNoEffect) {
  std::vector<std::byte> bytes(mebibyte, std::byte(7));
  std::unique_ptr<Buffer> large = device->allocate(mebibyte).take();
  stream = device->createStream().take();
  fake.fail("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(failsWith(stream->upload(*large, 0, bytes), "cuMemHostAlloc"));
  EXPECT_TRUE(failsWith(stream->download(*large, 0, bytes), "cuMemHostAlloc"));
  EXPECT_TRUE(succeeds(stream->synchronize()));
  fake.failNothing();
  EXPECT_EQ(contentOf(*large), std::vector<std::byte>(mebibyte));
  EXPECT_EQ(bytes[0], std::byte(7));
}

/// Small uploads share chunks; how many there are depends on no work's end.
TEST_F(CudaStreamTest, SmallUploadsShareStagingMemory) {
  const int before = fake.calls["cuMemHostAlloc"];
  const std::vector<std::byte> bytes = noise(64);
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(succeeds(stream->upload(*small, 0, bytes)));
  EXPECT_LE(fake.calls["cuMemHostAlloc"], before + 1);
  for (int i = 0; i < 200'000; ++i)
    ASSERT_TRUE(succeeds(stream->upload(*small, 0, bytes)));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  // 12.8 MB in chunks of 64 KiB, of which each query ends some.
  EXPECT_LE(fake.calls["cuMemHostAlloc"], before + 200);
  EXPECT_EQ(contentOf(*small), bytes);
}

/// The first pieces were accepted by then: it is too late for an error of the
/// call.
TEST_F(CudaStreamTest, TransfersThatFailHalfwayAreLateErrors) {
  constexpr uint64_t bytes = 33 * mebibyte;
  std::unique_ptr<Buffer> large = device->allocate(bytes).take();
  for (bool isUpload : {true, false}) {
    const char *function = isUpload ? "cuMemcpyHtoDAsync" : "cuLaunchHostFunc";
    std::vector<std::byte> memory(bytes, std::byte(7)), late(64, memory[0]);
    ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 1)));
    fake.fail(function, CUDA_ERROR_OUT_OF_MEMORY, 1);
    ASSERT_TRUE(succeeds(isUpload ? stream->upload(*large, 0, memory)
                                  : stream->download(*large, 0, memory)));
    fake.failNothing();
    // Nothing of this happens.
    ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 2)));
    ASSERT_TRUE(succeeds(stream->copy(*small, 0, *large, 0, 64)));
    ASSERT_TRUE(succeeds(stream->upload(*small, 0, late)));
    ASSERT_TRUE(succeeds(stream->download(*small, 0, late)));
    ASSERT_TRUE(succeeds(enqueue(5)));
    ASSERT_TRUE(succeeds(stream->record(*event)));
    ASSERT_TRUE(succeeds(other->wait(*event)));
    ASSERT_TRUE(succeeds(other->fill(*small, 0, 64, 3)));
    ASSERT_TRUE(succeeds(other->download(*small, 0, late)));
    EXPECT_TRUE(failsWith(event->synchronize(), function));
    EXPECT_TRUE(failsWith(other->synchronize(), function));
    EXPECT_TRUE(failsWith(stream->synchronize(), function));
    EXPECT_EQ(late, std::vector<std::byte>(64, std::byte(7)));
    EXPECT_EQ(word(), 1u);
    EXPECT_EQ(rowsDone(), 0);
    // The event stays so until it is recorded again.
    EXPECT_TRUE(failsWith(event->synchronize(), function));
    ASSERT_TRUE(succeeds(stream->record(*event)));
    EXPECT_TRUE(succeeds(event->synchronize()));
    // Now both take work again.
    ASSERT_TRUE(succeeds(stream->upload(*large, 0, noise(bytes))));
    ASSERT_TRUE(succeeds(stream->download(*large, 0, memory)));
    ASSERT_TRUE(succeeds(stream->synchronize()));
    EXPECT_EQ(memory, noise(bytes));
    EXPECT_TRUE(succeeds(other->synchronize()));
  }
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// A graph for each list of grid sizes, not for each size of a step.
TEST_F(CudaStreamTest, RecordsAGraphOnceForGrids) {
  for (int64_t tokens : {1, 2, 64, 1}) {
    ASSERT_TRUE(succeeds(stream->fill(*z, 0, maxTokens * 4, 0)));
    ASSERT_TRUE(succeeds(enqueue(tokens)));
    ASSERT_TRUE(succeeds(stream->synchronize()));
    EXPECT_EQ(rowsDone(), tokens);
  }
  EXPECT_EQ(fake.calls["cuGraphInstantiate"], 1);
  // A third node where there is something extra.
  EXPECT_EQ(fake.calls["cuGraphAddKernelNode"], 2);
  ASSERT_TRUE(succeeds(stream->enqueue(*instance, scalarsFor(1, 1))));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(fake.calls["cuGraphAddKernelNode"], 5);
  // What has not changed is not uploaded again.
  const int uploads = fake.calls["cuMemcpyHtoDAsync"];
  ASSERT_TRUE(succeeds(stream->enqueue(*instance, scalarsFor(1, 1))));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(fake.calls["cuMemcpyHtoDAsync"], uploads);
}

/// Where the device and its driver know such edges.
TEST_F(CudaStreamTest, KernelsThatWaitBeginEarly) {
  Executable executable = scaleTwice();
  std::string text = scaleImage().substr(8);
  text.insert(text.find("  ret;"), "  griddepcontrol.wait;\n");
  executable.binary = scaleImage() + lengthPrefixed(text);
  executable.kernels[1].waits = true;
  auto earlyEdges = [&](int major, bool hasEdges) {
    fake.gpus[0].major = major;
    fake.earlyEdges = 0;
    CudaFunctions functions = fake.functions();
    if (!hasEdges)
      functions.cuGraphAddDependencies = nullptr;
    std::unique_ptr<Device> gpu = createCudaDevice({{}, &functions}).take();
    std::unique_ptr<Buffer> in = gpu->allocate(maxTokens * 4).take(),
                            factor = gpu->allocate(4).take(),
                            out = gpu->allocate(maxTokens * 4).take(),
                            middle = gpu->allocate(256 + rowBytes).take();
    std::unique_ptr<LoadedProgram> loaded = gpu->load(executable).take();
    std::unique_ptr<Instance> bound =
        loaded
            ->bind({middle.get(), {factor.get()}, {}, {in.get()}, {out.get()}})
            .take();
    std::unique_ptr<Stream> order = gpu->createStream().take();
    EXPECT_TRUE(succeeds(order->enqueue(*bound, scalarsFor(1, 1))));
    EXPECT_TRUE(succeeds(order->synchronize()));
    return fake.earlyEdges;
  };
  EXPECT_EQ(earlyEdges(9, true), 2); // the second one and the extra
  EXPECT_EQ(earlyEdges(10, true), 2);
  EXPECT_EQ(earlyEdges(8, true), 0);
  EXPECT_EQ(earlyEdges(9, false), 0);
}

/// Kernels with a workgroup a row: steps of 1 to 64 rows, in any order, make
/// each graph once. Of more, the one that was not used for the longest time
/// goes.
TEST_F(CudaStreamTest, KeepsTheGraphsOfLate) {
  Executable executable = scaleTwice();
  for (DispatchSpec &dispatch : executable.dispatches)
    dispatch.grid[0].value = 1;
  instance.reset();
  program = device->load(executable).take();
  instance =
      program->bind({arena.get(), {a.get()}, {}, {x.get()}, {z.get()}}).take();
  auto recorded = [&] { return fake.calls["cuGraphInstantiate"]; };
  constexpr int64_t kept = kKeptRecordings, more = kept + 1;
  for (int64_t i = 0; i < 10 * kept; ++i)
    ASSERT_TRUE(succeeds(enqueue(1 + (i * 37 + i / kept * 11) % kept)));
  EXPECT_EQ(recorded(), kept);
  EXPECT_EQ(fake.calls["cuGraphExecDestroy"], 0);
  for (int64_t tokens = 1; tokens <= kept; ++tokens)
    ASSERT_TRUE(succeeds(enqueue(tokens)));
  for (int64_t tokens : {more, int64_t(2), more, kept})
    ASSERT_TRUE(succeeds(enqueue(tokens)));
  EXPECT_EQ(recorded(), kept + 1);
  EXPECT_EQ(fake.calls["cuGraphExecDestroy"], 1);
  ASSERT_TRUE(succeeds(enqueue(1))); // which `more` has replaced
  EXPECT_EQ(recorded(), kept + 2);
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(rowsDone(), more);
}

TEST_F(CudaStreamTest, ARunThatFailsHasNoEffect) {
  for (const char *function :
       {"cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiate",
        "cuMemcpyHtoDAsync", "cuGraphLaunch"}) {
    fake.fail(function, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_TRUE(failsWith(enqueue(300), function));
    fake.failNothing();
    ASSERT_TRUE(succeeds(stream->synchronize()));
    EXPECT_EQ(rowsDone(), 0) << function;
  }
  ASSERT_TRUE(succeeds(enqueue(300)));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  EXPECT_EQ(rowsDone(), 300);
}

TEST_F(CudaStreamTest, MeasuredRunsThatFail) {
  DispatchTimes times;
  for (const char *function : {"cuEventCreate", "cuLaunchKernel"}) {
    fake.fail(function, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_TRUE(failsWith(enqueue(10, {.times = &times}), function));
    fake.failNothing();
    ASSERT_TRUE(succeeds(stream->synchronize()));
    EXPECT_EQ(rowsDone(), 0) << function;
  }
  // Its first dispatch has begun then.
  fake.fail("cuLaunchKernel", CUDA_ERROR_OUT_OF_MEMORY, 1);
  ASSERT_TRUE(succeeds(enqueue(10, {.times = &times})));
  fake.failNothing();
  EXPECT_TRUE(failsWith(stream->synchronize(), "dispatch 1: cuLaunchKernel"));
  fake.fail("cuEventElapsedTime", CUDA_ERROR_OUT_OF_MEMORY, 1);
  ASSERT_TRUE(succeeds(enqueue(10, {.times = &times})));
  EXPECT_TRUE(failsWith(stream->synchronize(), "cuEventElapsedTime"));
  EXPECT_EQ(times.size(), 0u);
  fake.failNothing();
  ASSERT_TRUE(succeeds(enqueue(10, {.times = &times})));
  ASSERT_TRUE(succeeds(stream->synchronize()));
  ASSERT_EQ(times.size(), 3u);
  EXPECT_EQ(times[0].kernel, "times");
  EXPECT_EQ(times[2].kernel, "again");
}

//===----------------------------------------------------------------------===//
// Devices that are lost
//===----------------------------------------------------------------------===//

/// An access to memory that is not there ends the context: every later call
/// says so, and nothing of the caller's is touched.
TEST_F(CudaStreamTest, AFaultEndsTheDevice) {
  std::vector<std::byte> bytes(64, std::byte(7));
  fake.kernels["scale"] = [&](auto &&...) {
    fake.fault(CUDA_ERROR_ILLEGAL_ADDRESS);
  };
  auto loaded = device->load(scaleTwice());
  auto faulty = (*loaded)->bind(instance->buffers());
  ASSERT_TRUE(succeeds(stream->enqueue(**faulty, scalarsFor(1))));
  ASSERT_TRUE(succeeds(stream->download(*small, 0, bytes)));
  ASSERT_TRUE(succeeds(stream->record(*event)));
  const char *message = "CUDA_ERROR_ILLEGAL_ADDRESS, an illegal memory access";
  EXPECT_TRUE(failsWith(stream->synchronize(), message));
  const char *later = "the CUDA device has failed earlier, and is of no use to "
                      "this process any more: cuStreamSynchronize: CUDA_ERROR";
  EXPECT_TRUE(failsWith(stream->synchronize(), later));
  EXPECT_TRUE(failsWith(event->synchronize(), later));
  EXPECT_TRUE(failsWith(stream->upload(*small, 0, bytes), later));
  EXPECT_TRUE(failsWith(stream->download(*small, 0, bytes), later));
  EXPECT_TRUE(failsWith(stream->fill(*small, 0, 64, 1), later));
  EXPECT_TRUE(failsWith(stream->copy(*x, 0, *z, 0, 64), later));
  EXPECT_TRUE(failsWith(stream->record(*event), later));
  EXPECT_TRUE(failsWith(stream->wait(*event), later));
  EXPECT_TRUE(failsWith(other->enqueue(*instance, scalarsFor(1)), later));
  EXPECT_TRUE(failsWith(device->allocate(64).status(), later));
  EXPECT_TRUE(failsWith(device->wrap(bytes.data(), 64).status(), later));
  EXPECT_TRUE(failsWith(device->load(scaleTwice()).status(), later));
  EXPECT_TRUE(failsWith(device->createStream().status(), later));
  EXPECT_TRUE(failsWith(device->createEvent().status(), later));
  EXPECT_TRUE(failsWith(device->memory().status(), later));
  EXPECT_EQ(bytes, std::vector<std::byte>(64, std::byte(7)));
}

/// After a wait that failed for whatever reason nobody knows what is done.
TEST_F(CudaStreamTest, AFailedWaitEndsTheDevice) {
  ASSERT_TRUE(succeeds(stream->fill(*small, 0, 64, 1)));
  fake.fail("cuStreamSynchronize", CUDA_ERROR_UNKNOWN, 0, 1);
  EXPECT_TRUE(failsWith(stream->synchronize(), "CUDA_ERROR_UNKNOWN"));
  EXPECT_TRUE(failsWith(other->fill(*small, 0, 64, 1), "has failed earlier"));
}

//===----------------------------------------------------------------------===//
// Every call once
//===----------------------------------------------------------------------===//

/// Everything that a device does, with results that are looked at; the first
/// error.
class Everything {
public:
  explicit Everything(FakeCuda &fake) : fake(fake) {}

  Status run() {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                        createCudaDevice({{}, &fake.functions()}));
    KF_RETURN_IF_ERROR(device->memory().status());
    const float three = 3;
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> a, device->wrap(&three, 4));
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> x, device->allocate(4000));
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> z, device->allocate(4000));
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> arena,
                        device->allocate(256 + rowBytes));
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> pinned,
                        device->allocate(4000, MemoryKind::HostPinned));
    KF_ASSIGN_OR_RETURN(std::unique_ptr<LoadedProgram> program,
                        device->load(scaleTwice()));
    KF_ASSIGN_OR_RETURN(
        std::unique_ptr<Instance> instance,
        program->bind({arena.get(), {a.get()}, {}, {x.get()}, {z.get()}}));
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device->createStream());
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Stream> other, device->createStream());
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Event> event, device->createEvent());
    const Status status =
        use(*stream, *other, *event, *instance, *x, *z, *pinned);
    // What was enqueued may write to this's memory.
    const Status first = stream->synchronize(), second = other->synchronize();
    KF_RETURN_IF_ERROR(status);
    KF_RETURN_IF_ERROR(first);
    return second;
  }

private:
  Status use(Stream &stream, Stream &other, Event &event, Instance &instance,
             Buffer &x, Buffer &z, Buffer &pinned) {
    const std::vector<float> ones(maxTokens, 1);
    KF_RETURN_IF_ERROR(stream.upload(x, 0, std::as_bytes(std::span(ones))));
    KF_RETURN_IF_ERROR(stream.enqueue(instance, scalarsFor(100)));
    KF_RETURN_IF_ERROR(stream.enqueue(instance, scalarsFor(200)));
    KF_RETURN_IF_ERROR(
        stream.enqueue(instance, scalarsFor(300), {.times = &times}));
    KF_RETURN_IF_ERROR(
        stream.download(z, 0, std::as_writable_bytes(std::span(got))));
    KF_RETURN_IF_ERROR(stream.record(event));
    KF_RETURN_IF_ERROR(other.wait(event));
    KF_RETURN_IF_ERROR(other.copy(pinned, 0, z, 0, 4000));
    KF_RETURN_IF_ERROR(other.fill(x, 0, 4000, 0));
    KF_RETURN_IF_ERROR(event.synchronize());
    KF_RETURN_IF_ERROR(stream.synchronize());
    EXPECT_EQ(std::ranges::count(got, 9.0f), 300);
    EXPECT_EQ(times.size(), 3u);
    KF_RETURN_IF_ERROR(other.synchronize());
    EXPECT_EQ(static_cast<float *>(pinned.hostPointer())[299], 9);
    // At once, for there is nothing to do.
    KF_RETURN_IF_ERROR(
        other.download(x, 0, std::as_writable_bytes(std::span(got))));
    KF_RETURN_IF_ERROR(other.synchronize());
    EXPECT_EQ(std::ranges::count(got, 0.0f), maxTokens);
    return Status();
  }

  FakeCuda &fake;
  std::vector<float> got = std::vector<float>(maxTokens);
  DispatchTimes times;
};

/// Whatever fails in whatever way, there is an error that names the function,
/// or none where something was being freed, and nothing is left over.
TEST(CudaFailureTest, EveryCallOnce) {
  int last = 0;
  std::set<std::string> failed;
  {
    FakeCuda fake;
    ASSERT_TRUE(succeeds(Everything(fake).run()));
    last = fake.allCalls;
    for (const auto &[function, count] : fake.calls)
      EXPECT_GT(count, 0) << function;
  }
  for (CUresult result : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_UNKNOWN,
                          CUDA_ERROR_ILLEGAL_ADDRESS})
    for (int call = 1; call <= last; ++call) {
      FakeCuda fake;
      std::string function;
      fake.answer = [&](const std::string &called) {
        if (fake.allCalls != call)
          return CUDA_SUCCESS;
        function = called;
        // Whoever waits is told of the work's errors, which end the context.
        if (called.ends_with("Synchronize") || called.ends_with("Query") ||
            result == CUDA_ERROR_ILLEGAL_ADDRESS)
          fake.fault(result);
        return result;
      };
      SCOPED_TRACE("call " + std::to_string(call) + " fails by " +
                   std::to_string(result));
      const Status status = Everything(fake).run();
      failed.insert(function);
      const bool frees = function.find("Destroy") != std::string::npos ||
                         function.find("Free") != std::string::npos ||
                         function.find("Release") != std::string::npos ||
                         function.find("Unload") != std::string::npos;
      if (!status.ok())
        EXPECT_EQ(status.message().find('\n'), std::string::npos);
      EXPECT_EQ(fake.violations, std::vector<std::string>()) << function;
      EXPECT_EQ(fake.leftOver(), std::vector<std::string>()) << function;
      if (status.ok() && !frees)
        EXPECT_TRUE(function == "cuCtxSetCurrent" ||
                    function == "cuStreamSynchronize" ||
                    function == "cuMemPoolTrimTo" ||
                    function == "cuMemAllocFromPoolAsync" ||
                    function == "cuMemHostAlloc" || function.empty())
            << function;
      if (testing::Test::HasFailure())
        return;
    }
  EXPECT_GT(failed.size(), 40u);
}

} // namespace
