//===- NcclRankTest.cpp - GPUs that are ranks of a group ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks as threads, each with a GPU of a FakeCuda, whose collectives are those
// of a FakeNccl. Whatever fails on whatever rank, all end with an error that
// names it, and nothing is left over.
//
//===----------------------------------------------------------------------===//

#include "FakeNccl.h"

#include "runtime/collective/ThreadGroup.h"
#include "runtime/devices/Cuda/CudaContext.h"
#include "runtime/devices/Cuda/CudaDevice.h"
#include "test/runtime/StatusAssertions.h"
#include "test/runtime/devices/RankedProgram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

using namespace kf;
using namespace kf::test;

namespace {

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

/// The machines that tests run on; where there is a library, it has its say.
TEST(NcclLibraryTest, OpensTheLibraryOrSaysWhereToHaveIt) {
  auto started = startNccl(nullptr);
  if (started.ok()) {
    EXPECT_NE(started->ncclAllReduce, nullptr);
    return;
  }
  EXPECT_EQ(started.status().code(), StatusCode::Unavailable);
  for (const char *text :
       {"libnccl.so.2", "libnccl2", "nvidia-nccl-cu13", "LD_LIBRARY_PATH"})
    EXPECT_TRUE(failsWith(started.status(), text));
}

TEST(NcclLibraryTest, RefusesOldLibraries) {
  FakeCuda cuda;
  FakeNccl nccl(cuda);
  nccl.version = 22605;
  EXPECT_TRUE(failsWith(startNccl(&nccl.functions()).status(),
                        "libnccl.so.2 is NCCL 2.26.5: install NCCL 2.27.0 or "
                        "later: "));
  nccl.version = 22700;
  EXPECT_TRUE(succeeds(startNccl(&nccl.functions()).status()));
}

TEST(NcclLibraryTest, TellsOneThatIsMissingFromOneThatDoesNotLoad) {
  EXPECT_TRUE(failsWith(
      ncclNotLoaded("libnccl.so.2: cannot open shared object file: No such "
                    "file or directory"),
      "no NCCL (libnccl.so.2), which several CUDA devices need: install "));
  for (const std::string reason :
       {"/opt/libnccl.so.2: file too short",
        "libcudart.so.12: cannot open shared object file: No such file or "
        "directory"}) {
    const Status status = ncclNotLoaded(reason);
    EXPECT_TRUE(failsWith(status, "NCCL does not load (" + reason +
                                      "), which several CUDA devices need"));
    EXPECT_EQ(status.message().find("no NCCL"), std::string::npos);
  }
}

/// What its user has not set.
TEST(NcclLibraryTest, SetsItsEnvironment) {
  (void)loadNcclFunctions();
  EXPECT_NE(getenv("NCCL_NVLS_ENABLE"), nullptr);
  EXPECT_NE(getenv("NCCL_GRAPH_MIXING_SUPPORT"), nullptr);
}

TEST(NcclLibraryTest, ErrorsAreOneLine) {
  FakeCuda cuda;
  FakeNccl nccl(cuda);
  EXPECT_EQ(ncclStatus(nccl.functions(), ncclSuccess, "f").message(), "");
  EXPECT_EQ(ncclStatus(nccl.functions(), ncclInvalidUsage, "f").message(),
            "f: invalid usage");
  nccl.lastError = "two ranks\nhave one GPU\n";
  EXPECT_EQ(ncclStatus(nccl.functions(), ncclInvalidUsage, "f").message(),
            "f: invalid usage: two ranks; have one GPU");
}

//===----------------------------------------------------------------------===//
// The fake
//===----------------------------------------------------------------------===//

/// One that begins late, and then waits for a graph.
TEST(FakeNcclTest, WaitsForEndsThatGoOn) {
  FakeCuda cuda;
  FakeNccl nccl(cuda);
  const CudaFunctions &cu = cuda.functions();
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuCtxSetCurrent(context), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);

