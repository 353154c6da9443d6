//===- ReadFaultsTest.cpp - Mapped files that shrink while in use ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/ReadFaults.h"

#include "test/runtime/TempFile.h"

#include "runtime/core/MappedFile.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/io/GgufWriter.h"

#include <gtest/gtest.h>

#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>

using namespace kf;
using namespace kf::test;
namespace fs = std::filesystem;

namespace {

/// More than a page of any system.
constexpr size_t kBytes = 1 << 20;

/// Reads the last byte.
char lastOf(const MappedFile &file) {
  return *static_cast<const volatile char *>(&file.text().back());
}

std::string shorter(const std::string &path) {
  return "^error: cannot read '" + path +
         "': it became shorter while it was in use; run again with the whole "
         "file\n$";
}

TEST(ReadFaultsDeathTest, NamesTheFileThatWasCutOff) {
  TempFolder temp;
  const std::string other = temp.write("other", std::string(kBytes, 'x'));
  const std::string path = temp.write("model", std::string(kBytes, 'x'));
  auto cutOff = [&] {
    exitOnReadFaults();
    Result<MappedFile> before = MappedFile::open(other);
    Result<MappedFile> file = MappedFile::open(path);
    Result<MappedFile> after = MappedFile::open(other);
    MappedFile moved = file.take();
    fs::resize_file(path, 100);
    lastOf(moved);
  };
  EXPECT_EXIT(cutOff(), testing::ExitedWithCode(1), shorter(path));
}

TEST(ReadFaultsDeathTest, ControlCharactersStayOutOfTheLine) {
  TempFolder temp;
  const std::string path = temp.write("a\nb\x1b", std::string(kBytes, 'x'));
  auto cutOff = [&] {
    exitOnReadFaults();
    Result<MappedFile> file = MappedFile::open(path);
    fs::resize_file(path, 0);
    lastOf(*file);
  };
  EXPECT_EXIT(cutOff(), testing::ExitedWithCode(1), shorter(temp.path("a.b.")));
}

/// The file has its length again when the line is written: what failed is not
/// known.
TEST(ReadFaultsDeathTest, OtherFailuresOfAFile) {
  TempFolder temp;
  const std::string path = temp.write("model", std::string(kBytes, 'x'));
  auto replaced = [&] {
    exitOnReadFaults();
    Result<MappedFile> file = MappedFile::open(path);
    fs::resize_file(path, 100);
    fs::remove(path);
    temp.write("model", std::string(kBytes, 'y'));
    lastOf(*file);
  };
  EXPECT_EXIT(replaced(), testing::ExitedWithCode(1),
              "^error: cannot read '" + path +
                  "': its disk or file system failed while it was in use\n$");
}

/// All threads fault at once, the pool's own among them: one line.
TEST(ReadFaultsDeathTest, OnTheThreadsOfAPool) {
  TempFolder temp;
  const std::string path = temp.write("model", std::string(kBytes, 'x'));
  auto onThreads = [&] {
    exitOnReadFaults();
    Result<MappedFile> file = MappedFile::open(path);
    fs::resize_file(path, 100);
    const std::thread::id caller = std::this_thread::get_id();
    auto pool = ThreadPool::create(4).take();
    (void)pool->parallelFor(4, [&](int64_t) {
      while (std::this_thread::get_id() == caller)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      lastOf(*file);
      return Status();
    });
  };
  EXPECT_EXIT(onThreads(), testing::ExitedWithCode(1), shorter(path));
}

/// A fault elsewhere, and a signal that someone sent, are nobody's file.
TEST(ReadFaultsDeathTest, LeavesOtherBusErrorsAlone) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer reports bus errors in its own way";
#endif
#endif
  TempFolder temp;
  const std::string path = temp.write("model", std::string(kBytes, 'x'));
  const std::string other = temp.write("other", std::string(kBytes, 'x'));
  auto elsewhere = [&] {
    exitOnReadFaults();
    Result<MappedFile> file = MappedFile::open(path);
    std::FILE *stream = std::fopen(other.c_str(), "r");
    const void *unknown =
        ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, ::fileno(stream), 0);
    fs::resize_file(other, 100);
    *(static_cast<const volatile char *>(unknown) + kBytes - 1);
  };
  EXPECT_EXIT(elsewhere(), testing::KilledBySignal(SIGBUS), "^$");
  auto ended = [&] {
    exitOnReadFaults();
    Result<MappedFile> file = MappedFile::open(path);
    {
      MappedFile closed = file.take();
    }
    ::raise(SIGBUS);
  };
  EXPECT_EXIT(ended(), testing::KilledBySignal(SIGBUS), "^$");
}

TEST(ReadFaultsDeathTest, LeavesNoTemporaryFile) {
  TempFolder temp;
  const std::string path = temp.write("model", std::string(kBytes, 'x'));
  auto writing = [&](bool finished) {
    exitOnReadFaults();
    Result<MappedFile> file = MappedFile::open(path);
    const GgufTensorInfo info{"t", {4}, DataType::F32};
    auto writer = GgufWriter::create(temp.path("out.gguf"), GgufMetadata(),
                                     {&info, 1}, /*replace=*/true)
                      .take();
    const std::string bytes(16, '\0');
    if (!writer->append(std::as_bytes(std::span(bytes))).ok())
      ::_exit(2);
    if (finished && !writer->finish().ok())
      ::_exit(3);
    fs::resize_file(path, 100);
    lastOf(*file);
  };
  auto files = [&] {
    std::set<std::string> names;
    for (const auto &entry : fs::directory_iterator(temp.path()))
      names.insert(entry.path().filename());
    return names;
  };
  EXPECT_EXIT(writing(false), testing::ExitedWithCode(1), shorter(path));
  EXPECT_EQ(files(), std::set<std::string>{"model"});
  // What has its name is no temporary file any more.
  temp.write("model", std::string(kBytes, 'x'));
  EXPECT_EXIT(writing(true), testing::ExitedWithCode(1), shorter(path));
  EXPECT_EQ(files(), (std::set<std::string>{"model", "out.gguf"}));
}

} // namespace
