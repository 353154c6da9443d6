//===- SafetensorsTest.cpp - Safetensors, sound and hostile ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Safetensors.h"

#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace kf;
using kf::test::TempFolder;

namespace {

/// A file of `header` and `data`.
std::string fileOf(const std::string &header, const std::string &data) {
  std::string result;
  uint64_t length = header.size();
  for (int i = 0; i < 8; ++i)
    result += static_cast<char>(length >> (8 * i));
  return result + header + data;
}

Result<std::unique_ptr<Safetensors>> parse(const std::string &bytes) {
  return Safetensors::fromMemory(std::as_bytes(std::span(bytes)), "test");
}

std::string errorOf(const std::string &bytes) { return parse(bytes).message(); }

/// The error of a file with this header and eight bytes of data.
std::string headerError(const std::string &header) {
  return errorOf(fileOf(header, std::string(8, '\0')));
}

std::string tensor(const std::string &dtype, const std::string &shape,
                   const std::string &offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape +
         R"(,"data_offsets":)" + offsets + "}";
}

void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "in: " << text;
}

TEST(Safetensors, FindsTensors) {
  float values[2] = {1.5f, -2.0f};
  std::string data(reinterpret_cast<char *>(values), 8);
  data += "\x80\x3f"; // bf16 1.0
  std::string bytes = fileOf(R"({"__metadata__":{"format":"pt"},"b":)" +
                                 tensor("BF16", "[]", "[8,10]") + R"(,"a":)" +
                                 tensor("F32", "[1,2]", "[0,8]") + "}  ",
                             data);
  auto file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.message();
  EXPECT_EQ((*file)->names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ((*file)->metadata().at("format"), "pt");

  auto a = (*file)->find("a");
  ASSERT_TRUE(a.ok()) << a.message();
  EXPECT_EQ(a->type, DataType::F32);
  EXPECT_EQ(a->shape, (std::vector<int64_t>{1, 2}));
  ASSERT_EQ(a->bytes, 8u);
  EXPECT_EQ(std::memcmp(a->data, values, 8), 0);

  auto b = (*file)->find("b");
  ASSERT_TRUE(b.ok()) << b.message();
  EXPECT_EQ(b->type, DataType::BF16);
  EXPECT_TRUE(b->shape.empty());
  EXPECT_EQ(b->bytes, 2u);

  EXPECT_EQ((*file)->find("c").message(), "test: no tensor 'c'");
}

TEST(Safetensors, AcceptsNoTensorsAndEmptyTensors) {
  EXPECT_TRUE(parse(fileOf("{}", "")).ok());
  std::string bytes =
      fileOf(R"({"z":)" + tensor("F32", "[0,4294967296]", "[0,0]") + "}", "");
  auto file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.message();
  EXPECT_EQ((*file)->find("z")->bytes, 0u);
}

TEST(Safetensors, NamesTypesThatItDoesNotRead) {
  for (std::string dtype : {"BOOL", "F8_E5M2", "F8_E8M0"}) {
    std::string bytes = fileOf(R"({"w":)" + tensor(dtype, "[8]", "[0,8]") + "}",
                               std::string(8, '\0'));
    auto file = parse(bytes);
    ASSERT_TRUE(file.ok()) << file.message();
    EXPECT_EQ((*file)->find("w").message(),
              "test: tensor 'w' has type " + dtype +
                  "; supported element types are F32, F16, BF16, F8_E4M3, I8 "
                  "and U8");
  }
  expectContains(headerError(R"({"w":)" + tensor("Q3", "[8]", "[0,8]") + "}"),
                 "unknown element type 'Q3'");
}

TEST(Safetensors, RejectsDamagedLengths) {
  expectContains(errorOf(""), "not a safetensors file");
  expectContains(errorOf("1234567"), "not a safetensors file");
  expectContains(errorOf(std::string(8, '\xff')), "a header of");
  std::string whole = fileOf("{}", "");
  expectContains(errorOf(whole.substr(0, 9)), "truncated");
  expectContains(errorOf(fileOf("", "")), "does not start with '{'");
  expectContains(errorOf(fileOf("[]", "")), "does not start with '{'");
}

TEST(Safetensors, RejectsDamagedHeaders) {
  expectContains(headerError("{"), "not valid JSON at byte");
  expectContains(headerError("{\"\xff\":1}"), "not valid JSON");
  expectContains(headerError(R"({"__metadata__":{"a":1}})"), "not a string");
  expectContains(headerError(R"({"__metadata__":1})"), "not an object");
  for (
      std::string value :
      {"1", "[]", "{}", R"({"dtype":"F32","shape":[2]})",
       R"({"dtype":1,"shape":[2],"data_offsets":[0,8]})",
       R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})",
       R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})",
       R"({"dtype":"F32","shape":["2"],"data_offsets":[0,8]})",
       R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]})",
       R"({"dtype":"F32","shape":[2],"data_offsets":[0]})",
       R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,8]})",
       R"({"dtype":"F32","shape":[2],"data_offsets":[-8,8]})",
       R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})"})
    expectContains(headerError(R"({"w":)" + value + "}"), "tensor 'w' is not");
  expectContains(headerError(R"({"w":)" + tensor("F32", "[2]", "[0,8]") +
                             R"(,"w":)" + tensor("F32", "[2]", "[0,8]") + "}"),
                 "key 'w' appears twice");
  std::string deep(100000, '[');
  expectContains(headerError(R"({"w":)" + deep), "nested more than");
}