  ncclUniqueId id;
  ncclConfig_t config;
  config.blocking = 0;
  ncclComm_t communicator = nullptr;
  ASSERT_EQ(nccl.functions().ncclGetUniqueId(&id), ncclSuccess);
  ncclResult_t state =
      nccl.functions().ncclCommInitRankConfig(&communicator, 1, id, 0, &config);
  while (state == ncclInProgress)
    ASSERT_EQ(nccl.functions().ncclCommGetAsyncError(communicator, &state),
              ncclSuccess);
  ASSERT_EQ(state, ncclSuccess);

  CUgraph graph = nullptr;
  float value = 0;
  ASSERT_EQ(cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
            CUDA_SUCCESS);
  ASSERT_EQ(nccl.functions().ncclAllReduce(&value, &value, 1, ncclFloat32,
                                           ncclSum, communicator, stream),
            ncclInProgress);
  ASSERT_EQ(cu.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);

  auto sleep = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  std::atomic<bool> isDestroyed = false;
  std::thread keeper([&] {
    sleep();
    EXPECT_EQ(nccl.functions().ncclCommAbort(communicator), ncclSuccess);
  });
  std::thread owner([&] {
    EXPECT_EQ(cu.cuCtxSetCurrent(context), CUDA_SUCCESS);
    while (true) {
      sleep();
      std::lock_guard<std::recursive_mutex> lock(cuda.mutex);
      if (nccl.leftOver() == 0)
        break;
    }
    sleep();
    isDestroyed = true;
    EXPECT_EQ(cu.cuGraphDestroy(graph), CUDA_SUCCESS);
  });
  nccl.waitForEnds();
  EXPECT_TRUE(isDestroyed);
  keeper.join();
  owner.join();
  EXPECT_EQ(nccl.leftOver(), 0u);
  EXPECT_EQ(cuda.violations, std::vector<std::string>());
  EXPECT_EQ(cu.cuStreamDestroy(stream), CUDA_SUCCESS);
  EXPECT_EQ(cu.cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

class NcclRanks : public testing::TestWithParam<int64_t> {
protected:
  NcclRanks() { cuda.gpus.resize(static_cast<size_t>(ranks())); }
  void TearDown() override { expectNothingLeft(); }

  /// Without ranks.
  void expectNothingLeft() {
    nccl.waitForEnds();
    EXPECT_EQ(cuda.violations, std::vector<std::string>());
    EXPECT_EQ(cuda.leftOver(), std::vector<std::string>());
    EXPECT_EQ(nccl.leftOver(), 0u);
  }

  int64_t ranks() const { return GetParam(); }

  Result<std::unique_ptr<Device>> open(int64_t rank) {
    return createCudaDevice({.device = std::to_string(rank),
                             .driver = &cuda.functions(),
                             .ranks = ranks(),
                             .nccl = &nccl.functions()});
  }

  /// Calls run(group) on a thread for each rank; what each has returned. One
  /// that fails ends the group.
  std::vector<Status> onEachRank(const std::function<Status(Group &)> &run) {
    std::vector<Status> results(static_cast<size_t>(ranks()));
    auto groups = createThreadGroup(ranks());
    std::vector<std::thread> threads;
    for (auto &group : *groups)
      threads.emplace_back([&run, &results, group = std::move(group)] {
        Status status = run(*group);
        if (!status.ok())
          group->abort(status.message());
        results[static_cast<size_t>(group->rank())] = std::move(status);
      });
    for (std::thread &thread : threads)
      thread.join();
    return results;
  }

  /// A rank that has joined, with rankedProgram().
  Result<std::unique_ptr<RankRun>> start(Group &group) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, open(group.rank()));
    return RankRun::create(std::move(device), scaleImage(), group);
  }

