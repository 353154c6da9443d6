//===- ExecutableCacheTest.cpp - The cache of compiled programs -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/ExecutableCache.h"

#include "test/runtime/TempFile.h"
#include "test/runtime/TestExecutable.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kf;
namespace fs = std::filesystem;

namespace {

class ExecutableCacheTest : public testing::Test {
protected:
  ExecutableCache cache(const std::string &folder = "a/b",
                        uint64_t limit = ExecutableCache::kDefaultLimit) {
    return ExecutableCache(
        root + "/" + folder,
        [this](const std::string &l) { warnings.push_back(l); }, limit);
  }

  /// The only warning so far, once.
  std::string warned() {
    EXPECT_EQ(warnings.size(), 1u);
    std::string last = warnings.empty() ? "" : warnings.back();
    warnings.clear();
    return last;
  }

  std::set<std::string> keysOf(const ExecutableCache &kept) {
    std::set<std::string> keys;
    Result<std::vector<ExecutableCache::Entry>> entries = kept.list();
    EXPECT_TRUE(entries.ok()) << entries.message();
    for (const ExecutableCache::Entry &entry : *entries)
      keys.insert(entry.key);
    return keys;
  }

  /// Makes the entry of `key` look as if it was used that long ago.
  static void age(const ExecutableCache &kept, const std::string &key,
                  std::chrono::seconds age) {
    fs::last_write_time(kept.folder() + "/" + key + ".kfexec",
                        fs::file_time_type::clock::now() - age);
  }

  const test::TempFolder temporary;
  const std::string root = temporary.path();
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
  EXPECT_EQ(entries->front().bytes,
            fs::file_size(kept.folder() + "/ab12.kfexec"));
  EXPECT_GT(entries->front().bytes, executable.serialize().size());
  EXPECT_GT(entries->front().used, 1600000000);

  // What a driver compiled is no entry, but goes with them.
  const std::string driver = kept.folder() + "/ab.kfpipelines";
  std::ofstream(driver) << "pipelines";
  EXPECT_EQ(kept.list()->size(), 2u);
  EXPECT_EQ(*kept.clear(), 2);
  EXPECT_FALSE(fs::exists(driver));
  EXPECT_TRUE(kept.list()->empty());
  EXPECT_TRUE(warnings.empty());
}

TEST_F(ExecutableCacheTest, EntriesMayHaveANote) {
  ExecutableCache kept = cache();
  const Executable executable = sampleExecutable();
  ASSERT_TRUE(kept.store("ab", executable, "seven words").ok());
  ASSERT_TRUE(kept.store("cd", executable).ok());
  std::string note = "before";
  auto found = kept.lookup("ab", &note);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->serialize(), executable.serialize());
  EXPECT_EQ(note, "seven words");
  found = kept.lookup("cd", &note);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ(note, "");
  EXPECT_EQ(kept.list()->front().program, executable.programName);
  EXPECT_FALSE(kept.store("ef", executable, "two\nlines").ok());
  // A note without an end is no program.
  std::ofstream(kept.folder() + "/ab.kfexec", std::ios::trunc)
      << "KernelForge program ab\nnote seven";
  EXPECT_FALSE(kept.lookup("ab", &note)->has_value());
  EXPECT_EQ(warnings.size(), 1u);
}

TEST_F(ExecutableCacheTest, CountsLookups) {
  ExecutableCache kept = cache();
  ASSERT_TRUE(kept.lookup("ab").ok());
  EXPECT_EQ(kept.counts(), CacheCounts()) << "there is no folder yet";
  ASSERT_TRUE(kept.prepare().ok());
  ASSERT_TRUE(kept.lookup("ab").ok());
  ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
  ASSERT_TRUE(kept.store("cd", sampleExecutable()).ok());
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(cache().lookup("ab").ok());
  ASSERT_TRUE(kept.lookup("ef").ok());
  EXPECT_EQ(kept.counts(), (CacheCounts{3, 2}));
  Result<std::vector<ExecutableCache::Entry>> entries = kept.list();
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].counts, (CacheCounts{3, 1}));
  EXPECT_EQ((*entries)[1].counts, CacheCounts());
  // Who asks for the note counts.
  std::string note;
  ASSERT_TRUE(kept.lookup("ab", &note).ok());
  EXPECT_EQ(kept.counts(), (CacheCounts{3, 2}));
  kept.count("cd", true);
  EXPECT_EQ(kept.counts(), (CacheCounts{4, 2}));
  // Of a cache that keeps nothing, nothing is looked up.
  ASSERT_TRUE(cache("a/b", 0).lookup("ab").ok());
  EXPECT_EQ(kept.counts(), (CacheCounts{4, 2}));
  EXPECT_EQ(*kept.clear(), 2);
  EXPECT_EQ(kept.counts(), CacheCounts());
  EXPECT_TRUE(fs::is_empty(kept.folder()));
}

