//===- WriteFileTest.cpp - Tests of writing files -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/WriteFile.h"

#include "test/runtime/TempFile.h"

#include "runtime/core/MappedFile.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kf;
using namespace kf::test;

namespace fs = std::filesystem;

namespace {

std::string contentOf(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  return file.ok() ? std::string(file->text()) : file.message();
}

size_t filesIn(const TempFolder &folder) {
  return static_cast<size_t>(std::distance(
      fs::directory_iterator(folder.path()), fs::directory_iterator()));
}

unsigned modeOf(const std::string &path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

/// A limit on the size of files stands for a full disk.
class FullDisk {
public:
  FullDisk() : handler(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit limit = before;
    limit.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
  }

private:
  rlimit before;
  sighandler_t handler;
};

/// How many of the next calls of fsync and close a signal interrupts.
int interruptedSyncs = 0, interruptedCloses = 0;

int interrupt(int &count) {
  --count;
  errno = EINTR;
  return -1;
}

} // namespace

// In place of fsync, close and getpid, where this project calls them
// (CMakeLists.txt).
extern "C" {
int __real_fsync(int descriptor);
int __real_close(int descriptor);
int __wrap_fsync(int descriptor) {
  return interruptedSyncs > 0 ? interrupt(interruptedSyncs)
                              : __real_fsync(descriptor);
}
int __wrap_close(int descriptor) {
  const int result = __real_close(descriptor);
  return interruptedCloses > 0 ? interrupt(interruptedCloses) : result;
}
/// Processes of different containers that share a folder may have one number.
pid_t __wrap_getpid() { return 1; }
}

TEST(WriteFile, ReplacesWhatWasThere) {
  TempFolder temp;
  const std::string path = temp.write("x", "something longer");
  ASSERT_TRUE(writeFile(path, "short").ok());
  EXPECT_EQ(contentOf(path), "short");
  EXPECT_EQ(filesIn(temp), 1u);
}

TEST(WriteFile, LeavesWhatWasThereWhenItFails) {
  TempFolder temp;
  const std::string path = temp.write("x", "old");
  Status status;
  {
    FullDisk disk;
    status = writeFile(path, std::string(5000, 'x'));
  }
  EXPECT_EQ(status.message(), "cannot write '" + path + "': File too large");
  EXPECT_EQ(contentOf(path), "old");
  EXPECT_EQ(filesIn(temp), 1u);
}

TEST(WriteFile, OutlastsInterrupts) {
  TempFolder temp;
  const std::string path = temp.path("x");
  interruptedSyncs = 2;
  interruptedCloses = 1;
  const Status status = writeFile(path, "whole");
  EXPECT_EQ(interruptedSyncs, 0);
  EXPECT_EQ(interruptedCloses, 0);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(contentOf(path), "whole");
}

TEST(WriteFile, ReplacesNothingUnlessItMay) {
  TempFolder temp;
  const std::string path = temp.write("x", "old");
  EXPECT_EQ(writeFile(path, "new", false).message(),
            "'" + path + "' exists already");
  EXPECT_EQ(contentOf(path), "old");
  EXPECT_TRUE(writeFile(temp.path("y"), "new", false).ok());
}

TEST(WriteFile, LeavesLinksAndPermissions) {
  TempFolder temp;
  const std::string path = temp.write("x", "old"), link = temp.path("link");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  fs::create_symlink("x", link);
  ASSERT_TRUE(writeFile(link, "new").ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(contentOf(path), "new");
  EXPECT_EQ(modeOf(path), 0640u);
  // One that leads to nothing yet, and one that leads to itself.
  const std::string later = temp.path("later"), loop = temp.path("loop");
  fs::create_symlink(temp.path("new"), later);
  ASSERT_TRUE(writeFile(later, "made").ok());
  EXPECT_TRUE(fs::is_symlink(later));
  EXPECT_EQ(contentOf(temp.path("new")), "made");
  fs::create_symlink("loop", loop);
  EXPECT_EQ(writeFile(loop, "x").message(),
            "cannot write '" + loop + "': Too many levels of symbolic links");
}

TEST(WriteFile, TakesNamesAsLongAsNamesCanBe) {
  TempFolder temp;
  const std::string path = temp.path(std::string(255, 'n'));
  EXPECT_TRUE(writeFile(path, "x").ok());
  EXPECT_EQ(contentOf(path), "x");
  EXPECT_EQ(writeFile(path + "n", "x").message(),
            "cannot write '" + path + "n': File name too long");
}

TEST(WriteFile, RefusesFilesThatAreNotToBeWritten) {
  TempFolder temp;
  const std::string path = temp.write("x", "old");
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(chmod(temp.path().c_str(), 0777), 0);
  const pid_t child = fork();
  if (child == 0) {
    // Root may write everything.
    if (geteuid() == 0 && setuid(65534) != 0)
      _exit(2);
    _exit(writeFile(path, "new").message() ==
                  "cannot write '" + path + "': Permission denied"
              ? 0
              : 1);
  }
  int result = -1;
  ASSERT_EQ(waitpid(child, &result, 0), child);
  EXPECT_EQ(result, 0);
  EXPECT_EQ(contentOf(path), "old");
}

TEST(AtomicFile, HasTheModeThatItIsGiven) {
  TempFolder temp;
  const std::string path = temp.path("x");
  const mode_t mask = umask(022);
  for (unsigned mode : {0600u, 0666u}) {
    fs::remove(path);
    Result<AtomicFile> file = AtomicFile::create(path, {.mode = mode});
    ASSERT_TRUE(file.ok()) << file.message();
    EXPECT_FALSE(fs::exists(path));
    ASSERT_TRUE(file->finish().ok());
    EXPECT_EQ(modeOf(path), mode & ~022u);
  }
  umask(mask);
}

TEST(AtomicFile, SharesItsTemporaryWithNoOtherProcess) {
  TempFolder temp;
  const std::string path = temp.path("x");
  // Two that end while they write, with the same number and memory.
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const Result<AtomicFile> file = AtomicFile::create(path, {});
      _exit(file.ok() ? 0 : 1);
    }
    int result = -1;
    ASSERT_EQ(waitpid(child, &result, 0), child);
    EXPECT_EQ(result, 0);
  }
  EXPECT_EQ(filesIn(temp), 2u);
}

TEST(WriteFile, TakesDevices) {
  EXPECT_TRUE(writeFile("/dev/null", "x").ok());
  EXPECT_EQ(writeFile("/dev/full", "x").message(),
            "cannot write '/dev/full': No space left on device");
}

TEST(WriteFile, RefusesWhatMayWait) {
  TempFolder temp;
  const std::string pipe = temp.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(writeFile(pipe, "x").message(),
            "cannot write '" + pipe + "': it is not a regular file");
}

TEST(WriteFile, NamesFoldersThatAreNotThere) {
  TempFolder temp;
  EXPECT_EQ(writeFile(temp.path("no/x"), "x").message(),
            "cannot write '" + temp.path("no/x") +
                "': No such file or directory");
  EXPECT_EQ(writeFile(temp.path(), "x").message(),
            "cannot write '" + temp.path() + "': Is a directory");
}