  /// The same, whose first steps are right.
  Result<std::unique_ptr<RankRun>> startAndRun(Group &group) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<RankRun> rank, start(group));
    for (int64_t tokens : {1, 200, 3, 1000, 200}) {
      std::vector<float> result;
      KF_RETURN_IF_ERROR(rank->run(rankedInput(tokens, group.rank()), result));
      for (int64_t i = 0; i < tokens; ++i)
        for (int64_t other = 0; other < ranks(); ++other)
          EXPECT_EQ(result[static_cast<size_t>(i * ranks() + other)],
                    rankedResult(i, other, ranks()))
              << "row " << i;
    }
    KF_RETURN_IF_ERROR(meet(group));
    return rank;
  }

  /// A rank that ends gives up what others are at still.
  static Status meet(Group &group) {
    const char own = 0;
    std::vector<char> all(static_cast<size_t>(group.size()));
    return group.allGather(&own, all.data(), sizeof(own));
  }

  /// That all have failed: `first` by what it says, the others with its name.
  void expectFailures(const std::vector<Status> &results, size_t first,
                      const std::string &text) {
    for (size_t rank = 0; rank < results.size(); ++rank) {
      EXPECT_TRUE(failsWith(results[rank], text)) << "rank " << rank;
      if (rank != first)
        EXPECT_TRUE(
            failsWith(results[rank], "rank " + std::to_string(first) + ": "));
    }
  }

  FakeCuda cuda;
  FakeNccl nccl{cuda};
};

TEST_P(NcclRanks, HaveTheSameResults) {
  const auto results =
      onEachRank([&](Group &group) { return startAndRun(group).status(); });
  for (const Status &status : results)
    EXPECT_TRUE(succeeds(status));
  // 1 row, 3, 200 and 1000, on each rank; sums and gathers.
  EXPECT_EQ(nccl.calls["ncclAllReduce"], 4 * ranks());
  EXPECT_EQ(nccl.calls["ncclAllGather"], 4 * ranks());
  EXPECT_EQ(nccl.calls["ncclCommAbort"] + nccl.calls["ncclCommDestroy"],
            ranks());
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// rankedProgram(), whose sum takes `bytes` of each rank.
Executable programOfSum(int64_t ranks, int64_t bytes) {
  Executable program = rankedProgram("cuda", scaleImage(), ranks);
  program.maxTokens = 1;
  program.dispatches[1].collective->columns = bytes / 4;
  program.dispatches[1].collective->resultColumns = bytes / 4;
  program.arenaBytes = 256 + 2 * bytes;
  return program;
}

/// Arenas of sums that gain by it are one memory, at one place of all ranks'
/// windows.
TEST_P(NcclRanks, SumsOfFewAndOfManyBytesAreInWindows) {
  const auto results = onEachRank([&](Group &group) -> Status {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<RankRun> rank, startAndRun(group));
    auto isInWindow = [&](const Executable &program) -> Result<bool> {
      KF_ASSIGN_OR_RETURN(auto arena, rank->device->allocateArena(program));
      return CudaBuffer::of(*arena).address() ==
             CudaBuffer::of(*rank->arena).address();
    };
    constexpr int64_t kib = 1 << 10, mib = 1 << 20;
    for (const auto &[bytes, isInside] :
         {std::pair(4L, true), std::pair(32 * kib, true),
          std::pair(32 * kib + 4, false), std::pair(2 * mib - 4, false),
          std::pair(2 * mib, true), std::pair(15 * mib, true),
          std::pair(16 * mib, false)}) {
      KF_ASSIGN_OR_RETURN(bool found,
                          isInWindow(programOfSum(group.size(), bytes)));
      EXPECT_EQ(found, isInside) << bytes;
    }
    // Gathers gain nothing there.
    Executable gathers = programOfSum(group.size(), 4);
    gathers.dispatches.erase(gathers.dispatches.begin() + 1);
    KF_ASSIGN_OR_RETURN(bool found, isInWindow(gathers));
    EXPECT_FALSE(found);
    return meet(group);
  });
  for (const Status &status : results)
    EXPECT_TRUE(succeeds(status));
  EXPECT_EQ(nccl.windowSums, 5);
  // Those that end after others' end abort instead.
  EXPECT_GE(nccl.calls["ncclCommWindowDeregister"], 1);
}