TEST_F(ExecutableCacheTest, ManyCountAtOnce) {
  constexpr int processes = 4, lookups = 100;
  ASSERT_TRUE(cache().prepare().ok());
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(::fork());
    ASSERT_GE(children.back(), 0);
    if (children.back() == 0) {
      for (int j = 0; j < lookups; ++j)
        (void)cache().lookup(j % 2 ? "ab" : "cd");
      ::_exit(0);
    }
  }
  for (pid_t child : children)
    ::waitpid(child, nullptr, 0);
  EXPECT_EQ(cache().counts(), (CacheCounts{0, processes * lookups}));
}

TEST_F(ExecutableCacheTest, DamagedCountsAreLost) {
  ExecutableCache kept = cache();
  ASSERT_TRUE(kept.prepare().ok());
  const std::string path = kept.folder() + "/counts";
  std::ofstream(path) << "ab 3 4\n\nab\ncd 1\nef -1 2\n x\ngh 1 2 3\n"
                      << std::string(70, 'a') << " 1 1\n- 5 6\nij 1 99999999999"
                      << "999999999999\nkl 1 1";
  EXPECT_EQ(kept.counts(), (CacheCounts{9, 11}));
  ASSERT_TRUE(kept.lookup("ab").ok());
  EXPECT_EQ(kept.counts(), (CacheCounts{9, 12}));
  // What is no file is left alone.
  fs::remove(path);
  fs::create_symlink("elsewhere", path);
  ASSERT_TRUE(kept.lookup("ab").ok());
  EXPECT_EQ(kept.counts(), CacheCounts());
  EXPECT_FALSE(fs::exists(kept.folder() + "/elsewhere"));
}

TEST_F(ExecutableCacheTest, CountsOfManyKeysStaySmall) {
  ExecutableCache kept = cache();
  ASSERT_TRUE(kept.prepare().ok());
  std::string text;
  for (int i = 0; i < 1100; ++i)
    text += std::to_string(i) + " 1 0\n";
  std::ofstream(kept.folder() + "/counts") << text;
  ASSERT_TRUE(kept.lookup("ab").ok());
  EXPECT_EQ(kept.counts(), (CacheCounts{1100, 1}));
  const CacheCountsByKey counts = readCacheCounts(kept.folder());
  EXPECT_EQ(counts.keys.size(), 1023u);
  EXPECT_EQ(counts.keys.count("0"), 0u);
  EXPECT_EQ(counts.keys.at("ab"), (CacheCounts{0, 1}));
}

TEST_F(ExecutableCacheTest, DamagedEntryIsRemovedWithAWarning) {
  ExecutableCache kept = cache();
  ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
  std::string file = kept.folder() + "/ab.kfexec";
  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_EQ(kept.list()->front().program, "(the file is truncated)");

  Result<std::optional<Executable>> found = kept.lookup("ab");
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());
  EXPECT_EQ(warned(), "removed the unusable cache entry " + file +
                          ": the file is truncated");
  EXPECT_FALSE(fs::exists(file));
  ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
  EXPECT_TRUE(kept.lookup("ab")->has_value());

  std::ofstream(file) << "something else";
  EXPECT_FALSE(kept.lookup("ab")->has_value());
  EXPECT_EQ(warned(), "removed the unusable cache entry " + file +
                          ": it is no cache entry");
}

