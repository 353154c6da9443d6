//===- PackedCacheTest.cpp - Packed weights kept on disk ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/PackedCache.h"

#include "runtime/weights/WeightStore.h"
#include "test/runtime/FakeDevice.h"
#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace fs = std::filesystem;
using namespace kf;
using kf::test::FakeDevice;
using kf::test::FakeSource;
using kf::test::TempFolder;

namespace {

constexpr uint64_t kMebibyte = uint64_t(1) << 20;

/// A folder of packed weights, weights for it, and what it warned of.
struct Kept {
  Kept() {
    large.resize(5 * kMebibyte + 3); // more than what has a sum of its own
    for (size_t i = 0; i < large.size(); ++i)
      large[i] = static_cast<std::byte>(i * 2654435761u >> 13);
    small.assign(100, std::byte(7));
    weights = {{"large", large}, {"small", small}};
  }
  PackedCache cache(uint64_t limit = UINT64_MAX) {
    return PackedCache(folder(), limit, [this](const std::string &line) {
      warnings.push_back(line);
    });
  }
  std::string folder() const { return temporary.path("kept"); }
  /// The only file; empty where there is none.
  std::string file() const {
    std::error_code none;
    for (const auto &entry : fs::directory_iterator(folder(), none))
      return entry.path().string();
    return "";
  }
  void store(const std::string &identity = "some",
             uint64_t limit = UINT64_MAX) {
    const Status status = cache(limit).store(identity, "a model", weights, {});
    EXPECT_TRUE(status.ok()) << status.message();
  }
  std::unique_ptr<PackedFile> lookup(const std::string &identity = "some",
                                     const PackOptions &options = {}) {
    auto found = cache().lookup(identity, options);
    EXPECT_TRUE(found.ok()) << found.message();
    return found.take();
  }
  /// Changes the file's byte `at`.
  void damage(uint64_t at) const {
    std::fstream stream(file(),
                        std::ios::binary | std::ios::in | std::ios::out);
    stream.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(byte);
  }