/// GPUs that do not reach one another, and a rank without memory for it.
TEST_P(NcclRanks, NeedNoWindows) {
  for (bool hasMemory : {true, false}) {
    nccl.hasWindows = !hasMemory;
    if (!hasMemory)
      nccl.answer = [made = 0](const std::string &called) mutable {
        return called == "ncclMemAlloc" && made++ == 1 ? ncclSystemError
                                                       : ncclSuccess;
      };
    const auto results =
        onEachRank([&](Group &group) { return startAndRun(group).status(); });
    nccl.answer = nullptr;
    for (const Status &status : results)
      EXPECT_TRUE(succeeds(status));
    EXPECT_EQ(nccl.windowSums, 0);
    EXPECT_EQ(cuda.leftOver(), std::vector<std::string>());
  }
  EXPECT_EQ(nccl.calls["ncclCommWindowDeregister"], 0);
}

TEST_P(NcclRanks, StagesHandRowsOn) {
  const auto results = onEachRank([&](Group &group) -> Status {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<RankRun> rank, start(group));
    KF_RETURN_IF_ERROR(rank->loadStage(scaleImage(), group));
    for (int64_t tokens : {1, 200, 3, 200, 1000}) {
      std::vector<float> result;
      KF_RETURN_IF_ERROR(rank->run(rankedInput(tokens, 0), result));
      for (int64_t i = 0; group.rank() == 0 && i < tokens; ++i)
        EXPECT_EQ(result[static_cast<size_t>(i)], stagedResult(i, ranks()));
    }
    return meet(group);
  });
  for (const Status &status : results)
    EXPECT_TRUE(succeeds(status));
  // 1 row, 3, 200 and 1000, from each rank but the last stage's to the next.
  EXPECT_EQ(nccl.calls["ncclSend"], 4 * (ranks() - 1));
  EXPECT_EQ(nccl.calls["ncclRecv"], 4 * (ranks() - 1));
}

/// Types, rows that become columns, and columns that are dropped.
TEST_P(NcclRanks, GatherEveryType) {
  for (DataType type : {DataType::F32, DataType::F16, DataType::BF16})
    for (int64_t dropped : {0, 1}) {
      const int64_t all = 2 * ranks() - dropped;
      Executable program;
      program.target = "cuda";
      program.programName = "gathers";
      program.maxTokens = 7;
      program.ranks = ranks();
      program.inputs = {{type, {-1, 2}}};
      program.outputs = {{type, {-1, all}}};
      DispatchSpec gather;
      gather.collective = {CollectiveSpec::Kind::AllGather, type, -1, 2, all};
      gather.bindings = {{KF_BINDING_INPUT, 0, 0}, {KF_BINDING_OUTPUT, 0, 0}};
      program.dispatches = {gather};
      auto run = [&](Group &group) -> Status {
        KF_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, open(group.rank()));
        KF_RETURN_IF_ERROR(device->join(group));
        KF_ASSIGN_OR_RETURN(auto loaded, device->load(program));
        const uint64_t size = sizeOf(type);
        KF_ASSIGN_OR_RETURN(auto in, device->allocate(7 * 2 * size));
        KF_ASSIGN_OR_RETURN(auto out, device->allocate(7 * all * size));
        BindingTable table;
        table.inputs = {in.get()};
        table.outputs = {out.get()};
        KF_ASSIGN_OR_RETURN(auto instance, loaded->bind(table));
        KF_ASSIGN_OR_RETURN(auto stream, device->createStream());
        for (int64_t rows : {1, 7, 1, 4}) {
          std::vector<float> own;
          for (int64_t i = 0; i < rows * 2; ++i)
            own.push_back(
                static_cast<float>(i / 2 * 16 + group.rank() * 2 + i % 2));
          std::vector<std::byte> bytes(own.size() * size),
              result(rows * all * size);
          KF_RETURN_IF_ERROR(
              convertFromFloat(type, own.data(), rows * 2, bytes.data()));
          KF_RETURN_IF_ERROR(stream->upload(*in, 0, bytes));
          KF_RETURN_IF_ERROR(stream->enqueue(*instance, scalarsFor(rows)));
          KF_RETURN_IF_ERROR(stream->download(*out, 0, result));
          KF_RETURN_IF_ERROR(stream->synchronize());
          std::vector<float> got(static_cast<size_t>(rows * all));
          KF_RETURN_IF_ERROR(
              convertToFloat(type, result.data(), rows * all, got.data()));
          for (int64_t i = 0; i < rows * all; ++i)
            EXPECT_EQ(got[static_cast<size_t>(i)],
                      static_cast<float>(i / all * 16 + i % all));
        }
        return meet(group);
      };
      for (const Status &status : onEachRank(run))
        EXPECT_TRUE(succeeds(status));
    }
}

