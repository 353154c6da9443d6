//===- SafetensorsWriterTest.cpp - Writing safetensors files --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/SafetensorsWriter.h"

#include "runtime/io/Safetensors.h"
#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

using namespace kf;
using kf::test::TempFolder;

namespace {

std::vector<std::byte> someBytes(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(1 + i * 7);
  return bytes;
}

std::string contentOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string errorOf(const std::vector<SafetensorsInfo> &tensors) {
  TempFolder folder;
  auto writer =
      SafetensorsWriter::create(folder.path("a.safetensors"), tensors, {});
  EXPECT_FALSE(writer.ok());
  EXPECT_FALSE(std::filesystem::exists(folder.path("a.safetensors")));
  return writer.message();
}

TEST(SafetensorsWriter, IsReadBack) {
  TempFolder folder;
  const std::string path = folder.path("a.safetensors");
  const std::vector<SafetensorsInfo> tensors = {
      {"b.half", {3, 5}, DataType::F16},
      {"empty", {0, 4}, DataType::F32},
      {"a \"quoted\"", {2}, DataType::F32},
      {"bytes", {3}, DataType::U8},
      {"scalar", {}, DataType::BF16},
      {"codes", {1, 2}, DataType::F8E4M3}};
  auto writer = SafetensorsWriter::create(
      path, tensors, {.metadata = {{"format", "pt"}, {"step", "7"}}});
  ASSERT_TRUE(writer.ok()) << writer.message();
  // Pieces need not end where tensors do.
  const std::vector<std::byte> bytes = someBytes(30 + 8 + 3 + 2 + 2);
  const std::span<const std::byte> all = bytes;
  ASSERT_TRUE((*writer)->append(all.first(13)).ok());
  ASSERT_TRUE((*writer)->append(all.subspan(13)).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE((*writer)->finish().ok());

  auto read = Safetensors::open(path);
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ((*read)->metadata().at("format"), "pt");
  EXPECT_EQ((*read)->metadata().at("step"), "7");
  EXPECT_EQ((*read)->names().size(), tensors.size());
  size_t offset = 0;
  for (const SafetensorsInfo &tensor : tensors) {
    auto view = (*read)->find(tensor.name);
    ASSERT_TRUE(view.ok()) << view.message();
    EXPECT_EQ(view->type, tensor.type);
    EXPECT_EQ(view->shape, tensor.shape);
    ASSERT_LE(offset + view->bytes, bytes.size());
    EXPECT_EQ(std::memcmp(view->data, bytes.data() + offset, view->bytes), 0);
    offset += view->bytes;
  }
  EXPECT_EQ(offset, bytes.size());
  // Elements are aligned, as the format asks for.
  EXPECT_EQ((contentOf(path).size() - bytes.size()) % 8, 0u);
}

TEST(SafetensorsWriter, WritesTensorsOfMemory) {
  TempFolder folder;
  const std::string path = folder.path("a.safetensors");
  std::map<std::string, HostTensor> tensors;
  tensors["x"] = HostTensor::zeros(DataType::F32, {2, 2}).take();
  tensors["x"].data<float>()[3] = 0.5f;
  ASSERT_TRUE(writeSafetensors(path, tensors, {}).ok());
  auto read = Safetensors::open(path);
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_TRUE((*read)->metadata().empty());
  auto view = (*read)->find("x");
  ASSERT_TRUE(view.ok());
  float last = 0;
  std::memcpy(&last, static_cast<const std::byte *>(view->data) + 12, 4);
  EXPECT_EQ(last, 0.5f);
}

TEST(SafetensorsWriter, KeepsWhatWasThereUntilItIsComplete) {
  TempFolder folder;
  const std::string path = folder.write("a.safetensors", "old");
  const std::vector<SafetensorsInfo> tensors = {{"a", {2}, DataType::F32}};
  {
    auto writer = SafetensorsWriter::create(path, tensors, {}).take();
    ASSERT_TRUE(writer->append(someBytes(4)).ok());
    EXPECT_NE(writer->finish().message().find("lack some of their bytes"),
              std::string::npos);
    EXPECT_NE(writer->append(someBytes(5)).message().find("more bytes"),
              std::string::npos);
  }
  EXPECT_EQ(contentOf(path), "old");
  auto kept = SafetensorsWriter::create(path, tensors, {.replace = false});
  ASSERT_FALSE(kept.ok() && (*kept)->append(someBytes(8)).ok() &&
               (*kept)->finish().ok());
  EXPECT_EQ(contentOf(path), "old");
}

TEST(SafetensorsWriter, RefusesWhatAFileCannotHave) {
  EXPECT_EQ(errorOf({{"a", {2}, DataType::F32}, {"a", {1}, DataType::F32}}),
            "tensor 'a' is there twice");
  EXPECT_EQ(errorOf({{"__metadata__", {2}, DataType::F32}}),
            "tensor '__metadata__' is there twice");
  EXPECT_EQ(errorOf({{"a", {32}, DataType::Q8_0}}),
            "tensor 'a' has type q8_0, which is not written to safetensors "
            "files");
  const int64_t large = int64_t(1) << 59;
  EXPECT_EQ(errorOf({{"a", {large}, DataType::F32},
                     {"b", {large}, DataType::F32},
                     {"c", {large}, DataType::F32}}),
            "the tensors have more bytes than a file can");
}

} // namespace
