//===- UsableThreadsTest.cpp - How many threads make sense ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/UsableThreads.h"

#include "runtime/core/ThreadPool.h"
#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

#include <sched.h>

using namespace kf;

namespace {

/// The files of a system, below a folder.
class FakeRoot {
public:
  FakeRoot() { write("/proc/self/mountinfo", mounts); }

  void write(const std::string &path, const std::string &text) {
    const std::filesystem::path file = root.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void mount(const std::string &line) {
    mounts += line + "\n";
    write("/proc/self/mountinfo", mounts);
  }
  void mountVersion2(const std::string &group = "/") {
    mount("35 24 0:30 " + group +
          " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw");
  }
  void mountVersion1(const std::string &group = "/") {
    mount("33 31 0:30 " + group +
          " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct");
  }
  std::optional<double> cpus() const { return controlGroupCpus(root.path()); }
  int threads() const { return usableThreads(root.path()); }

private:
  test::TempFolder root;
  std::string mounts =
      "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n";
};

TEST(UsableThreads, WithoutControlGroups) {
  EXPECT_EQ(controlGroupCpus("/no/such/folder"), std::nullopt);
  FakeRoot root;
  EXPECT_EQ(root.cpus(), std::nullopt);
  root.write("/proc/self/cgroup", "0::/\n");
  EXPECT_EQ(root.cpus(), std::nullopt);
}

TEST(UsableThreads, Version2TakesTheLeastUpTheHierarchy) {
  FakeRoot root;
  root.mountVersion2();
  root.write("/proc/self/cgroup", "0::/user.slice/a.scope\n");
  const std::string top = "/sys/fs/cgroup";
  root.write(top + "/user.slice/a.scope/cpu.max", "max 100000\n");
  EXPECT_EQ(root.cpus(), std::nullopt);
  root.write(top + "/user.slice/a.scope/cpu.max", "250000 100000\n");
  EXPECT_EQ(root.cpus(), 2.5);
  root.write(top + "/user.slice/cpu.max", "75000 50000\n");
  EXPECT_EQ(root.cpus(), 1.5);
  root.write(top + "/user.slice/cpu.max", "max 100000\n");
  EXPECT_EQ(root.cpus(), 2.5);
  root.write(top + "/cpu.max", "10000 100000\n");
  EXPECT_EQ(root.cpus(), 0.1);
  root.write(top + "/other.slice/cpu.max", "1000 100000\n");
  EXPECT_EQ(root.cpus(), 0.1);
}

TEST(UsableThreads, Version1) {
  FakeRoot root;
  root.mount("36 31 0:33 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset");
  root.mountVersion1();
  root.mount("41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw");
  root.write("/proc/self/cgroup", "9:cpuset:/elsewhere\n"
                                  "3:cpu,cpuacct:/jobs/7\n"
                                  "0::/init.scope\n");
  const std::string group = "/sys/fs/cgroup/cpu,cpuacct/jobs";
  root.write(group + "/7/cpu.cfs_quota_us", "-1\n");
  root.write(group + "/7/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(root.cpus(), std::nullopt);
  root.write(group + "/cpu.cfs_quota_us", "350000\n");
  root.write(group + "/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(root.cpus(), 3.5);
  root.write(group + "/7/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(root.cpus(), 1.0);
  // Both versions limit: the least of all.
  root.write("/sys/fs/cgroup/unified/init.scope/cpu.max", "50000 100000\n");
  EXPECT_EQ(root.cpus(), 0.5);
}

/// A container sees its own group as the root of what is mounted, whether its
/// path is the host's or its own.
TEST(UsableThreads, Containers) {
  for (const char *path : {"/docker/4e05", "/", "/docker/4e05/../../.."}) {
    FakeRoot root;
    root.mountVersion1("/docker/4e05");
    root.write("/proc/self/cgroup", std::string("5:cpu,cpuacct:") + path);
    root.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000");
    root.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
    EXPECT_EQ(root.cpus(), 2.0) << path;
  }
  FakeRoot root;
  root.mountVersion2("/docker/4e05");
  root.write("/proc/self/cgroup", "0::/docker/4e05/inner\n");
  root.write("/sys/fs/cgroup/inner/cpu.max", "300000 100000");
  EXPECT_EQ(root.cpus(), 3.0);
  root.write("/sys/fs/cgroup/cpu.max", "100000 100000");
  EXPECT_EQ(root.cpus(), 1.0);
  // Beside what is mounted, with a name that begins the same.
  root.write("/proc/self/cgroup", "0::/docker/4e05b/x\n");
  EXPECT_EQ(root.cpus(), 1.0);
}

TEST(UsableThreads, EscapedPaths) {
  FakeRoot root;
  root.mount("35 24 0:30 / /mnt/my\\040groups\\134 rw - cgroup2 none rw");
  root.write("/proc/self/cgroup", "0::/a\n");
  root.write("/mnt/my groups\\/a/cpu.max", "200000 100000\n");
  EXPECT_EQ(root.cpus(), 2.0);
}

TEST(UsableThreads, WhatCannotBeReadIsNoLimit) {
  for (const char *text :
       {"", "\n", "max", "max max", "0 100000", "-1 100000", "100000 0",
        "100000 -5", "100000", "99999999999999999999 100000", "1e5 100000",
        "100000 100000 100000", "nan nan"}) {
    FakeRoot root;
    root.mountVersion2();
    root.write("/proc/self/cgroup", "0::/\n");
    root.write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(root.cpus(), std::nullopt) << text;
  }
  for (const char *text : {"", "0", "0:", "::", "0::", "junk\n\n:\n0::\n"}) {
    FakeRoot root;
    root.mountVersion2();
    root.mount("");
    root.mount("a b c d e f g h i j k");
    root.mount("- - - - - - - - cgroup2");
    root.write("/proc/self/cgroup", text);
    EXPECT_EQ(root.cpus(), std::nullopt) << text;
  }
}

/// Whatever runs the test leaves it at least one CPU, so that limits up to one
/// give one thread, and larger ones no more than there are CPUs.
TEST(UsableThreads, RoundedAndWithinTheAffinity) {
  FakeRoot root;
  root.mountVersion2();
  root.write("/proc/self/cgroup", "0::/\n");
  const int all = usableThreads("/no/such/folder");
  auto threads = [&](const std::string &limit) {
    root.write("/sys/fs/cgroup/cpu.max", limit);
    return root.threads();
  };
  EXPECT_EQ(threads("max 100000"), all);
  EXPECT_EQ(threads("9999900000 100000"), all);
  for (const char *small :
       {"1000 100000", "50000 100000", "100000 100000", "149000 100000"})
    EXPECT_EQ(threads(small), 1) << small;
  EXPECT_EQ(threads("150000 100000"), std::min(2, all));
  EXPECT_EQ(threads("249000 100000"), std::min(2, all));

  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &before))
    ++cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(threads("400000 100000"), 1);
  EXPECT_EQ(ThreadPool::create(0).take()->size(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

} // namespace