/// A sound program, but not the one that the key stands for.
TEST_F(ExecutableCacheTest, CopyUnderAnotherKeyIsNotUsed) {
  ExecutableCache kept = cache();
  ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
  const std::string copy = kept.folder() + "/cd.kfexec";
  fs::copy_file(kept.folder() + "/ab.kfexec", copy);
  EXPECT_EQ(kept.list()->back().program, "(it holds another program)");
  EXPECT_FALSE(kept.lookup("cd")->has_value());
  EXPECT_EQ(warned(), "removed the unusable cache entry " + copy +
                          ": it holds another program");
  EXPECT_FALSE(fs::exists(copy));
  EXPECT_TRUE(kept.lookup("ab")->has_value());
}

TEST_F(ExecutableCacheTest, WhatCannotBeRemovedIsNotSaidToBe) {
  ExecutableCache kept = cache();
  ASSERT_TRUE(kept.prepare().ok());
  const std::string file = kept.folder() + "/ab.kfexec";
  fs::create_directory(file);
  EXPECT_FALSE(kept.lookup("ab")->has_value());
  EXPECT_EQ(warned(), "the cache entry " + file +
                          " is unusable (it is not a regular file) and cannot "
                          "be removed: Is a directory");
}

TEST_F(ExecutableCacheTest, PipeInPlaceOfAnEntryDoesNotHang) {
  ExecutableCache kept = cache();
  ASSERT_TRUE(kept.prepare().ok());
  ASSERT_EQ(::mkfifo((kept.folder() + "/ab.kfexec").c_str(), 0600), 0);
  EXPECT_FALSE(kept.lookup("ab")->has_value());
  EXPECT_EQ(warned(), "removed the unusable cache entry " + kept.folder() +
                          "/ab.kfexec: it is not a regular file");
}