TEST_P(NcclRanks, TimesNameThem) {
  const auto results = onEachRank([&](Group &group) -> Status {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<RankRun> rank, startAndRun(group));
    // One measures, as a leader does, and the others do not.
    DispatchTimes times;
    std::vector<float> result;
    KF_RETURN_IF_ERROR(rank->run(rankedInput(2, group.rank()), result,
                                 group.rank() == 0 ? &times : nullptr));
    EXPECT_EQ(result.back(), rankedResult(1, ranks() - 1, ranks()));
    std::vector<std::string> names;
    for (const DispatchTime &time : times)
      names.push_back(time.kernel);
    if (group.rank() == 0)
      EXPECT_EQ(names, (std::vector<std::string>{"scale", "all_reduce", "scale",
                                                 "all_gather"}));
    return meet(group);
  });
  for (const Status &status : results)
    EXPECT_TRUE(succeeds(status));
}

/// A collective and what is beside it wait for one another in full.
TEST_P(NcclRanks, EdgesOfCollectivesAreWhole) {
  std::string text = scaleImage().substr(8);
  text.insert(text.find("  ret;"), "  griddepcontrol.wait;\n");
  const auto results = onEachRank([&](Group &group) -> Status {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<RankRun> rank, start(group));
    Executable program = rankedProgram("cuda", lengthPrefixed(text), ranks());
    program.kernels[0].waits = true;
    // Once more behind the second, which is behind a collective.
    program.dispatches.insert(program.dispatches.begin() + 3,
                              program.dispatches[2]);
    rank->instance.reset();
    KF_RETURN_IF_ERROR(rank->load(program, 1));
    std::vector<float> result;
    KF_RETURN_IF_ERROR(rank->run(rankedInput(1, group.rank()), result));
    return meet(group);
  });
  for (const Status &status : results)
    EXPECT_TRUE(succeeds(status));
  EXPECT_EQ(cuda.earlyEdges, ranks());
}

TEST_P(NcclRanks, NeedAGpuEach) {
  cuda.gpus.pop_back();
  EXPECT_TRUE(
      failsWith(open(0).status(),
                std::to_string(ranks()) +
                    " ranks need a CUDA device each, and the driver has " +
                    std::to_string(ranks() - 1) + ": have fewer ranks"));
}

TEST_P(NcclRanks, NeedGpusThatRunTheSameCode) {
  cuda.gpus.back().major = 8;
  const std::string last = std::to_string(ranks() - 1);
  for (int64_t rank = 0; rank < ranks(); ++rank)
    EXPECT_TRUE(failsWith(
        open(rank).status(),
        "ranks need GPUs that run the same code: CUDA device " + last +
            " is Fake GPU, compute capability 8.0, and device 0 Fake GPU, "
            "compute capability 9.0: name others in CUDA_VISIBLE_DEVICES"));
  for (FakeCuda::Gpu &gpu : cuda.gpus)
    gpu.major = 8;
  EXPECT_TRUE(succeeds(open(0).status()));
  cuda.gpus.back().major = 7;
  EXPECT_TRUE(failsWith(open(0).status(),
                        "CUDA device " + last +
                            ": Fake GPU has compute capability 7.0: kernels "
                            "are made for 8.0"));
}

