//===- RankSums.cpp - Collectives of processes, checked -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every rank of a job that a launcher has started runs this. Rank 0 says which
// collectives had another result than they should, or "ok".
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/Launcher.h"
#include "runtime/core/Tensor.h"
#include "runtime/session/RankProcesses.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include <time.h>

using namespace kf;

namespace {

const char *variable(const char *name) { return std::getenv(name); }

/// What rank `rank` adds, so that sums of `type` are not exact.
std::vector<float> valuesOf(DataType type, int64_t rank, size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank));
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(random);
  std::vector<std::byte> rounded(count * sizeOf(type));
  const auto length = static_cast<int64_t>(count);
  (void)convertFromFloat(type, values.data(), length, rounded.data());
  (void)convertToFloat(type, rounded.data(), length, values.data());
  return values;
}

Status wrong(DataType type, size_t count, const char *what) {
  return Status::error("a sum of " + std::to_string(count) + " elements of " +
                       std::string(nameOf(type)) + " " + what);
}

/// A sum is that of f32, rounded once, and has equal bits on all ranks.
Status checkSum(Group &group, DataType type, size_t count) {
  const auto length = static_cast<int64_t>(count);
  std::vector<double> exact(count);
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    const std::vector<float> values = valuesOf(type, rank, count);
    for (size_t i = 0; i < count; ++i)
      exact[i] += static_cast<double>(values[i]);
  }
  const std::vector<float> own = valuesOf(type, group.rank(), count);
  std::vector<std::byte> source(count * sizeOf(type)), sum(source.size());
  KF_RETURN_IF_ERROR(convertFromFloat(type, own.data(), length, source.data()));
  KF_RETURN_IF_ERROR(group.allReduce(type, source.data(), sum.data(), count));
  std::vector<float> found(count);
  KF_RETURN_IF_ERROR(convertToFloat(type, sum.data(), length, found.data()));
  // Half a unit in the last place, and what f32 leaves of it.
  const double unit = type == DataType::F32   ? 1e-6
                      : type == DataType::F16 ? 0.501 / 1024
                                              : 0.501 / 128;
  for (size_t i = 0; i < count; ++i)
    if (std::abs(static_cast<double>(found[i]) - exact[i]) >
        unit * std::max(std::abs(exact[i]), 1.0))
      return wrong(type, count, "is not rounded once");
  std::vector<std::byte> all(sum.size() * static_cast<size_t>(group.size()));
  KF_RETURN_IF_ERROR(group.allGather(sum.data(), all.data(), sum.size()));
  for (size_t at = 0; at < all.size(); at += sum.size())
    if (std::memcmp(all.data() + at, sum.data(), sum.size()) != 0)
      return wrong(type, count, "differs between ranks");
  return Status();
}

/// What ranks hand on from rank 1 to rank 0 arrives whole and in its order,
/// little of it and much.
Status checkStages(Group &group) {
  for (int round = 0; round < 20; ++round)
    for (const size_t count : {1, 2048, 1000000}) {
      std::vector<float> sent = valuesOf(DataType::F32, round, count);
      const uint64_t bytes = count * sizeof(float);
      if (group.rank() != 1) {
        std::vector<float> found(count);
        KF_RETURN_IF_ERROR(group.receive(found.data(), bytes));
        if (found != sent)
          return Status::error("what rank " + std::to_string(group.previous()) +
                               " sends is not what arrives");
      }
      if (group.rank() != 0)
        KF_RETURN_IF_ERROR(group.send(sent.data(), bytes));
    }
  return Status();
}

/// Seconds of a core that the calling thread has had.
double threadSeconds() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

/// A rank that waits long for what another one sends leaves it the cores.
Status checkWaiting(Group &group) {
  using namespace std::chrono_literals;
  char value = 1;
  if (group.rank() == 1)
    std::this_thread::sleep_for(600ms);
  const auto begin = std::chrono::steady_clock::now();
  const double before = threadSeconds();
  if (group.rank() != 1)
    KF_RETURN_IF_ERROR(group.receive(&value, 1));
  const double used = threadSeconds() - before;
  // On a busy machine it may be longer than the other one sleeps.
  const double waited =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  if (group.rank() != 0)
    KF_RETURN_IF_ERROR(group.send(&value, 1));
  if (used > std::max(0.3, waited / 2))
    return Status::error("rank " + std::to_string(group.rank()) +
                         " computes for " + std::to_string(used) +
                         " s while it waits for " + std::to_string(waited) +
                         " s");
  return Status();
}

Status checkAll(Group &group) {
  // They begin together behind it.
  KF_RETURN_IF_ERROR(checkSum(group, DataType::F32, 1));
  KF_RETURN_IF_ERROR(checkWaiting(group));
  for (int round = 0; round < 20; ++round)
    for (const DataType type : {DataType::F32, DataType::F16, DataType::BF16})
      for (const size_t count : {1, 7, 2048, 5000, 100000})
        KF_RETURN_IF_ERROR(checkSum(group, type, count));
  return checkStages(group);
}

/// Others wait for a rank that has found an error.
Status check(Group &group) {
  const Status status = checkAll(group);
  if (!status.ok())
    group.abort(status.message());
  return status;
}

Status run(const LaunchedRank &launched) {
  KF_ASSIGN_OR_RETURN(
      const std::unique_ptr<RankProcesses> processes,
      RankProcesses::meet({.launched = launched, .build = "test"}, variable));
  if (launched.rank != 0)
    return processes->follow([](const RankSetup &, Group &group,
                                RankChannel &) { return check(group); });
  KF_ASSIGN_OR_RETURN(const std::unique_ptr<OtherRanks> others,
                      processes->lead(RankSetup()));
  return check(others->group());
}

} // namespace

int main() {
  const Result<std::optional<LaunchedRank>> launched = findLauncher(variable);
  if (!launched.ok() || !*launched) {
    std::fputs("usage: mpirun -n N kf_rank_sums\n", stderr);
    return 2;
  }
  const Status status = run(**launched);
  if (!status.ok() && !status.isCancelled()) // else rank 0 says why
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
  if (status.ok() && (*launched)->rank == 0)
    std::puts("ok");
  return status.ok() ? 0 : 1;
}
