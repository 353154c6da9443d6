//===- MpiLibrary.cpp - An MPI that is opened at run time -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/MpiLibrary.h"

#include "runtime/core/EventCount.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <system_error>
#include <thread>

#include <dlfcn.h>
#include <sched.h>

using namespace kf;

namespace {

struct Known {
  const char *name, *plugin, *package;
};

Known knownOf(MpiKind kind) {
  return kind == MpiKind::OpenMpi
             ? Known{"Open MPI", "kf_mpi_openmpi.so", "libopenmpi-dev"}
             : Known{"MPICH", "kf_mpi_mpich.so", "libmpich-dev"};
}

/// Looks at what has begun before others may have the core: some 50 us.
constexpr int kSpins = 1000;

using Clock = std::chrono::steady_clock;

/// What is sent and has not come by then is computed still.
constexpr Clock::duration kShortWait = std::chrono::microseconds(500);
constexpr Clock::duration kLongestNap = std::chrono::microseconds(200);

} // namespace

std::string MpiLibrary::pluginFolder() {
  std::error_code error;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "lib" / "kernelforge";
}

Result<MpiLibrary> MpiLibrary::open(MpiKind kind, const std::string &folder) {
  const Known known = knownOf(kind);
  const std::string path = folder + "/" + known.plugin;
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return Status::error(std::string("a launcher of ") + known.name +
                             "'s has started this, and there is no '" + path +
                             "': build with the package " + known.package +
                             ", or use a launcher that there is a plugin for",
                         StatusCode::Unavailable);
  // Its symbols are not for others: a plugin of another MPI has the same.
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Status::error(std::string("cannot open the plugin for ") +
                             known.name + ": " + dlerror(),
                         StatusCode::Unavailable);
  const auto get = reinterpret_cast<KfMpiPluginFunction>(
      dlsym(library, KF_MPI_PLUGIN_SYMBOL));
  const KfMpiPlugin *plugin = get ? get() : nullptr;
  if (!plugin || plugin->version != KF_MPI_PLUGIN_VERSION)
    return Status::error("'" + path +
                             "' is the plugin of another build; install both "
                             "together",
                         StatusCode::Unavailable);
  return MpiLibrary(plugin);
}

Status MpiLibrary::check(int error, const char *what) const {
  if (error == 0)
    return Status();
  char text[256];
  plugin->describe(error, text, sizeof(text));
  return Status::error(name() + " cannot " + what + ": " + text,
                       StatusCode::Unavailable);
}

std::string MpiLibrary::name() const { return plugin->library(); }

Status MpiLibrary::start(const LaunchedRank &launched) {
  int rank = 0, size = 0;
  KF_RETURN_IF_ERROR(check(plugin->start(&rank, &size), "start"));
  if (rank != launched.rank || size != launched.size)
    return Status::error(
        name() + " knows of " + std::to_string(size) + " rank" +
            (size == 1 ? "" : "s") + " where the launcher has started " +
            std::to_string(launched.size) +
            ": it is another launcher than its own; use its mpirun, or set "
            "KF_MPI to openmpi or mpich",
        StatusCode::Unavailable);
  return Status();
}

Status MpiLibrary::finish(bool isCrowded, const Poll &poll) {
  for (int looks = isCrowded ? kSpins : 0;; ++looks) {
    int isDone = 0;
    KF_RETURN_IF_ERROR(check(plugin->test(&isDone), "go on"));
    if (isDone)
      return Status();
    KF_RETURN_IF_ERROR(poll());
    if (looks < kSpins)
      spinPause();
    else
      sched_yield();
    looks = std::min(looks, kSpins);
  }
}

/// Waits until something of rank `rank`'s is there. Naps are short beside what
/// was waited before them.
Status MpiLibrary::await(int rank, bool isCrowded, const Poll &poll) {
  const Clock::time_point begin = Clock::now();
  for (int looks = isCrowded ? kSpins : 0;;) {
    int isThere = 0;
    KF_RETURN_IF_ERROR(check(plugin->arrived(rank, &isThere), "go on"));
    if (isThere)
      return Status();
    KF_RETURN_IF_ERROR(poll());
    if (looks < kSpins) {
      ++looks;
      spinPause();
      continue;
    }
    const Clock::duration waited = Clock::now() - begin;
    if (waited < kShortWait)
      sched_yield();
    else
      std::this_thread::sleep_for(std::min(waited / 16, kLongestNap));
  }
}

Status MpiLibrary::sum(const float *source, float *target, uint64_t count,
                       bool isCrowded, const Poll &poll) {
  constexpr uint64_t most = uint64_t(1) << 30;
  for (uint64_t begin = 0; begin < count; begin += most) {
    const int length = static_cast<int>(std::min(most, count - begin));
    KF_RETURN_IF_ERROR(
        check(plugin->beginSum(source + begin, target + begin, length), "sum"));
    KF_RETURN_IF_ERROR(finish(isCrowded, poll));
  }
  return Status();
}

/// `bytes` as MPI counts them; `what` it does with those of a rank.
Result<int> MpiLibrary::countOf(uint64_t bytes, const char *what) {
  if (bytes > static_cast<uint64_t>(std::numeric_limits<int>::max()))
    return Status::error("MPI " + std::string(what) +
                             " less than 2 GiB of each rank, not " +
                             std::to_string(bytes) + " bytes",
                         StatusCode::Unsupported);
  return static_cast<int>(bytes);
}

Status MpiLibrary::gather(const void *source, void *target, uint64_t bytes,
                          bool isCrowded, const Poll &poll) {
  KF_ASSIGN_OR_RETURN(const int count, countOf(bytes, "gathers"));
  KF_RETURN_IF_ERROR(
      check(plugin->beginGather(source, target, count), "gather"));
  return finish(isCrowded, poll);
}

Status MpiLibrary::send(const void *source, uint64_t bytes, int64_t rank,
                        bool isCrowded, const Poll &poll) {
  KF_ASSIGN_OR_RETURN(const int count, countOf(bytes, "sends"));
  KF_RETURN_IF_ERROR(
      check(plugin->beginSend(source, count, static_cast<int>(rank)), "send"));
  return finish(isCrowded, poll);
}

Status MpiLibrary::receive(void *target, uint64_t bytes, int64_t rank,
                           bool isCrowded, const Poll &poll) {
  KF_ASSIGN_OR_RETURN(const int count, countOf(bytes, "receives"));
  KF_RETURN_IF_ERROR(await(static_cast<int>(rank), isCrowded, poll));
  KF_RETURN_IF_ERROR(check(
      plugin->beginReceive(target, count, static_cast<int>(rank)), "receive"));
  KF_RETURN_IF_ERROR(finish(isCrowded, poll));
  int found = 0;
  KF_RETURN_IF_ERROR(check(plugin->received(&found), "count what it received"));
  if (found != count)
    return Status::error("rank " + std::to_string(rank) + " sends " +
                             std::to_string(found) + " bytes where " +
                             std::to_string(count) + " are due",
                         StatusCode::Internal);
  return Status();
}

void MpiLibrary::end() { (void)plugin->end(); }
