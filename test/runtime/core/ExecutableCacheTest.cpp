//===- ExecutableCacheTest.cpp - The cache of compiled programs -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/ExecutableCache.h"

#include "TestExecutable.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

using namespace kf;
namespace fs = std::filesystem;

namespace {

class ExecutableCacheTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/kf-cache-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root = pattern;
  }
  void TearDown() override { fs::remove_all(root); }

  ExecutableCache cache(const std::string &folder = "a/b") {
    return ExecutableCache(root + "/" + folder, [this](const std::string &l) {
      warnings.push_back(l);
    });
  }

  std::string root;
  std::vector<std::string> warnings;
};

TEST_F(ExecutableCacheTest, KeepsWhatWasStored) {
  ExecutableCache kept = cache();
  Result<std::optional<Executable>> nothing = kept.lookup("ab12");
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->has_value());
  EXPECT_TRUE(kept.list()->empty());
  EXPECT_EQ(*kept.clear(), 0);

  EXPECT_TRUE(kept.prepare().ok());
  Executable executable = sampleExecutable();
  ASSERT_TRUE(kept.store("ab12", executable).ok());
  ASSERT_TRUE(kept.store("ff", executable).ok());
  Result<std::optional<Executable>> found = cache().lookup("ab12");
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->serialize(), executable.serialize());

  Result<std::vector<ExecutableCache::Entry>> entries = kept.list();
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ(entries->front().key, "ab12");
  EXPECT_EQ(entries->front().program, executable.programName);
  EXPECT_EQ(entries->front().target, "cpu");
  EXPECT_EQ(entries->front().bytes, executable.serialize().size());
  EXPECT_GT(entries->front().modified, 1600000000);

  EXPECT_EQ(*kept.clear(), 2);
  EXPECT_TRUE(kept.list()->empty());
  EXPECT_TRUE(warnings.empty());
}

TEST_F(ExecutableCacheTest, DamagedEntryIsRemovedWithAWarning) {
  ExecutableCache kept = cache();
  ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
  std::string file = kept.folder() + "/ab.kfexec";
  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_EQ(kept.list()->front().program, "(damaged)");

  Result<std::optional<Executable>> found = kept.lookup("ab");
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0], "removed the unusable cache entry " + file +
                             ": the file is truncated");
  EXPECT_FALSE(fs::exists(file));
  ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
  EXPECT_TRUE(kept.lookup("ab")->has_value());
}

TEST_F(ExecutableCacheTest, PipeInPlaceOfAnEntryDoesNotHang) {
  ExecutableCache kept = cache();
  fs::create_directories(kept.folder());
  ASSERT_EQ(::mkfifo((kept.folder() + "/ab.kfexec").c_str(), 0600), 0);
  EXPECT_FALSE(kept.lookup("ab")->has_value());
  EXPECT_EQ(warnings.size(), 1u);
}

TEST_F(ExecutableCacheTest, UnusableFolderIsAWarning) {
  std::ofstream(root + "/file") << "in the way";
  ExecutableCache kept = cache("file/sub");
  EXPECT_EQ(kept.prepare().message(),
            "cannot write to " + kept.folder() + ": Not a directory");
  EXPECT_FALSE(kept.lookup("ab")->has_value());
  EXPECT_TRUE(warnings.empty());
  EXPECT_TRUE(kept.store("ab", sampleExecutable()).ok());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0], "could not keep the compiled program: cannot write '" +
                             kept.folder() + "/ab.kfexec': Not a directory");
}

TEST_F(ExecutableCacheTest, KeysCannotLeaveTheFolder) {
  ExecutableCache kept = cache();
  for (std::string key : {std::string(), std::string("../ab"),
                          std::string("xyz"), std::string(65, 'a')}) {
    EXPECT_FALSE(kept.lookup(key).ok());
    EXPECT_FALSE(kept.store(key, sampleExecutable()).ok());
  }
}

TEST_F(ExecutableCacheTest, ClearLeavesOtherFilesAlone) {
  ExecutableCache kept = cache();
  ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
  std::ofstream(kept.folder() + "/notes.txt") << "mine";
  // Of writers that are at it, and that ended before they were done.
  const fs::path fresh = kept.folder() + "/ab.kfexec.1.tmp";
  const fs::path stale = kept.folder() + "/ab.kfexec.2.tmp";
  std::ofstream(fresh) << "part";
  std::ofstream(stale) << "part";
  fs::last_write_time(stale,
                      fs::last_write_time(stale) - std::chrono::hours(2));
  EXPECT_EQ(*kept.clear(), 1);
  EXPECT_TRUE(fs::exists(kept.folder() + "/notes.txt"));
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_FALSE(fs::exists(stale));
}

TEST_F(ExecutableCacheTest, ProcessesMayWriteTheSameEntry) {
  ExecutableCache kept = cache();
  constexpr int rounds = 50;
  std::vector<pid_t> children;
  for (int writer = 0; writer < 2; ++writer) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Executable executable = sampleExecutable();
      executable.binary.assign(100000, static_cast<char>('a' + writer));
      bool sound = true;
      for (int i = 0; i < rounds; ++i) {
        sound &= kept.store("ab", executable).ok();
        Result<std::optional<Executable>> found = kept.lookup("ab");
        sound &= found.ok() && found->has_value();
      }
      ::_exit(sound && warnings.empty() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  Result<std::optional<Executable>> found = kept.lookup("ab");
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->binary.size(), 100000u);
  size_t files = 0;
  for ([[maybe_unused]] const auto &file :
       fs::directory_iterator(kept.folder()))
    ++files;
  EXPECT_EQ(files, 1u); // nothing half written is left
}

TEST_F(ExecutableCacheTest, DefaultFolderFollowsTheEnvironment) {
  auto with = [](const char *cache, const char *home) {
    cache ? ::setenv("XDG_CACHE_HOME", cache, 1) : ::unsetenv("XDG_CACHE_HOME");
    home ? ::setenv("HOME", home, 1) : ::unsetenv("HOME");
    return ExecutableCache::defaultFolder();
  };
  EXPECT_EQ(*with("/c", "/h"), "/c/kernelforge");
  EXPECT_EQ(*with("relative", "/h"), "/h/.cache/kernelforge");
  EXPECT_EQ(*with(nullptr, "/h"), "/h/.cache/kernelforge");
  EXPECT_FALSE(with(nullptr, nullptr).ok());
}

TEST(HashKey, IsFnvOfLengthsAndBytes) {
  EXPECT_EQ(hashKey({}), "6c62272e07bb014262b821756295c58d");
  EXPECT_EQ(hashKey({"a"}).size(), 32u);
  EXPECT_NE(hashKey({"ab", "c"}), hashKey({"a", "bc"}));
  EXPECT_NE(hashKey({"ab"}), hashKey({"ab", ""}));
  EXPECT_EQ(hashKey({"ab", "c"}), hashKey({"ab", "c"}));
}

} // namespace