/// No descriptor is left for the folder, then none for the file in it: neither
/// is damaged.
TEST_F(ExecutableCacheTest, EntryThatCannotBeReadStays) {
  ExecutableCache kept = cache();
  ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::open("/dev/null", O_RDONLY);
  ASSERT_GE(next, 0);
  ::close(next);
  for (rlim_t left : {0, 1}) {
    rlimit limit = {static_cast<rlim_t>(next) + left, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    const bool found = kept.lookup("ab")->has_value();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_FALSE(found);
    EXPECT_EQ(
        warned(),
        (left ? "cannot read the cache entry " + kept.folder() + "/ab.kfexec"
              : "cannot open the folder '" + kept.folder() + "'") +
            ": Too many open files");
  }
  EXPECT_TRUE(kept.lookup("ab")->has_value());
}

/// Where the system keeps this user from reading an entry.
TEST_F(ExecutableCacheTest, EntryWithoutPermissionStays) {
  ExecutableCache kept = cache();
  ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
  const std::string file = kept.folder() + "/ab.kfexec";
  auto asAnyone = [&] {
    // The administrator may read everything.
    if (::geteuid() == 0) {
      constexpr uid_t nobody = 65534;
      for (const std::string &path : {root, root + "/a", kept.folder(), file})
        if (::chown(path.c_str(), nobody, nobody) != 0)
          ::_exit(2);
      if (::setuid(nobody) != 0)
        ::_exit(3);
    }
    ::chmod(file.c_str(), 0);
    const bool found = kept.lookup("ab")->has_value();
    const std::string said = kept.list()->front().program;
    ::chmod(file.c_str(), 0600);
    const bool sound = kept.lookup("ab")->has_value();
    ::_exit(!found && sound && said == "(Permission denied)" &&
                    warned() == "cannot read the cache entry " + file +
                                    ": Permission denied"
                ? 0
                : 1);
  };
  EXPECT_EXIT(asAnyone(), testing::ExitedWithCode(0), "");
}

/// What others may have written is not run: it is removed from a folder that
/// is private, and nothing is taken from one that is not.
TEST_F(ExecutableCacheTest, EntryThatOthersCanWriteIsNotUsed) {
  ExecutableCache kept = cache();
  const std::string file = kept.folder() + "/ab.kfexec";
  for (mode_t mode : {0620, 0602}) {
    ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    EXPECT_FALSE(kept.lookup("ab")->has_value());
    EXPECT_EQ(warned(), "removed the unusable cache entry " + file +
                            ": it can be written by others (mode 0" +
                            (mode == 0620 ? "620" : "602") + ")");
    EXPECT_FALSE(fs::exists(file));
  }
  // What replaces such a file does not take over its mode.
  ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
  EXPECT_TRUE(kept.lookup("ab")->has_value());
  // A link leads out of the folder, whoever owns what it leads to.
  fs::rename(file, root + "/elsewhere");
  fs::create_symlink(root + "/elsewhere", file);
  EXPECT_FALSE(kept.lookup("ab")->has_value());
  EXPECT_EQ(warned(), "removed the unusable cache entry " + file +
                          ": it is not a regular file");
  EXPECT_TRUE(fs::exists(root + "/elsewhere"));
}

TEST_F(ExecutableCacheTest, FolderThatOthersCanWriteIsNotUsed) {
  const mode_t before = ::umask(0);
  ExecutableCache kept = cache();
  ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
  ::umask(before);
  for (const char *folder : {"/a", "/a/b"}) {
    struct stat info;
    ASSERT_EQ(::stat((root + folder).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u) << folder;
  }
  ASSERT_EQ(::chmod(kept.folder().c_str(), 0770), 0);
  const std::string why = "the folder '" + kept.folder() +
                          "' can be written by others (mode 0770), so that "
                          "nothing in it is safe to run; empty it and make it "
                          "mode 0700";
  EXPECT_EQ(kept.prepare().message(), why);
  EXPECT_FALSE(kept.lookup("ab")->has_value());
  EXPECT_EQ(warned(), why);
  ASSERT_TRUE(kept.store("cd", sampleExecutable()).ok());
  EXPECT_EQ(warned(), "could not keep the compiled program: " + why);
  EXPECT_EQ(keysOf(kept), std::set<std::string>{"ab"});
  EXPECT_EQ(warned(), why);
  EXPECT_EQ(*kept.clear(), 1);
}

TEST_F(ExecutableCacheTest, WhatBelongsToOthersIsNotUsed) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only the administrator can give files away";
  ExecutableCache kept = cache();
  ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
  const std::string file = kept.folder() + "/ab.kfexec";
  ASSERT_EQ(::chown(file.c_str(), 12345, 12345), 0);
  EXPECT_FALSE(kept.lookup("ab")->has_value());
  EXPECT_EQ(warned(), "removed the unusable cache entry " + file +
                          ": it belongs to another user (uid 12345)");
  ASSERT_TRUE(kept.store("ab", sampleExecutable()).ok());
  ASSERT_EQ(::chown(kept.folder().c_str(), 12345, 12345), 0);
  EXPECT_FALSE(kept.lookup("ab")->has_value());
  EXPECT_EQ(warned(), "the folder '" + kept.folder() +
                          "' belongs to another user (uid 12345), so that "
                          "nothing in it is safe to run; use a folder of your "
                          "own");
}

TEST_F(ExecutableCacheTest, UnusableFolderIsAWarning) {
  std::ofstream(root + "/file") << "in the way";
  ExecutableCache kept = cache("file/sub");
  EXPECT_EQ(kept.prepare().message(),
            "cannot make the folder '" + kept.folder() + "': Not a directory");
  EXPECT_FALSE(kept.lookup("ab")->has_value());
  EXPECT_EQ(warned(),
            "cannot open the folder '" + kept.folder() + "': Not a directory");
  EXPECT_TRUE(kept.store("ab", sampleExecutable()).ok());
  EXPECT_EQ(warned().find("could not keep the compiled program: "), 0u);
}

//===----------------------------------------------------------------------===//
// The limit
//===----------------------------------------------------------------------===//

TEST_F(ExecutableCacheTest, RemovesWhatWasNotUsedForTheLongestTime) {
  using namespace std::chrono_literals;
  ExecutableCache before = cache();
  for (const char *key : {"a1", "b2", "c3", "d4"})
    ASSERT_TRUE(before.store(key, sampleExecutable()).ok());
  std::ofstream(before.folder() + "/notes.txt") << "mine";
  const std::string left = before.folder() + "/ee.kfexec.0123.tmp";
  std::ofstream(left) << "half";
  fs::last_write_time(left, fs::file_time_type::clock::now() - 2h);
  age(before, "a1", 4h);
  age(before, "b2", 3h);
  age(before, "c3", 2h);
  age(before, "d4", 1h);
  const uint64_t size = fs::file_size(before.folder() + "/a1.kfexec");

  // Looking one up uses it.
  ExecutableCache kept = cache("a/b", 3 * size);
  EXPECT_TRUE(kept.lookup("a1")->has_value());
  ASSERT_TRUE(kept.store("e5", sampleExecutable()).ok());
  EXPECT_EQ(keysOf(kept), (std::set<std::string>{"a1", "d4", "e5"}));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(kept.folder() + "/notes.txt"));
  // With room, nothing goes.
  ASSERT_TRUE(cache().store("f6", sampleExecutable()).ok());
  EXPECT_EQ(keysOf(kept), (std::set<std::string>{"a1", "d4", "e5", "f6"}));
  EXPECT_TRUE(warnings.empty());
}