TEST(Safetensors, RejectsDamagedOffsets) {
  auto one = [](const std::string &shape, const std::string &offsets) {
    return headerError(R"({"w":)" + tensor("F32", shape, offsets) + "}");
  };
  expectContains(one("[2]", "[8,0]"), "before its start");
  expectContains(one("[4]", "[0,16]"), "truncated: tensor 'w'");
  expectContains(one("[2]", "[9223372036854775800,9223372036854775807]"),
                 "truncated");
  expectContains(one("[3]", "[0,8]"), "do not make the 8 bytes");
  // 2^62 * 4 elements: the product overflows to 0.
  expectContains(one("[4611686018427387904,4]", "[0,0]"), "do not make");
  expectContains(one("[4611686018427387904]", "[0,0]"), "do not make");
  // So do bytes of the other dimensions of a tensor without elements.
  expectContains(one("[4611686018427387904,0]", "[0,0]"), "do not make");
  expectContains(one("[0,9223372036854775807]", "[0,0]"), "do not make");
  expectContains(one("[1]", "[0,4]"), "4 bytes after its last tensor");
  expectContains(one("[1]", "[4,8]"), "after a hole that starts at 0");
  expectContains(headerError(R"({"a":)" + tensor("F32", "[2]", "[0,8]") +
                             R"(,"b":)" + tensor("F32", "[1]", "[4,8]") + "}"),
                 "inside the tensor before it");
  expectContains(headerError(R"({"w":)" + tensor("F4", "[3]", "[0,1]") + "}"),
                 "do not make");
}

