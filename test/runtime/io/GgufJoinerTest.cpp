//===- GgufJoinerTest.cpp - Models in several GGUF files ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Gguf.h"

#include "test/runtime/GgufBuilder.h"
#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

#include <filesystem>

using namespace kf;
using namespace kf::test;

namespace {

/// One of a model's files: the metadata that says which, and tensors "<name>".
/// [2] that have its number.
GgufBuilder part(uint32_t number, uint32_t count, uint32_t tensors,
                 const std::vector<std::string> &names) {
  GgufBuilder builder;
  // As llama-gguf-split writes them.
  builder.entry("split.no", GgufValueType::U16, raw<uint16_t>(number))
      .entry("split.count", GgufValueType::U16, raw<uint16_t>(count))
      .entry("split.tensors.count", GgufValueType::I32, raw<int32_t>(tensors));
  for (const std::string &name : names)
    builder.tensor(name, {2}, DataType::F32,
                   raw<float>(number) + raw<float>(number));
  return builder;
}

/// Files "m-0000X-of-00003.gguf" of three parts with five tensors.
class GgufJoinerTest : public testing::Test {
protected:
  GgufJoinerTest() {
    write(0, part(0, 3, 5, {"a", "d"}).text("general.architecture", "x"));
    write(1, part(1, 3, 5, {"c", "b"}));
    write(2, part(2, 3, 5, {"e"}));
  }

  std::string path(int number) const {
    return folder.path("m-0000" + std::to_string(number + 1) +
                       "-of-00003.gguf");
  }
  void write(int number, const GgufBuilder &builder) const {
    folder.write(std::filesystem::path(path(number)).filename(),
                 builder.bytes());
  }
  std::string error(int number = 0) const {
    return Gguf::open(path(number)).message();
  }