/// A process that needs more than the limit has what it uses, and no more.
TEST_F(ExecutableCacheTest, KeepsWhatIsInUse) {
  using namespace std::chrono_literals;
  ExecutableCache before = cache();
  for (const char *key : {"a1", "b2"})
    ASSERT_TRUE(before.store(key, sampleExecutable()).ok());
  age(before, "a1", 1h);
  age(before, "b2", 2h);
  ExecutableCache kept = cache("a/b", 1);
  EXPECT_TRUE(kept.lookup("b2")->has_value());
  ASSERT_TRUE(kept.store("c3", sampleExecutable()).ok());
  ASSERT_TRUE(kept.store("d4", sampleExecutable()).ok());
  EXPECT_EQ(keysOf(kept), (std::set<std::string>{"b2", "c3", "d4"}));

  ExecutableCache none = cache("a/none", 0);
  ASSERT_TRUE(none.store("ab", sampleExecutable()).ok());
  EXPECT_FALSE(fs::exists(none.folder()));
  EXPECT_TRUE(warnings.empty());
}

/// Whatever an earlier process kept is not used, and goes.
TEST_F(ExecutableCacheTest, KeepsNothingWithLimitZero) {
  using namespace std::chrono_literals;
  ExecutableCache before = cache();
  for (const char *key : {"a1", "b2"}) {
    ASSERT_TRUE(before.store(key, sampleExecutable()).ok());
    age(before, key, 1h);
  }
  ExecutableCache none = cache("a/b", 0);
  EXPECT_FALSE(none.lookup("a1")->has_value());
  ASSERT_TRUE(none.store("a1", sampleExecutable()).ok());
  EXPECT_TRUE(keysOf(none).empty());
  EXPECT_TRUE(warnings.empty());
}

TEST_F(ExecutableCacheTest, LimitFollowsTheEnvironment) {
  auto with = [](const char *size) {
    ::setenv("KF_CACHE_SIZE", size, 1);
    Result<uint64_t> limit = ExecutableCache::defaultLimit();
    ::unsetenv("KF_CACHE_SIZE");
    return limit;
  };
  ::unsetenv("KF_CACHE_SIZE");
  EXPECT_EQ(*ExecutableCache::defaultLimit(), uint64_t(1) << 30);
  EXPECT_EQ(*with(""), uint64_t(1) << 30);
  EXPECT_EQ(*with("0"), 0u);
  EXPECT_EQ(*with("12345"), 12345u);
  EXPECT_EQ(*with("3K"), 3072u);
  EXPECT_EQ(*with("500M"), uint64_t(500) << 20);
  EXPECT_EQ(*with("17179869183G"), uint64_t(17179869183) << 30);
  for (const char *bad : {"x", "-1", "1.5G", "1T", "1MB", "M", " 1", "1 ",
                          "17179869184G", "18446744073709551616"})
    EXPECT_EQ(with(bad).message(),
              "KF_CACHE_SIZE is '" + std::string(bad) +
                  "', but a number of bytes, with K, M or G behind it for KiB, "
                  "MiB or GiB is expected");
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
  EXPECT_EQ(files, 2u); // and counts; nothing half written is left
  EXPECT_EQ(kept.counts().misses, 0u);
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