TEST(Safetensors, EveryPrefixOfAFileIsAnError) {
  std::string whole = fileOf(R"({"w":)" + tensor("F32", "[2]", "[0,8]") + "}",
                             std::string(8, 'x'));
  ASSERT_TRUE(parse(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    std::string part = whole.substr(0, size);
    EXPECT_FALSE(parse(part).ok()) << size;
  }
}

TEST(Safetensors, OpensFilesAndFolders) {
  auto folder = openSafetensors(KF_SOURCE_DIR "/models/kf-stories");
  ASSERT_TRUE(folder.ok()) << folder.message();
  auto embedding = (*folder)->find("model.embed_tokens.weight");
  ASSERT_TRUE(embedding.ok()) << embedding.message();
  EXPECT_EQ(embedding->type, DataType::BF16);
  ASSERT_EQ(embedding->shape.size(), 2u);
  EXPECT_EQ(embedding->bytes,
            uint64_t(embedding->shape[0] * embedding->shape[1] * 2));

  TempFolder temp;
  EXPECT_EQ(openSafetensors(temp.path("none")).message(),
            "cannot open '" + temp.path("none") +
                "': No such file or directory");
  EXPECT_EQ(openSafetensors(temp.path()).message(),
            "'" + temp.path() +
                "' has neither model.safetensors nor "
                "model.safetensors.index.json");
  EXPECT_EQ(Safetensors::open(temp.path()).message(),
            "cannot open '" + temp.path() + "': Is a directory");
  expectContains(Safetensors::open(temp.write("empty", "")).message(),
                 "not a safetensors file");
}

TEST(Safetensors, OpensShards) {
  TempFolder temp;
  temp.write("1.safetensors",
             fileOf(R"({"a":)" + tensor("F16", "[1]", "[0,2]") + "}", "aa"));
  temp.write("2.safetensors",
             fileOf(R"({"b":)" + tensor("F16", "[1]", "[0,2]") + "}", "bb"));
  auto index = [&](const std::string &map) {
    temp.write("model.safetensors.index.json",
               R"({"metadata":{"total_size":4},"weight_map":)" + map + "}");
    return openSafetensors(temp.path());
  };
  auto both = index(R"({"a":"1.safetensors","b":"2.safetensors"})");
  ASSERT_TRUE(both.ok()) << both.message();
  EXPECT_EQ((*both)->names(), (std::vector<std::string>{"a", "b"}));
  auto b = (*both)->find("b");
  ASSERT_TRUE(b.ok()) << b.message();
  EXPECT_EQ(std::memcmp(b->data, "bb", 2), 0);
  expectContains((*both)->find("c").message(), "no tensor 'c'");

  expectContains(index(R"({"b":"1.safetensors"})").message(),
                 "tensor 'b' is not in '1.safetensors'");
  expectContains(index(R"({"b":"3.safetensors"})").message(), "cannot open");
  expectContains(index(R"({"b":"../x"})").message(), "not a plain file name");
  expectContains(index(R"({"b":".."})").message(), "not a plain file name");
  expectContains(index(R"({"b":1})").message(), "is not a string");
  expectContains(index(R"({"b":"/etc/passwd"})").message(),
                 "not a plain file name");
  expectContains(index(R"({"b":""})").message(), "not a plain file name");
  expectContains(index(R"({"b":"2.safetensors\u0000"})").message(),
                 "zero byte");
  expectContains(
      index(R"({"a":"1.safetensors","a":"2.safetensors"})").message(),
      "key 'a' appears twice");
  // A tensor that the index leaves out is there all the same, but not twice.
  auto one = index(R"({"b":"2.safetensors"})");
  ASSERT_TRUE(one.ok()) << one.message();
  EXPECT_EQ((*one)->names(), std::vector<std::string>{"b"});
  temp.write("2.safetensors",
             fileOf(R"({"a":)" + tensor("F16", "[1]", "[0,2]") + R"(,"b":)" +
                        tensor("F16", "[1]", "[2,4]") + "}",
                    "aabb"));
  auto more = index(R"({"b":"2.safetensors"})");
  ASSERT_TRUE(more.ok()) << more.message();
  EXPECT_EQ((*more)->names(), (std::vector<std::string>{"a", "b"}));
  expectContains(
      index(R"({"a":"1.safetensors","b":"2.safetensors"})").message(),
      "tensor 'a' is in two files, one of them '2.safetensors'");
  temp.write("model.safetensors.index.json", R"({"metadata":{}})");
  expectContains(openSafetensors(temp.path()).message(),
                 "no object 'weight_map'");
  expectContains(index("[]").message(), "no object 'weight_map'");
  expectContains(index("{").message(), "not valid JSON");
}

TEST(MappedFile, SaysWhyItCannotOpen) {
  TempFolder temp;
  EXPECT_EQ(MappedFile::open(temp.path("x")).message(),
            "cannot open '" + temp.path("x") + "': No such file or directory");
  EXPECT_EQ(MappedFile::open("/dev/null").message(),
            "cannot open '/dev/null': Not a regular file");
  auto empty = MappedFile::open(temp.write("empty", ""));
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty->bytes().empty());
  auto file = MappedFile::open(temp.write("some", "abc"));
  ASSERT_TRUE(file.ok());
  MappedFile moved = file.take();
  EXPECT_EQ(moved.text(), "abc");
}

} // namespace
