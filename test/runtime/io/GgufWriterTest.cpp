//===- GgufWriterTest.cpp - Writing GGUF files ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/GgufWriter.h"

#include "test/runtime/GgufBuilder.h"
#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <sys/resource.h>

using namespace kf;
using kf::test::TempFolder;

namespace {

std::vector<std::byte> someBytes(size_t count, int start = 1) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(start + int(i) * 7);
  return bytes;
}

std::string contentOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t filesIn(const TempFolder &folder) {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator(folder.path()),
                    std::filesystem::directory_iterator()));
}

TEST(GgufWriter, IsReadBack) {
  TempFolder folder;
  GgufMetadata metadata;
  metadata.addText("general.architecture", "llama");
  metadata.addU32("a.u32", 0xfedcba98);
  metadata.addI32("a.i32", -7);
  metadata.addF32("a.f32", -0.1f);
  metadata.addBool("a.bool", true);
  metadata.addTexts("a.texts", std::vector<std::string>{"", "x y", "\xff"});
  metadata.addI32s("a.i32s", std::vector<int32_t>{-1, 2});
  metadata.addBools("a.bools", {true, false, true});
  metadata.addF32s("a.f32s", std::vector<float>{});
  metadata.addU32("a.u32", 5); // there already
  EXPECT_EQ(metadata.size(), 9u);
  EXPECT_TRUE(metadata.contains("a.f32s"));

  const std::vector<GgufTensorInfo> tensors = {
      {"odd", {3, 5}, DataType::F16},
      {"empty", {0}, DataType::F32},
      {"blocks", {2, 64}, DataType::Q8_0},
      {"cube", {2, 3, 4}, DataType::F32}};
  const std::string path = folder.path("x.gguf");
  {
    auto writer = GgufWriter::create(path, metadata, tensors, false);
    ASSERT_TRUE(writer.ok()) << writer.message();
    EXPECT_EQ(filesIn(folder), 1u); // not under its name
    EXPECT_FALSE(std::filesystem::exists(path));
    ASSERT_TRUE((*writer)->append(someBytes(30)).ok());
    ASSERT_TRUE((*writer)->append(someBytes(100, 2)).ok());
    ASSERT_TRUE((*writer)->append(someBytes(36, 3)).ok());
    ASSERT_TRUE((*writer)->append(someBytes(96, 4)).ok());
    Status done = (*writer)->finish();
    ASSERT_TRUE(done.ok()) << done.message();
    EXPECT_EQ((*writer)->fileBytes(), std::filesystem::file_size(path));
  }
  EXPECT_EQ(filesIn(folder), 1u);

  auto file = Gguf::open(path);
  ASSERT_TRUE(file.ok()) << file.message();
  const Gguf &gguf = **file;
  EXPECT_EQ(gguf.version(), 3u);
  EXPECT_EQ(*gguf.getString("general.architecture"), "llama");
  EXPECT_EQ(*gguf.getUnsigned("a.u32"), 0xfedcba98u);
  EXPECT_EQ(gguf.lookUp("a.i32")->toSigned(), -7);
  EXPECT_EQ(float(*gguf.getFloat("a.f32")), -0.1f);
  EXPECT_TRUE(*gguf.getBool("a.bool"));
  EXPECT_EQ(*gguf.getStrings("a.texts"),
            (std::vector<std::string_view>{"", "x y", "\xff"}));
  EXPECT_EQ(*gguf.getIntegers("a.i32s"), (std::vector<int64_t>{-1, 2}));
  const GgufValue &flags = *gguf.lookUp("a.bools");
  EXPECT_EQ(flags.elementType(), GgufValueType::Bool);
  EXPECT_EQ(flags.bytes(), std::string_view("\1\0\1", 3));
  EXPECT_TRUE(gguf.getFloats("a.f32s")->empty());
  ASSERT_EQ(gguf.tensors().size(), 4u);
  EXPECT_EQ(gguf.find("cube")->shape, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(gguf.find("blocks")->type, DataType::Q8_0);
  auto equals = [&](const char *name, const std::vector<std::byte> &bytes) {
    TensorView view = *gguf.find(name);
    return view.bytes == bytes.size() &&
           std::memcmp(view.data, bytes.data(), bytes.size()) == 0;
  };
  EXPECT_TRUE(equals("odd", someBytes(30)));
  std::vector<std::byte> joined = someBytes(100, 2);
  for (std::byte byte : someBytes(36, 3))
    joined.push_back(byte);
  EXPECT_TRUE(equals("blocks", joined));
  EXPECT_TRUE(equals("cube", someBytes(96, 4)));

  // A copy of all entries is the same bytes.
  GgufMetadata copy;
  for (const GgufEntry &entry : gguf.metadata())
    copy.addCopy(entry);
  EXPECT_EQ(copy.bytes(), metadata.bytes());
}

TEST(GgufWriter, CopiesEveryTypeOfValue) {
  using kf::test::ggufArray;
  using kf::test::ggufString;
  using kf::test::raw;
  kf::test::GgufBuilder builder;
  builder.entry("u8", GgufValueType::U8, raw<uint8_t>(200))
      .entry("i16", GgufValueType::I16, raw<int16_t>(-3))
      .entry("i64", GgufValueType::I64, raw<int64_t>(-1))
      .entry("f64", GgufValueType::F64, raw(0.1))
      .strings("texts", {"a", "", "bc"})
      .entry("nested", GgufValueType::Array,
             ggufArray(uint32_t(GgufValueType::Array), 1,
                       ggufArray(uint32_t(GgufValueType::String), 1,
                                 ggufString("deep"))));
  const std::string bytes = builder.bytes();
  auto gguf = Gguf::parse(std::as_bytes(std::span(bytes)), "x");
  ASSERT_TRUE(gguf.ok()) << gguf.message();
  GgufMetadata copy;
  for (const GgufEntry &entry : (*gguf)->metadata())
    copy.addCopy(entry);
  EXPECT_EQ(copy.size(), 6u);
  EXPECT_NE(bytes.find(copy.bytes()), std::string::npos);
}

TEST(GgufWriter, LeavesNothingWhenItIsAbandoned) {
  TempFolder folder;
  const std::string path = folder.write("x.gguf", "old");
  const std::vector<GgufTensorInfo> tensors = {{"a", {8}, DataType::F32}};
  {
    auto writer = GgufWriter::create(path, {}, tensors, true);
    ASSERT_TRUE(writer.ok()) << writer.message();
    EXPECT_FALSE((*writer)->append(someBytes(33)).ok());
    ASSERT_TRUE((*writer)->append(someBytes(31)).ok());
    EXPECT_FALSE((*writer)->append(someBytes(2)).ok());
    const Status incomplete = (*writer)->finish();
    EXPECT_EQ(incomplete.message(),
              "cannot write '" + path + "': tensors lack some of their bytes");
  }
  EXPECT_EQ(contentOf(path), "old");
  EXPECT_EQ(filesIn(folder), 1u);
}

TEST(GgufWriter, ReplacesOnlyWhenItIsTold) {
  TempFolder folder;
  const std::string path = folder.write("x.gguf", "old");
  auto refused = GgufWriter::create(path, {}, {}, false);
  EXPECT_EQ(refused.message(), "'" + path + "' exists already");
  // One that appears meanwhile is not lost either.
  const std::string other = folder.path("y.gguf");
  auto late = GgufWriter::create(other, {}, {}, false);
  ASSERT_TRUE(late.ok()) << late.message();
  folder.write("y.gguf", "mine");
  EXPECT_FALSE((*late)->finish().ok());
  late->reset();
  EXPECT_EQ(contentOf(other), "mine");
  // Through a link, which stays.
  const std::string link = folder.path("link.gguf");
  std::filesystem::create_symlink("x.gguf", link);
  auto writer = GgufWriter::create(link, {}, {}, true);
  ASSERT_TRUE(writer.ok()) << writer.message();
  ASSERT_TRUE((*writer)->finish().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(Gguf::open(path).ok());
  EXPECT_EQ(filesIn(folder), 3u);
}

TEST(GgufWriter, NamesWhatCannotBeWritten) {
  TempFolder folder;
  auto messageOf = [](const std::string &path,
                      const std::vector<GgufTensorInfo> &tensors = {}) {
    return GgufWriter::create(path, {}, tensors, true).message();
  };
  EXPECT_EQ(messageOf(folder.path()),
            "cannot write '" + folder.path() + "': Is a directory");
  EXPECT_EQ(messageOf("/dev/full"),
            "cannot write '/dev/full': it is not a regular file");
  const std::string missing = folder.path("no/x.gguf");
  EXPECT_EQ(messageOf(missing),
            "cannot write '" + missing + "': No such file or directory");
  const std::string path = folder.path("x.gguf");
  EXPECT_NE(messageOf(path, {{"a", {2, 33}, DataType::Q4_0}}).find("'a'"),
            std::string::npos);
  EXPECT_EQ(messageOf(path, {{"a", {1, 1, 1, 1, 1}, DataType::F32}}),
            "tensor 'a' has a type or rank that GGUF lacks");
  EXPECT_EQ(messageOf(path, {{"a", {1}, DataType::F8E4M3}}),
            "tensor 'a' has a type or rank that GGUF lacks");
  EXPECT_EQ(messageOf(path, {{"a", {1}}, {"a", {1}}}),
            "tensor 'a' is there twice");
  const int64_t large = int64_t(1) << 60;
  EXPECT_EQ(messageOf(path, {{"a", {large}}, {"b", {large}}}),
            "the tensors have more bytes than a file can");
  EXPECT_EQ(filesIn(folder), 0u);
}

TEST(GgufWriter, NamesAFullDisk) {
  TempFolder folder;
  const std::string path = folder.path("x.gguf");
  // A limit on the size of files stands for the disk.
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto *handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = before;
  limit.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string message =
      GgufWriter::create(path, {}, std::vector<GgufTensorInfo>{{"a", {4096}}},
                         false)
          .message();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, "cannot write '" + path + "': File too large");
  EXPECT_EQ(filesIn(folder), 0u);
}

} // namespace