/// Before there is any rank that would have to end.
TEST_P(NcclRanks, NeedALibraryFromTheFirstDeviceOn) {
  nccl.version = 22605;
  EXPECT_TRUE(failsWith(open(0).status(), "libnccl.so.2 is NCCL 2.26.5"));
  EXPECT_TRUE(succeeds(createCudaDevice({.device = {},
                                         .driver = &cuda.functions(),
                                         .nccl = &nccl.functions()})
                           .status()));
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

TEST_P(NcclRanks, ARankThatIsGoneEndsTheRunsOfOthers) {
  const std::string last = "rank " + std::to_string(ranks() - 1);
  const auto results = onEachRank([&](Group &group) -> Status {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<RankRun> rank, startAndRun(group));
    if (group.rank() + 1 == group.size())
      return Status();
    std::vector<float> result;
    const Status status = rank->run(rankedInput(9, group.rank()), result);
    EXPECT_TRUE(failsWith(status, last + " has ended"));
    EXPECT_EQ(status.code(), StatusCode::Unavailable);
    EXPECT_EQ(rank->run(rankedInput(9, group.rank()), result).message(),
              last + " has ended");
    return status;
  });
  EXPECT_TRUE(succeeds(results.back()));
}

TEST_P(NcclRanks, AbortEndsAWaitFromAnotherThread) {
  const auto results = onEachRank([&](Group &group) -> Status {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<RankRun> rank, startAndRun(group));
    if (group.rank() > 0) { // is there, and does not come
      while (group.failure().ok())
        std::this_thread::yield();
      return group.failure();
    }
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      group.abort("had enough");
    });
    std::vector<float> result;
    const Status status = rank->run(rankedInput(9, 0), result);
    other.join();
    return status;
  });
  for (const Status &status : results)
    EXPECT_EQ(status.message(), "rank 0: had enough");
}

/// Ranks that do not come to record a graph are not waited for either.
TEST_P(NcclRanks, ARankThatFailsToJoinEndsTheOthers) {
  const auto results = onEachRank([&](Group &group) -> Status {
    if (group.rank() == 0)
      return Status::error("no wish to");
    return start(group).status();
  });
  expectFailures(results, 0, "no wish to");
}

/// A rank that follows waits for none of its runs.
TEST_P(NcclRanks, RunsThatNobodyWaitsForAreGivenUp) {
  std::atomic<int64_t> begun = 0, ended = 0;
  const auto results = onEachRank([&](Group &group) -> Status {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<RankRun> rank, startAndRun(group));
    if (group.rank() == 0) { // does not come, and is there until others end
      while (begun < ranks() - 1)
        std::this_thread::yield();
      group.abort("had enough");
      while (ended < ranks() - 1)
        std::this_thread::yield();
      return group.failure();
    }
    KF_ASSIGN_OR_RETURN(auto stream, rank->device->createStream());
    EXPECT_TRUE(succeeds(stream->enqueue(*rank->instance, scalarsFor(3))));
    ++begun;
    const auto begin = std::chrono::steady_clock::now();
    auto aborts = [&] {
      std::lock_guard<std::recursive_mutex> lock(cuda.mutex);
      return nccl.calls["ncclCommAbort"];
    };
    while (aborts() < ranks() - 1 &&
           std::chrono::steady_clock::now() - begin < std::chrono::seconds(60))
      std::this_thread::yield();
    EXPECT_EQ(aborts(), ranks() - 1);
    ++ended;
    return stream->synchronize();
  });
  for (const Status &status : results)
    EXPECT_EQ(status.message(), "rank 0: had enough");
}

/// Nor of asking for its state.
TEST_P(NcclRanks, AStateThatCannotBeHadEndsAll) {
  const auto results = onEachRank([&](Group &group) -> Status {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<RankRun> rank, startAndRun(group));
    {
      std::lock_guard<std::recursive_mutex> lock(cuda.mutex);
      nccl.answer = [](const std::string &function) {
        return function == "ncclCommGetAsyncError" ? ncclSystemError
                                                   : ncclSuccess;
      };
    }
    const auto begin = std::chrono::steady_clock::now();
    while (group.failure().ok() &&
           std::chrono::steady_clock::now() - begin < std::chrono::seconds(60))
      std::this_thread::yield();
    return group.failure();
  });
  for (const Status &status : results)
    EXPECT_TRUE(failsWith(status, "NCCL: unhandled system error"));
}