  TempFolder temporary;
  std::vector<std::byte> large, small;
  std::vector<PackedWeight> weights;
  std::vector<std::string> warnings;
};

bool isEqual(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::ranges::equal(a, b);
}

TEST(PackedCache, FindsWhatItStored) {
  for (const int threads : {1, 3}) {
    Kept kept;
    auto pool = ThreadPool::create(threads).take();
    EXPECT_EQ(kept.lookup(), nullptr);
    kept.store();
    EXPECT_EQ(kept.lookup("another"), nullptr);
    const std::unique_ptr<PackedFile> found =
        kept.lookup("some", {.pool = pool.get()});
    ASSERT_NE(found, nullptr);
    EXPECT_TRUE(isEqual(found->find("large"), kept.large));
    EXPECT_TRUE(isEqual(found->find("small"), kept.small));
    EXPECT_TRUE(found->find("none").empty());
    for (const char *key : {"large", "small"})
      EXPECT_EQ(reinterpret_cast<uintptr_t>(found->find(key).data()) %
                    KF_BUFFER_ALIGNMENT,
                0u);
    EXPECT_EQ(kept.warnings, std::vector<std::string>());

    struct stat info;
    ASSERT_EQ(::stat(kept.file().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    ASSERT_EQ(::stat(kept.folder().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    const auto entries = kept.cache().list();
    ASSERT_TRUE(entries.ok());
    ASSERT_EQ(entries->size(), 1u);
    EXPECT_EQ(entries->front().model, "a model");
    EXPECT_EQ(entries->front().bytes, fs::file_size(kept.file()));

    // What is mapped stays, whatever becomes of the file's name.
    EXPECT_EQ(*kept.cache().clear(), 1);
    EXPECT_EQ(kept.file(), "");
    EXPECT_TRUE(isEqual(found->find("large"), kept.large));
  }
}

/// Whatever a file has become, it is one warning, and the file goes.
TEST(PackedCache, RefusesDamage) {
  struct Case {
    const char *why;
    void (*spoil)(const Kept &);
  };
  const Case cases[] = {
      {"it is cut off",
       [](const Kept &kept) { fs::resize_file(kept.file(), 9); }},
      {"it is cut off",
       [](const Kept &kept) { fs::resize_file(kept.file(), 0); }},
      {" bytes, not ",
       [](const Kept &kept) {
         fs::resize_file(kept.file(), fs::file_size(kept.file()) - 1);
       }},
      {" bytes, not ",
       [](const Kept &kept) {
         fs::resize_file(kept.file(), fs::file_size(kept.file()) + 1);
       }},
      {"it holds no packed weights", [](const Kept &kept) { kept.damage(3); }},
      // The size of the head, then what it says.
      {"its head is damaged", [](const Kept &kept) { kept.damage(29); }},
      {"its head is damaged", [](const Kept &kept) { kept.damage(29 + 7); }},
      {"its head is damaged", [](const Kept &kept) { kept.damage(29 + 16); }},
      {"its head is damaged", [](const Kept &kept) { kept.damage(90); }},
      {"it can be written by others (mode 0622)",
       [](const Kept &kept) { ::chmod(kept.file().c_str(), 0622); }},
      {"it is not a regular file",
       [](const Kept &kept) {
         const std::string path = kept.file();
         fs::rename(path, kept.temporary.path("elsewhere"));
         fs::create_symlink(kept.temporary.path("elsewhere"), path);
       }},
  };
  for (const Case &each : cases) {
    Kept kept;
    kept.store();
    each.spoil(kept);
    EXPECT_EQ(kept.lookup(), nullptr) << each.why;
    ASSERT_EQ(kept.warnings.size(), 1u) << each.why;
    EXPECT_NE(kept.warnings[0].find(each.why), std::string::npos)
        << kept.warnings[0];
    EXPECT_EQ(kept.file(), "") << each.why;
    kept.store();
    EXPECT_NE(kept.lookup(), nullptr);
  }
}

/// Every byte of the head is looked at, and no number in it is trusted.
TEST(PackedCache, LooksAtEveryByteOfTheHead) {
  Kept kept;
  kept.weights = {{"k", kept.small}};
  kept.store();
  const std::string path = kept.file();
  std::ifstream stream(path, std::ios::binary);
  const std::string sound((std::istreambuf_iterator<char>(stream)), {});
  const uint8_t head = static_cast<uint8_t>(sound[29]);
  ASSERT_LT(head, 200u);
  for (size_t at = 0; at < head; ++at)
    for (const int mask : {1, 0x80}) {
      std::string bytes = sound;
      bytes[at] = static_cast<char>(bytes[at] ^ mask);
      std::ofstream(path, std::ios::binary) << bytes;
      ::chmod(path.c_str(), 0600);
      EXPECT_EQ(kept.lookup(), nullptr) << at;
    }
}

/// Bytes that are read from the disk are checked; those in memory are not.
TEST(PackedCache, ChecksWhatComesFromTheDisk) {
  Kept kept;
  kept.store();
  kept.damage(2 * kMebibyte + 4 * kMebibyte + 5);
  {
    const Descriptor file(::open(kept.file().c_str(), O_RDWR));
    ASSERT_EQ(::fsync(file.get()), 0);
    ASSERT_EQ(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
    // Another process that has the lock is about to check the same: nothing is
    // taken for checked then, wherever it lies.
    ASSERT_EQ(::flock(file.get(), LOCK_EX), 0);
    EXPECT_EQ(kept.lookup(), nullptr);
  }
  ASSERT_EQ(kept.warnings.size(), 1u);
  EXPECT_NE(kept.warnings[0].find("its bytes are damaged (their sum differs)"),
            std::string::npos)
      << kept.warnings[0];
  EXPECT_EQ(kept.file(), "");
}

TEST(PackedCache, WantsAFolderOfItsOwn) {
  Kept kept;
  kept.store();
  ::chmod(kept.folder().c_str(), 0722);
  EXPECT_EQ(kept.lookup(), nullptr);
  kept.store("more");
  ASSERT_EQ(kept.warnings.size(), 2u);
  for (const std::string &line : kept.warnings)
    EXPECT_NE(line.find("can be written by others"), std::string::npos) << line;
  ::chmod(kept.folder().c_str(), 0700);
  EXPECT_NE(kept.lookup(), nullptr);
  EXPECT_EQ(kept.cache().list()->size(), 1u);
}

/// The limit holds before anything is written, and what was not used for the
/// longest time makes room.
TEST(PackedCache, KeepsWithinItsLimit) {
  Kept kept;
  kept.store("first");
  const uint64_t bytes = fs::file_size(kept.file());
  const std::string first = kept.file();
  kept.store("second");
  using namespace std::chrono_literals;
  for (const auto &entry : fs::directory_iterator(kept.folder()))
    fs::last_write_time(entry.path(), fs::file_time_type::clock::now() -
                                          (entry.path() == first ? 2h : 3h));
  EXPECT_NE(kept.lookup("second"), nullptr); // used now
  kept.store("third", 2 * bytes);
  EXPECT_EQ(kept.lookup("first"), nullptr);
  EXPECT_NE(kept.lookup("second"), nullptr);
  EXPECT_NE(kept.lookup("third"), nullptr);
  EXPECT_EQ(kept.warnings, std::vector<std::string>());

  kept.store("fourth", bytes - 1);
  EXPECT_EQ(kept.lookup("fourth"), nullptr);
  ASSERT_EQ(kept.warnings.size(), 1u);
  EXPECT_NE(kept.warnings[0].find("the packed weights are not kept: they take"),
            std::string::npos)
      << kept.warnings[0];
  EXPECT_EQ(kept.cache().list()->size(), 2u);

  // What one start has stored is not what makes room for the rest of it.
  kept.warnings.clear();
  ::usleep(20'000); // a tick of the file system's clock
  const PackedCache cache = kept.cache(bytes);
  ASSERT_TRUE(cache.store("body", "a model", kept.weights, {}).ok());
  EXPECT_EQ(kept.cache().list()->size(), 1u);
  ASSERT_TRUE(cache.store("head", "a model", kept.weights, {}).ok());
  EXPECT_NE(kept.lookup("body"), nullptr);
  EXPECT_EQ(kept.lookup("head"), nullptr);
  EXPECT_EQ(kept.warnings.size(), 1u);
}

/// A file that cannot be written whole leaves nothing behind.
TEST(PackedCache, LeavesNothingHalf) {
  Kept kept;
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit low = {kMebibyte, before.rlim_max};
  auto *handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  kept.store();
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_EQ(kept.warnings.size(), 1u);
  EXPECT_NE(
      kept.warnings[0].find("the packed weights are not kept: cannot write"),
      std::string::npos)
      << kept.warnings[0];
  EXPECT_EQ(kept.file(), "");

  std::atomic<bool> cancelled{true};
  const PackOptions options = {.cancelled = &cancelled};
  EXPECT_EQ(kept.cache().store("some", "a model", kept.weights, options).code(),
            StatusCode::Cancelled);
  EXPECT_EQ(kept.file(), "");

  // What a killed writer left goes with the next file, when it is old.
  const std::string left = kept.folder() + "/1.kfweights.0123.tmp";
  std::ofstream(left) << "half";
  kept.store();
  EXPECT_TRUE(fs::exists(left));
  fs::last_write_time(left,
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  kept.store();
  EXPECT_FALSE(fs::exists(left));
}

/// A device, a source of one tensor in a file, and its panels.
struct Start {
  explicit Start(const TempFolder &folder) : path(folder.path("model")) {
    if (!fs::exists(path))
      std::ofstream(path) << "weights";
    source.tensors["w"] = {DataType::F32, {3, 2}, values, sizeof(values)};
    spec.names = {"w"};
    spec.shape = {3, 2};
    spec.layout.kind = WeightLayout::Kind::Panels;
    spec.layout.panel = 2;
  }
  FileIdentity identity() const {
    struct stat info;
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return FileIdentity::of(path, info);
  }
  /// The packed weight, with the source's file as `file` says.
  std::vector<float> get(const PackedCache &cache, const FileIdentity &file) {
    WeightStore store(device, &source);
    store.keepIn(cache, {"packing 1\n", "a model", {file}});
    auto made = store.getAll({&spec, 1});
    EXPECT_TRUE(made.ok()) << made.message();
    if (!made.ok())
      return {};
    const auto *at = static_cast<const float *>((*made)[0]->hostPointer());
    return std::vector<float>(at, at + 8);
  }

  std::string path;
  alignas(64) float values[6] = {1, 2, 3, 4, 5, 6};
  FakeDevice device;
  FakeSource source;
  WeightSpec spec;
};

TEST(FileIdentity, SettlesTwoSecondsAfterTheLastChange) {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const int64_t second = 1'000'000'000, time = now.tv_sec * second;
  EXPECT_TRUE(FileIdentity{.touched = time - 3 * second}.isSettled());
  EXPECT_FALSE(FileIdentity{.touched = time + 60 * second}.isSettled());
  // Of bytes that are said to come from the future.
  EXPECT_TRUE(
      (FileIdentity{.changed = time + 60 * second, .touched = time - 3 * second}
           .isSettled()));
}

TEST(PackedCache, IsWhatAWeightStoreTakes) {
  Kept kept;
  const std::vector<float> packed = {1, 3, 2, 4, 5, 0, 6, 0};
  Start start(kept.temporary);
  // What has just been written may be written again within the same tick.
  ::usleep(2'100'000);
  EXPECT_EQ(start.get(kept.cache(), start.identity()), packed);
  EXPECT_NE(kept.file(), "");
  const int reads = start.source.finds["w"];
  EXPECT_EQ(start.get(kept.cache(), start.identity()), packed);
  EXPECT_EQ(start.source.finds["w"],
            reads); // nothing is read, let alone packed

  // A file of the same size in its place is another one, and so is the same
  // one once more.
  const FileIdentity old = start.identity();
  start.values[0] = 9;
  std::ofstream(start.path) << "weightS";
  EXPECT_FALSE(old.isCurrent());
  EXPECT_EQ(start.get(kept.cache(), start.identity())[0], 9);
  // Files that have changed since they were mapped are not what was packed.
  kept.warnings.clear();
  EXPECT_GE(*kept.cache().clear(), 1);
  start.get(kept.cache(), old);
  EXPECT_EQ(kept.file(), "");
  ASSERT_EQ(kept.warnings.size(), 1u);
  EXPECT_NE(kept.warnings[0].find("has changed within two seconds"),
            std::string::npos)
      << kept.warnings[0];

  // Devices with memory of their own pack.
  FakeDevice other(/*shared=*/false);
  WeightStore store(other, &start.source);
  const PackedCache cache = kept.cache();
  store.keepIn(cache, {"packing 1\n", "a model", {}});
  EXPECT_TRUE(store.getAll({&start.spec, 1}).ok());
  EXPECT_EQ(kept.file(), "");
}

} // namespace
