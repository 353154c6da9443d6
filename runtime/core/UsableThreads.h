//===- UsableThreads.h - How many threads make sense ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_USABLETHREADS_H
#define KF_RUNTIME_CORE_USABLETHREADS_H

#include <optional>
#include <string>

namespace kf {

/// CPUs' worth of time that control groups allow this process: the least of
/// what its group and all groups above it are limited to, 0.5 for half a CPU;
/// nothing where there is no limit. Reads cpu.max of version 2 and
/// cpu.cfs_quota_us of version 1, where proc/self/cgroup and
/// proc/self/mountinfo say that they are. `root` is put in front of every path.
/// What cannot be read is no limit. Any thread.
std::optional<double> controlGroupCpus(const std::string &root = "");

/// Threads that this process can keep busy, at least 1: the hardware threads
/// that its affinity (taskset, cpuset) leaves it, but no more than the control
/// groups' limit, rounded to the nearest whole number. Any thread.
int usableThreads(const std::string &root = "");

} // namespace kf

#endif // KF_RUNTIME_CORE_USABLETHREADS_H