/// What NCCL finds out by itself, in the middle of a run.
TEST_P(NcclRanks, AsynchronousErrorsEndAll) {
  std::atomic<int64_t> idle = 0;
  const auto results = onEachRank([&](Group &group) -> Status {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<RankRun> rank, startAndRun(group));
    if (group.rank() > 0) {
      ++idle;
      while (group.failure().ok())
        std::this_thread::yield();
      return group.failure();
    }
    while (idle < ranks() - 1 && group.failure().ok())
      std::this_thread::yield();
    {
      std::lock_guard<std::recursive_mutex> lock(cuda.mutex);
      nccl.answer = [this, before = cuda.calls["cuGraphLaunch"],
                     asked = 0](const std::string &function) mutable {
        if (function == "ncclCommGetAsyncError" &&
            cuda.calls["cuGraphLaunch"] > before && ++asked == 10)
          nccl.outcome = ncclRemoteError;
        return ncclSuccess;
      };
    }
    std::vector<float> result;
    return rank->run(rankedInput(9, 0), result);
  });
  for (const Status &status : results)
    EXPECT_TRUE(failsWith(status, "NCCL: remote process exited"));
}

/// A rank that follows does not wait for its runs: somebody has to.
TEST_P(NcclRanks, AFaultThatNobodyWaitsForEndsAll) {
  const auto results = onEachRank([&](Group &group) -> Status {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<RankRun> rank, startAndRun(group));
    {
      std::lock_guard<std::recursive_mutex> lock(cuda.mutex);
      cuda.fail("cuEventQuery", CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    while (group.failure().ok())
      std::this_thread::yield();
    std::lock_guard<std::recursive_mutex> lock(cuda.mutex);
    cuda.failNothing();
    return group.failure();
  });
  for (const Status &status : results)
    EXPECT_TRUE(failsWith(status, "a run: CUDA_ERROR_ILLEGAL_ADDRESS"));
}

/// Each function of NCCL's and of recording, at each of its calls.
TEST_P(NcclRanks, EveryCallThatFailsEndsAll) {
  constexpr const char *functions[] = {"ncclGetVersion",
                                       "ncclGetUniqueId",
                                       "ncclCommInitRankConfig",
                                       "ncclCommGetAsyncError",
                                       "ncclCommWindowRegister",
                                       "ncclAllReduce",
                                       "ncclAllGather",
                                       "cuStreamCreate",
                                       "cuStreamBeginCapture",
                                       "cuStreamGetCaptureInfo",
                                       "cuStreamUpdateCaptureDependencies",
                                       "cuStreamEndCapture",
                                       "cuGraphAddKernelNode",
                                       "cuGraphAddEmptyNode",
                                       "cuMemcpy2DAsync",
                                       "cuLaunchKernel",
                                       "cuGraphInstantiate",
                                       "cuGraphLaunch",
                                       "cuEventCreate",
                                       "cuEventRecord",
                                       "cuStreamQuery"};
  for (const std::string function : functions) {
    const bool isNccl = function.starts_with("nccl");
    for (int number = 0; number < 8; ++number) {
      SCOPED_TRACE(function + " number " + std::to_string(number));
      bool hasFailed = false;
      auto fails = [&, made = 0](const std::string &called) mutable {
        const bool now = called == function && made++ == number;
        hasFailed |= now;
        return now;
      };
      if (isNccl)
        nccl.answer = [fails](const std::string &called) mutable {
          return fails(called) ? ncclSystemError : ncclSuccess;
        };
      else
        cuda.answer = [fails](const std::string &called) mutable {
          return fails(called) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        };
      const auto results =
          onEachRank([&](Group &group) { return startAndRun(group).status(); });
      nccl.answer = nullptr;
      cuda.answer = nullptr;
      if (number == 0)
        EXPECT_TRUE(hasFailed) << "it is never called";
      // One that has done all it had to is not concerned any more.
      if (hasFailed)
        EXPECT_TRUE(std::ranges::any_of(results, [&](const Status &status) {
          return !status.ok() &&
                 status.message().find('\n') == std::string::npos;
        }));
      else
        EXPECT_TRUE(std::ranges::all_of(results, &Status::ok));
      expectNothingLeft();
      if (testing::Test::HasFailure())
        return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NcclRanks, testing::Values(2, 3));

} // namespace