  TempFolder folder;
};

TEST_F(GgufJoinerTest, TheFirstOpensAll) {
  auto file = Gguf::open(path(0));
  ASSERT_TRUE(file.ok()) << file.message();
  const Gguf &gguf = **file;
  EXPECT_EQ(gguf.source(), path(0));
  ASSERT_EQ(gguf.files().size(), 3u);
  EXPECT_EQ(gguf.files()[0], &gguf);
  EXPECT_EQ(gguf.files()[2]->source(), path(2));
  EXPECT_EQ(gguf.names(), (std::vector<std::string>{"a", "b", "c", "d", "e"}));
  EXPECT_EQ(gguf.tensors().size(), 5u);
  EXPECT_EQ(gguf.ownTensors().size(), 2u);
  EXPECT_EQ(*gguf.getString("general.architecture"), "x");
  for (auto [name, number] :
       {std::pair("a", 0), std::pair("d", 0), std::pair("c", 1),
        std::pair("b", 1), std::pair("e", 2)}) {
    auto view = gguf.find(name);
    ASSERT_TRUE(view.ok()) << view.message();
    const auto *values = static_cast<const float *>(view->data);
    EXPECT_EQ(values[0], static_cast<float>(number)) << name;
    EXPECT_EQ(gguf.lookUpTensor(name)->file, static_cast<size_t>(number));
    gguf.releasePart(name, 4, 4);
    gguf.release(name);
    EXPECT_EQ(values[1], static_cast<float>(number)) << name;
  }
  auto same = Gguf::openIfGguf(path(0));
  ASSERT_TRUE(same.ok()) << same.message();
  EXPECT_EQ((*same)->tensors().size(), 5u);
  // Types are errors of the file that has them.
  write(2, part(2, 3, 5, {})
               .tensorEntry("e", {256}, 29, 0)
               .append(std::string(56, '\0')));
  EXPECT_TRUE(Gguf::open(path(0)).take()->find("e").message().starts_with(
      path(2) + ": tensor 'e' has type IQ1_M"));
}

TEST_F(GgufJoinerTest, OnePartIsAWholeFile) {
  write(0, part(0, 1, 2, {"a", "b"}));
  std::filesystem::rename(path(0), folder.path("m.gguf"));
  auto file = Gguf::open(folder.path("m.gguf"));
  ASSERT_TRUE(file.ok()) << file.message();
  EXPECT_EQ((*file)->files().size(), 1u);
}

TEST_F(GgufJoinerTest, AnotherThanTheFirst) {
  EXPECT_EQ(error(1), path(1) +
                          ": the file is part 2 of 3 of a model; open "
                          "the first, '" +
                          path(0) + "'");
  std::filesystem::rename(path(0), folder.path("m.gguf"));
  EXPECT_EQ(
      Gguf::open(folder.path("m.gguf")).message(),
      folder.path("m.gguf") +
          ": the file is part 1 of 3 of a model, but its name does not "
          "end with '-00001-of-00003.gguf', by which the others are found; "
          "give all parts their names");
  write(0, part(2, 3, 5, {"a"}));
  EXPECT_EQ(error(), path(0) + ": the file is part 3 of 3 of a model, but its "
                               "name does not end with '-00003-of-00003.gguf', "
                               "by which the others are found; give all parts "
                               "their names");
}

TEST_F(GgufJoinerTest, APartThatIsMissingOrBroken) {
  std::filesystem::remove(path(1));
  EXPECT_EQ(error(), path(0) + ": part 2 of 3 of a model: cannot open '" +
                         path(1) +
                         "': No such file or directory; all parts have to lie "
                         "in one folder");
  folder.write("m-00002-of-00003.gguf", "GGUF");
  EXPECT_EQ(error(), path(1) + ": truncated: a GGUF file's header takes 24 "
                               "bytes, the file has 4");
}

TEST_F(GgufJoinerTest, PartsOfAnotherModel) {
  // In another order.
  write(1, part(2, 3, 5, {"c", "b"}));
  EXPECT_EQ(error(), path(1) + ": metadata 'split.no' is 2 where 1 is "
                               "expected: part 2 of 3 of a model is another "
                               "file");
  write(1, part(1, 4, 5, {"c", "b"}));
  EXPECT_EQ(error(), path(1) + ": metadata 'split.count' is 4 where 3 is "
                               "expected: part 2 of 3 of a model is another "
                               "file");
  write(1, part(1, 3, 6, {"c", "b"}));
  EXPECT_EQ(error(), path(1) + ": metadata 'split.tensors.count' is 6 where 5 "
                               "is expected: part 2 of 3 of a model is another "
                               "file");
  write(1, GgufBuilder().tensor("c", {2}));
  EXPECT_EQ(error(), path(1) + ": there is no metadata 'split.count'");
  write(1, part(1, 3, 5, {"c", "b"}).text("general.architecture", "y"));
  EXPECT_EQ(error(), path(1) + ": metadata 'general.architecture' is not that "
                               "of the first part: part 2 of 3 of a model is "
                               "another file");
  write(1, part(1, 3, 5, {"c", "d"}));
  EXPECT_EQ(error(), path(1) + ": tensor 'd' is in part 1 of 3 of a model, "
                               "too");
  write(1, part(1, 3, 5, {"c"}));
  EXPECT_EQ(error(), path(0) + ": the 3 parts of the model have 4 tensors, but "
                               "metadata 'split.tensors.count' is 5");
}

TEST_F(GgufJoinerTest, NumbersThatNoFileHas) {
  write(0, part(3, 3, 5, {"a"}));
  EXPECT_EQ(error(), path(0) + ": metadata 'split.no' is 3 of 'split.count' 3, "
                               "which no file is");
  write(0, GgufBuilder().u32("split.count", 4000000000));
  EXPECT_EQ(error(), path(0) + ": there is no metadata 'split.no'");
  write(0, GgufBuilder()
               .u32("split.count", 4000000000)
               .u32("split.no", 0)
               .u32("split.tensors.count", 1));
  EXPECT_EQ(error(), path(0) + ": metadata 'split.no' is 0 of 'split.count' "
                               "4000000000, which no file is");
  write(0, GgufBuilder().text("split.count", "3"));
  EXPECT_EQ(error(), path(0) + ": metadata 'split.count' is a string where an "
                               "unsigned integer is expected");
}

} // namespace
