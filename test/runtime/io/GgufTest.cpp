//===- GgufTest.cpp - GGUF files, sound and hostile -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Gguf.h"

#include "test/runtime/GgufBuilder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <fstream>
#include <limits>
#include <map>

using namespace kf;
using namespace kf::test;

namespace {

constexpr uint32_t kF32 = 0, kQ4_0 = 2;
constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

Result<std::unique_ptr<Gguf>> parse(const std::string &bytes) {
  return Gguf::parse(std::as_bytes(std::span(bytes)), "test");
}

std::string errorOf(const std::string &bytes) { return parse(bytes).message(); }

std::string errorOf(const GgufBuilder &builder) {
  return errorOf(builder.bytes());
}

//===----------------------------------------------------------------------===//
// Sound files
//===----------------------------------------------------------------------===//

TEST(Gguf, ReadsEveryKindOfValue) {
  std::string bytes =
      GgufBuilder()
          .entry("u8", GgufValueType::U8, raw<uint8_t>(200))
          .entry("i8", GgufValueType::I8, raw<int8_t>(-100))
          .entry("u16", GgufValueType::U16, raw<uint16_t>(60000))
          .entry("i16", GgufValueType::I16, raw<int16_t>(-30000))
          .u32("u32", 4000000000)
          .entry("i32", GgufValueType::I32, raw<int32_t>(-2000000000))
          .f32("f32", 1.5f)
          .boolean("bool", true)
          .text("string", "caf\xc3\xa9")
          .entry("u64", GgufValueType::U64, raw(kHuge))
          .entry("i64", GgufValueType::I64, raw<int64_t>(-7))
          .entry("f64", GgufValueType::F64, raw(0.1))
          .bytes();
  auto file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.message();
  const Gguf &gguf = **file;
  EXPECT_EQ(gguf.version(), 3u);
  EXPECT_EQ(gguf.alignment(), 32u);
  EXPECT_EQ(gguf.fileBytes(), bytes.size());
  ASSERT_EQ(gguf.metadata().size(), 12u);
  EXPECT_EQ(gguf.metadata()[0].key, "u8");
  EXPECT_EQ(gguf.metadata()[11].key, "f64");

  EXPECT_EQ(*gguf.getUnsigned("u8"), 200u);
  EXPECT_EQ(*gguf.lookUp("i8")->toSigned(), -100);
  EXPECT_EQ(*gguf.getUnsigned("u16"), 60000u);
  EXPECT_EQ(*gguf.lookUp("i16")->toSigned(), -30000);
  EXPECT_EQ(*gguf.getUnsigned("u32"), 4000000000u);
  EXPECT_EQ(*gguf.lookUp("i32")->toSigned(), -2000000000);
  EXPECT_EQ(*gguf.getFloat("f32"), 1.5);
  EXPECT_EQ(*gguf.getBool("bool"), true);
  EXPECT_EQ(*gguf.getString("string"), "caf\xc3\xa9");
  EXPECT_EQ(*gguf.getUnsigned("u64"), kHuge);
  EXPECT_EQ(gguf.lookUp("u64")->toSigned(), std::nullopt);
  EXPECT_EQ(*gguf.lookUp("i64")->toSigned(), -7);
  EXPECT_EQ(*gguf.getFloat("f64"), 0.1);
}

TEST(Gguf, ReadsArrays) {
  std::string inner = ggufArray(4, 2, raw(1u) + raw(2u));
  std::string bytes =
      GgufBuilder()
          .strings("texts", {"a", "", "ccc"})
          .i32s("numbers", {3, -4})
          .entry("floats", GgufValueType::Array,
                 ggufArray(6, 2, raw(0.5f) + raw(-1.0f)))
          .entry("bools", GgufValueType::Array, ggufArray(7, 2, {"\1\0", 2}))
          .entry("nested", GgufValueType::Array, ggufArray(9, 2, inner + inner))
          .entry("wide", GgufValueType::Array, ggufArray(10, 1, raw(kHuge)))
          .strings("none", {})
          .text("after", "end")
          .bytes();
  auto file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.message();
  const Gguf &gguf = **file;
  EXPECT_EQ(*gguf.getStrings("texts"),
            (std::vector<std::string_view>{"a", "", "ccc"}));
  EXPECT_EQ(*gguf.getIntegers("numbers"), (std::vector<int64_t>{3, -4}));
  EXPECT_EQ(*gguf.getFloats("floats"), (std::vector<float>{0.5f, -1.0f}));
  EXPECT_TRUE(gguf.getStrings("none")->empty());
  EXPECT_EQ(*gguf.getString("after"), "end");

  std::vector<GgufValue> bools = gguf.lookUp("bools")->elements(10);
  ASSERT_EQ(bools.size(), 2u);
  EXPECT_EQ(bools[0].toBool(), true);
  EXPECT_EQ(bools[1].toBool(), false);
  EXPECT_EQ(gguf.lookUp("texts")->elements(2).size(), 2u);
  std::vector<GgufValue> nested = gguf.lookUp("nested")->elements(10);
  ASSERT_EQ(nested.size(), 2u);
  EXPECT_EQ(*nested[1].toIntegers(), (std::vector<int64_t>{1, 2}));

  EXPECT_EQ(gguf.getIntegers("wide").message(),
            "test: metadata 'wide' is an array of u64 where an array of "
            "integers is expected");
  EXPECT_EQ(gguf.getFloats("texts").message(),
            "test: metadata 'texts' is an array of string where an array of "
            "f32 is expected");
}

TEST(Gguf, NamesWhatIsWrongWithAValue) {
  std::string bytes = GgufBuilder()
                          .text("llama.block_count", "four")
                          .entry("less", GgufValueType::I32, raw(-1))
                          .f32("eps", 1e-5f)
                          .bytes();
  auto file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.message();
  const Gguf &gguf = **file;
  EXPECT_EQ(gguf.getUnsigned("llama.block_count").message(),
            "test: metadata 'llama.block_count' is a string where an unsigned "
            "integer is expected");
  EXPECT_EQ(gguf.getUnsigned("less").message(),
            "test: metadata 'less' is -1 where an unsigned integer is "
            "expected");
  EXPECT_EQ(gguf.getString("eps").message(),
            "test: metadata 'eps' is of type f32 where a string is expected");
  EXPECT_EQ(gguf.getUnsigned("eps", 3).message(),
            "test: metadata 'eps' is of type f32 where an unsigned integer is "
            "expected");
  EXPECT_EQ(gguf.getFloat("none").message(),
            "test: there is no metadata 'none'");
  EXPECT_EQ(*gguf.getFloat("none", 2.5), 2.5);
  EXPECT_EQ(*gguf.findBool("none"), std::nullopt);
  EXPECT_FALSE(gguf.contains("none"));
}

TEST(Gguf, FindsTensors) {
  std::string values =
      raw(1.0f) + raw(2.0f) + raw(3.0f) + raw(4.0f) + raw(5.0f) + raw(6.0f);
  std::string bytes = GgufBuilder()
                          .tensor("b", {2, 3}, DataType::F32, values)
                          .tensor("a", {4, 64}, DataType::Q4_0)
                          .tensor("empty", {0}, DataType::F16)
                          .bytes();
  auto file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.message();
  const Gguf &gguf = **file;
  EXPECT_EQ(gguf.names(), (std::vector<std::string>{"a", "b", "empty"}));
  EXPECT_EQ(gguf.tensors()[0].name, "b");
  auto b = gguf.find("b");
  ASSERT_TRUE(b.ok()) << b.message();
  EXPECT_EQ(b->type, DataType::F32);
  EXPECT_EQ(b->shape, (std::vector<int64_t>{2, 3}));
  ASSERT_EQ(b->bytes, 24u);
  EXPECT_EQ(std::memcmp(b->data, values.data(), 24), 0);
  auto a = gguf.find("a");
  ASSERT_TRUE(a.ok()) << a.message();
  EXPECT_EQ(a->type, DataType::Q4_0);
  EXPECT_EQ(a->bytes, 4u * 2 * 18);
  EXPECT_EQ(gguf.find("empty")->bytes, 0u);
  EXPECT_EQ(gguf.find("c").message(), "test: no tensor 'c'");
}

TEST(Gguf, TypesThatNothingReadsAreNamedWhenAskedFor) {
  std::string bytes = GgufBuilder()
                          .tensorEntry("iq", {256}, 29, 0)
                          .tensorEntry("new", {7}, 1234, 64)
                          .append(std::string(192, '\0'))
                          .bytes();
  auto file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.message();
  EXPECT_EQ((*file)->tensors()[0].typeName(), "IQ1_M");
  EXPECT_EQ((*file)->tensors()[0].bytes, 56u);
  EXPECT_EQ((*file)->tensors()[1].typeName(), "type 1234");
  const std::string supported =
      "; supported types are F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, "
      "Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, I8, I16, I32, I64, F64, BF16, "
      "MXFP4";
  EXPECT_EQ((*file)->find("iq").message(),
            "test: tensor 'iq' has type IQ1_M" + supported);
  EXPECT_EQ((*file)->find("new").message(),
            "test: tensor 'new' has the unknown type 1234" + supported);
}

TEST(Gguf, VersionTwoAndOtherAlignments) {
  GgufBuilder builder;
  builder.version = 2;
  builder.alignment = 1024;
  builder.u32("general.alignment", 1024)
      .tensor("a", {3}, DataType::F32, raw(1.0f) + raw(2.0f) + raw(3.0f))
      .tensor("b", {1}, DataType::F32, raw(4.0f));
  std::string bytes = builder.bytes();
  auto file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.message();
  EXPECT_EQ((*file)->tensors()[1].offset, 1024u);
  float value;
  std::memcpy(&value, (*file)->find("b")->data, sizeof(value));
  EXPECT_EQ(value, 4.0f);
}

TEST(Gguf, AVocabularyAloneNeedsNoPadding) {
  std::string bytes = GgufBuilder().text("k", "v").head();
  ASSERT_NE(bytes.size() % 32, 0u);
  EXPECT_EQ(errorOf(bytes), "");
}

TEST(Gguf, BlockTypesAreTheRuntimes) {
  for (const GgmlType &type : kGgmlTypes) {
    if (!type.type)
      continue;
    EXPECT_EQ(type.bytes, bytesPerBlock(*type.type)) << type.name;
    EXPECT_EQ(type.elements, elementsPerBlock(*type.type)) << type.name;
    EXPECT_EQ(findGgmlType(*type.type)->number, type.number);
  }
}

TEST(Gguf, OpensTheFilesOfKfStories) {
  const std::string folder = KF_SOURCE_DIR "/models/kf-stories-gguf/";
  std::ifstream stream(folder + "reference.json");
  nlohmann::json reference =
      nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(reference.is_object());
  int files = 0;
  for (const auto &[name, facts] : reference.items()) {
    if (!facts.is_object())
      continue;
    ++files;
    auto file = Gguf::open(folder + name);
    ASSERT_TRUE(file.ok()) << file.message();
    std::map<std::string, int> types;
    for (const GgufTensor &tensor : (*file)->tensors()) {
      ++types[tensor.typeName()];
      EXPECT_TRUE((*file)->find(std::string(tensor.name)).ok());
    }
    EXPECT_EQ(nlohmann::json(types), facts["tensor_types"]);
    EXPECT_EQ(*(*file)->getUnsigned("llama.block_count"), 8u);
    EXPECT_EQ((*file)->getStrings("tokenizer.ggml.tokens")->size(), 1477u);
    auto table = (*file)->find("token_embd.weight");
    ASSERT_TRUE(table.ok());
    EXPECT_EQ(table->shape, (std::vector<int64_t>{1477, 256}));
    // A hint: what is read afterwards is the same.
    std::vector<char> before(table->bytes);
    std::memcpy(before.data(), table->data, table->bytes);
    (*file)->release("token_embd.weight");
    EXPECT_EQ(std::memcmp(before.data(), table->data, table->bytes), 0);
  }
  EXPECT_EQ(files, 3);
}

TEST(Gguf, OpensALargeVocabularyQuickly) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 150000; ++i)
    tokens.push_back("token" + std::to_string(i));
  std::string bytes =
      GgufBuilder().strings("tokenizer.ggml.tokens", tokens).bytes();
  auto file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.message();
  auto texts = (*file)->getStrings("tokenizer.ggml.tokens");
  ASSERT_EQ(texts->size(), tokens.size());
  EXPECT_EQ(texts->back(), "token149999");
  // Views into the file, no copies.
  EXPECT_GE(texts->back().data(), bytes.data());
  EXPECT_LT(texts->back().data(), bytes.data() + bytes.size());
}

//===----------------------------------------------------------------------===//
// Hostile headers
//===----------------------------------------------------------------------===//

TEST(Gguf, OtherFiles) {
  EXPECT_EQ(errorOf(std::string()),
            "test: not a GGUF file: it does not begin with \"GGUF\"");
  EXPECT_EQ(errorOf(std::string("GGUX\3\0\0\0", 8)),
            "test: not a GGUF file: it does not begin with \"GGUF\"");
  EXPECT_EQ(Gguf::open("/nonexistent").message(),
            "cannot open '/nonexistent': No such file or directory");
}

TEST(Gguf, TruncatedHeader) {
  std::string whole = GgufBuilder().head();
  for (size_t size = 4; size < 24; ++size)
    EXPECT_EQ(errorOf(whole.substr(0, size)),
              "test: truncated: a GGUF file's header takes 24 bytes, the file "
              "has " +
                  std::to_string(size));
}

TEST(Gguf, OtherVersions) {
  GgufBuilder builder;
  for (uint32_t version : {0u, 1u, 4u, 0xffffffffu}) {
    builder.version = version;
    EXPECT_EQ(errorOf(builder), "test: GGUF version " +
                                    std::to_string(version) +
                                    " is not supported (supported: 2, 3)");
  }
  builder.version = 0x03000000;
  EXPECT_EQ(errorOf(builder), "test: a big-endian GGUF file; only "
                              "little-endian ones are supported");
}

TEST(Gguf, EveryTruncationIsAnError) {
  std::string whole = GgufBuilder()
                          .u32("a", 1)
                          .strings("b", {"x", "yy"})
                          .entry("c", GgufValueType::Array,
                                 ggufArray(9, 1, ggufArray(4, 1, raw(1u))))
                          .tensor("t", {2, 4}, DataType::F16)
                          .bytes();
  ASSERT_EQ(errorOf(whole), "");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(errorOf(whole.substr(0, size)), "") << size << " bytes";
}

TEST(Gguf, CountsPastTheEnd) {
  GgufBuilder entries;
  entries.u32("a", 1).claimedEntries = 1000;
  EXPECT_EQ(errorOf(entries.head()), "test: the header claims 1000 metadata "
                                     "entries, but only 17 bytes follow");
  entries.claimedEntries = kHuge;
  EXPECT_EQ(errorOf(entries.head()),
            "test: the header claims 18446744073709551615 metadata entries, "
            "but only 17 bytes follow");
  entries.claimedEntries = {};
  entries.claimedTensors = kHuge / 32;
  EXPECT_EQ(errorOf(entries.head()),
            "test: the header claims 576460752303423487 tensors, but only 17 "
            "bytes follow");
  entries.claimedTensors = {};
  entries.claimedEntries = 0;
  // The entry is then read as padding: there is nothing to find.
  EXPECT_EQ(errorOf(entries.head()), "");
}

//===----------------------------------------------------------------------===//
// Hostile metadata
//===----------------------------------------------------------------------===//

TEST(Gguf, NamesPastTheEnd) {
  GgufBuilder builder;
  builder.u32("a", 1);
  std::string bytes = builder.head();
  for (uint64_t length : {uint64_t(18), kHuge, kHuge - 7, uint64_t(1) << 63}) {
    bytes.replace(24, 8, raw(length));
    EXPECT_EQ(errorOf(bytes), "test: the name of metadata entry 0 has " +
                                  std::to_string(length) +
                                  " bytes, but only 9 bytes follow");
  }
}

TEST(Gguf, EntriesCutOff) {
  GgufBuilder builder;
  builder.u32("a", 1).claimedEntries = 2;
  EXPECT_EQ(errorOf(builder.head() + std::string(12, '\0')),
            "test: metadata '': truncated: a value of type u8 takes 1 bytes, "
            "but only 0 bytes follow");
  builder = GgufBuilder();
  builder.text("a", std::string(30, 'x')).u32("b", 1);
  EXPECT_EQ(errorOf(builder.head().substr(0, 24 + 51 + 3)),
            "test: truncated: the name of metadata entry 1 begins with 8 "
            "bytes, but only 3 bytes follow");
  EXPECT_EQ(errorOf(builder.head().substr(0, 24 + 51 + 10)),
            "test: metadata 'b': truncated: no value type");
}

TEST(Gguf, StringsPastTheEnd) {
  for (uint64_t length : {uint64_t(5), kHuge, kHuge - 7})
    EXPECT_EQ(
        errorOf(GgufBuilder()
                    .entry("k", GgufValueType::String, raw(length) + "abcd")
                    .head()),
        "test: metadata 'k': a string has " + std::to_string(length) +
            " bytes, but only 4 bytes follow");
}

TEST(Gguf, UnknownValueType) {
  EXPECT_EQ(errorOf(GgufBuilder().entry("k", 13, raw(kHuge))),
            "test: metadata 'k': unknown value type 13 (known: 0 to 12)");
  EXPECT_EQ(errorOf(GgufBuilder().entry("k", 0xffffffff, raw(kHuge))),
            "test: metadata 'k': unknown value type 4294967295 (known: 0 to "
            "12)");
}

TEST(Gguf, UnknownArrayElementType) {
  EXPECT_EQ(errorOf(GgufBuilder().entry("k", GgufValueType::Array,
                                        ggufArray(13, 1, raw(kHuge)))),
            "test: metadata 'k': an array has elements of an unknown type 13 "
            "(known: 0 to 12)");
  EXPECT_EQ(errorOf(GgufBuilder().entry("k", GgufValueType::Array,
                                        ggufArray(0x80000000, 1, raw(kHuge)))),
            "test: metadata 'k': an array has elements of an unknown type "
            "2147483648 (known: 0 to 12)");
}

TEST(Gguf, ArraysPastTheEnd) {
  auto error = [](uint32_t type, uint64_t count) {
    return errorOf(GgufBuilder()
                       .entry("k", GgufValueType::Array,
                              ggufArray(type, count, "12345678"))
                       .head());
  };
  EXPECT_EQ(error(4, 3), "test: metadata 'k': an array claims 3 elements of "
                         "type u32, but only 8 bytes follow");
  // Times the size of an element, these counts wrap.
  EXPECT_EQ(error(4, (uint64_t(1) << 62) + 1),
            "test: metadata 'k': an array claims 4611686018427387905 elements "
            "of type u32, but only 8 bytes follow");
  EXPECT_EQ(error(8, uint64_t(1) << 61),
            "test: metadata 'k': an array claims 2305843009213693952 elements "
            "of type string, but only 8 bytes follow");
  EXPECT_EQ(error(9, kHuge),
            "test: metadata 'k': an array claims 18446744073709551615 elements "
            "of type array, but only 8 bytes follow");
  EXPECT_EQ(error(8, 1), "test: metadata 'k': string 0 of an array has "
                         "4050765991979987505 bytes, but only 0 bytes follow");
}

/// A count that a loop would walk through for hours, in 43 bytes.
TEST(Gguf, FortyThreeBytesDoNotLoop) {
  std::string bytes =
      GgufBuilder()
          .entry("kk", GgufValueType::Array, ggufArray(9, kHuge, {}))
          .head();
  bytes.resize(43);
  EXPECT_EQ(errorOf(bytes),
            "test: metadata 'kk': truncated: an array begins with 12 bytes");
  bytes = GgufBuilder().head() + std::string(19, '\0');
  bytes.replace(16, 8, raw(kHuge));
  ASSERT_EQ(bytes.size(), 43u);
  EXPECT_EQ(errorOf(bytes),
            "test: the header claims 18446744073709551615 metadata entries, "
            "but only 19 bytes follow");
}

/// Claims that would need gigabytes if they were believed.
TEST(Gguf, AHundredAndSixtyBytesDoNotAskForGigabytes) {
  GgufBuilder builder;
  builder.entry("tokenizer.ggml.tokens", GgufValueType::Array,
                ggufArray(8, uint64_t(1) << 32, std::string(80, '\0')));
  std::string bytes = builder.head();
  bytes.resize(160);
  EXPECT_EQ(errorOf(bytes),
            "test: metadata 'tokenizer.ggml.tokens': an array claims "
            "4294967296 elements of type string, but only 91 bytes follow");
  bytes = GgufBuilder().head() + std::string(136, '\0');
  bytes.replace(8, 8, raw(uint64_t(1) << 30));
  EXPECT_EQ(errorOf(bytes), "test: the header claims 1073741824 tensors, but "
                            "only 136 bytes follow");
}

TEST(Gguf, ArraysNestedTooDeep) {
  std::string value = ggufArray(4, 0, {});
  for (int depth = 1; depth < 4; ++depth)
    value = ggufArray(9, 1, value);
  EXPECT_EQ(errorOf(GgufBuilder().entry("k", GgufValueType::Array, value)), "");
  std::string deep;
  for (int depth = 0; depth < 100000; ++depth)
    deep += raw(9u) + raw(uint64_t(1));
  EXPECT_EQ(errorOf(GgufBuilder().entry("k", GgufValueType::Array, deep)),
            "test: metadata 'k': arrays are nested more than 4 deep");
}

TEST(Gguf, BoolsAreZeroOrOne) {
  EXPECT_EQ(errorOf(GgufBuilder().entry("k", GgufValueType::Bool, "\2")),
            "test: metadata 'k': a bool is 2, neither 0 nor 1");
  EXPECT_EQ(errorOf(GgufBuilder().entry("k", GgufValueType::Array,
                                        ggufArray(7, 2, "\1\xff"))),
            "test: metadata 'k': a bool in an array is 255, neither 0 nor 1");
}

TEST(Gguf, DuplicateKeys) {
  EXPECT_EQ(errorOf(GgufBuilder().u32("k", 1).u32("l", 1).u32("k", 1)),
            "test: metadata 'k' is there twice");
}

TEST(Gguf, NamesInErrorsAreOneLine) {
  EXPECT_EQ(errorOf(GgufBuilder().u32("a\n\x1b[31m", 1).u32("a\n\x1b[31m", 1)),
            "test: metadata 'a??[31m' is there twice");
  std::string longName(1000, 'x');
  EXPECT_EQ(errorOf(GgufBuilder().u32(longName, 1).u32(longName, 1)),
            "test: metadata '" + longName.substr(0, 80) +
                "...' is there twice");
}

TEST(Gguf, AlignmentIsBounded) {
  auto error = [](uint32_t value) {
    return errorOf(GgufBuilder().u32("general.alignment", value));
  };
  for (uint32_t good : {8u, 16u, 4096u, 65536u})
    EXPECT_EQ(error(good), "");
  for (uint32_t bad : {0u, 1u, 4u, 24u, 33u, 131072u, 0x80000000u, 0xffffffffu})
    EXPECT_EQ(error(bad), "test: metadata 'general.alignment' is " +
                              std::to_string(bad) +
                              ", but a power of two from 8 to 65536 is "
                              "expected");
  EXPECT_EQ(errorOf(GgufBuilder().entry("general.alignment", GgufValueType::U64,
                                        raw(uint64_t(1) << 63))),
            "test: metadata 'general.alignment' is 9223372036854775808, but a "
            "power of two from 8 to 65536 is expected");
  EXPECT_EQ(errorOf(GgufBuilder().text("general.alignment", "32")),
            "test: metadata 'general.alignment' is of type string, but a power "
            "of two from 8 to 65536 is expected");
}

//===----------------------------------------------------------------------===//
// Hostile tensors
//===----------------------------------------------------------------------===//

TEST(Gguf, RankIsOneToFour) {
  auto error = [](std::vector<uint64_t> sizes) {
    return errorOf(GgufBuilder()
                       .tensorEntry("t", sizes, kF32, 0)
                       .append(std::string(64, '\0')));
  };
  EXPECT_EQ(error({2, 2, 2, 2}), "");
  EXPECT_EQ(error({2, 2, 2, 2, 1}),
            "test: tensor 't' has 5 dimensions; 1 to 4 are possible");
  EXPECT_EQ(error({}),
            "test: tensor 't' has 0 dimensions; 1 to 4 are possible");
  std::string bytes =
      GgufBuilder().tensorEntry("t", {2, 2, 2, 2}, kF32, 0).bytes();
  bytes.replace(24 + 9, 4, raw(0xffffffffu));
  EXPECT_EQ(errorOf(bytes),
            "test: tensor 't' has 4294967295 dimensions; 1 to 4 are possible");
}

TEST(Gguf, DimensionsThatOverflow) {
  auto error = [](std::vector<uint64_t> sizes, uint32_t type) {
    return errorOf(GgufBuilder()
                       .tensorEntry("t", sizes, type, 0)
                       .append(std::string(64, '\0')));
  };
  EXPECT_EQ(error({uint64_t(1) << 63}, kF32),
            "test: tensor 't' has a dimension of 9223372036854775808, which 63 "
            "bits cannot hold");
  EXPECT_EQ(error({kHuge}, kF32),
            "test: tensor 't' has a dimension of 18446744073709551615, which "
            "63 bits cannot hold");
  // 2^32 * 2^32 is 0 in 64 bits, and so is a product with a 0 in its midst.
  EXPECT_EQ(error({uint64_t(1) << 32, uint64_t(1) << 32}, kF32),
            "test: tensor 't': a shape has more elements than 63 bits can "
            "count");
  EXPECT_EQ(error({uint64_t(1) << 40, 0, uint64_t(1) << 40}, kQ4_0),
            "test: tensor 't': a shape has more elements than 63 bits can "
            "count");
  EXPECT_EQ(error({uint64_t(1) << 61}, kF32),
            "test: tensor 't': a shape takes more bytes than 63 bits can "
            "count");
  EXPECT_EQ(error({uint64_t(1) << 32, uint64_t(1) << 32}, 999),
            "test: tensor 't': a shape has more elements than 63 bits can "
            "count");
}

TEST(Gguf, RowsThatSplitBlocks) {
  EXPECT_EQ(errorOf(GgufBuilder()
                        .tensorEntry("t", {48, 2}, kQ4_0, 0)
                        .append(std::string(64, '\0'))),
            "test: tensor 't': rows of Q4_0 come in blocks of 32 elements, but "
            "have 48");
}

TEST(Gguf, TensorsPastTheEnd) {
  auto error = [](uint64_t offset) {
    return errorOf(GgufBuilder()
                       .tensorEntry("t", {8}, kF32, offset)
                       .append(std::string(64, '\0')));
  };
  EXPECT_EQ(error(0), "");
  EXPECT_EQ(error(64), "test: truncated: tensor 't' takes 32 bytes at offset "
                       "64 of the data, which has 64");
  // With its bytes this offset wraps to 0.
  EXPECT_EQ(error(kHuge - 31),
            "test: truncated: tensor 't' takes 32 bytes at offset "
            "18446744073709551584 of the data, which has 64");
  EXPECT_EQ(error(4), "test: tensor 't': its offset 4 is not a multiple of the "
                      "alignment 32");
  EXPECT_EQ(errorOf(GgufBuilder()
                        .tensorEntry("t", {uint64_t(1) << 40}, kF32, 0)
                        .append(std::string(64, '\0'))),
            "test: truncated: tensor 't' takes 4398046511104 bytes at offset 0 "
            "of the data, which has 64");
}

/// The padding behind the entries ends past the file.
TEST(Gguf, PaddingPastTheEnd) {
  GgufBuilder builder;
  builder.u32("general.alignment", 65536).tensorEntry("t", {1}, kF32, 0);
  EXPECT_EQ(errorOf(builder.head() + std::string(100, '\0')),
            "test: truncated: tensor 't' takes 4 bytes at offset 0 of the "
            "data, which has 0");
}

/// Tensors lie one behind the other, in the order of their entries, as
/// llama.cpp wants it.
TEST(Gguf, TensorsAreWhereTheOnesBeforeThemEnd) {
  auto error = [](std::vector<std::pair<uint64_t, uint64_t>> tensors,
                  uint32_t type = kF32) {
    GgufBuilder builder;
    std::string name = "a";
    for (auto [elements, offset] : tensors) {
      builder.tensorEntry(name, {elements}, type, offset);
      ++name[0];
    }
    return errorOf(builder.append(std::string(256, '\0')));
  };
  EXPECT_EQ(error({{8, 0}, {9, 32}, {1, 96}}), "");
  EXPECT_EQ(error({{0, 0}, {8, 0}, {0, 32}, {8, 32}}), "");
  const std::string wrong = ": a type, a shape or an offset is wrong";
  // A hole, at the front and between.
  EXPECT_EQ(error({{8, 32}}), "test: tensor 'a' starts at offset 32 of the "
                              "data, but 0 is expected" +
                                  wrong);
  EXPECT_EQ(error({{8, 0}, {8, 64}}),
            "test: tensor 'b' starts at offset 64 of the data, but 32 is "
            "expected, behind tensor 'a'" +
                wrong);
  // One inside another, and in another order than their entries.
  EXPECT_EQ(error({{9, 0}, {8, 32}}),
            "test: tensor 'b' starts at offset 32 of the data, but 64 is "
            "expected, behind tensor 'a'" +
                wrong);
  EXPECT_EQ(error({{8, 32}, {8, 0}}),
            "test: tensor 'a' starts at offset 32 of the data, but 0 is "
            "expected" +
                wrong);
  EXPECT_EQ(error({{8, 0}, {8, 32}, {0, 32}}),
            "test: tensor 'c' starts at offset 32 of the data, but 64 is "
            "expected, behind tensor 'b'" +
                wrong);
}

/// Where a tensor of an unknown type ends is unknown.
TEST(Gguf, TensorsBehindOneOfAnUnknownType) {
  auto error = [](uint64_t offset) {
    return errorOf(GgufBuilder()
                       .tensorEntry("a", {8}, kF32, 0)
                       .tensorEntry("b", {8}, 999, 32)
                       .tensorEntry("c", {8}, kF32, offset)
                       .append(std::string(256, '\0')));
  };
  EXPECT_EQ(error(32), "");
  EXPECT_EQ(error(192), "");
  EXPECT_EQ(error(0), "test: tensor 'c' starts at offset 0 of the data, but at "
                      "least 32 is expected, behind tensor 'b': a type, a "
                      "shape or an offset is wrong");
}

/// Every tensor of a sound file, said to be of every other type: what gives it
/// another size is an error, or shows in what follows the last one.
TEST(Gguf, WrongTypesShowBySizes) {
  std::ifstream stream(KF_SOURCE_DIR
                       "/models/kf-stories-gguf/kf-stories-Q4_0.gguf",
                       std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  auto sound = parse(bytes);
  ASSERT_TRUE(sound.ok()) << sound.message();
  EXPECT_TRUE((*sound)->rest().empty());
  auto padded = [](uint64_t size) { return (size + 31) / 32 * 32; };
  for (const GgufTensor &tensor : (*sound)->tensors()) {
    const size_t at = static_cast<size_t>(tensor.name.data() - bytes.data()) +
                      tensor.name.size() + 4 + 8 * tensor.shape.size();
    const bool last = &tensor == &(*sound)->tensors().back();
    const int64_t elements = *checkedElementCount(tensor.shape);
    for (const GgmlType &type : kGgmlTypes) {
      const uint64_t size =
          static_cast<uint64_t>(elements / type.elements * type.bytes);
      const bool whole = tensor.shape.back() % type.elements == 0;
      bytes.replace(at, 4, raw(type.number));
      auto other = parse(bytes);
      EXPECT_EQ(other.ok(), whole && (padded(size) == padded(tensor.bytes) ||
                                      (last && size < tensor.bytes)))
          << tensor.name << " as " << type.name;
      if (other.ok())
        EXPECT_EQ((*other)->rest().size(), padded(tensor.bytes) - padded(size));
    }
    bytes.replace(at, 4, raw(tensor.typeNumber));
  }
}

TEST(Gguf, WhatFollowsTheTensors) {
  GgufBuilder builder;
  builder.tensor("a", {3}, DataType::F32);
  auto restOf = [&](size_t bytes) {
    GgufBuilder more = builder;
    const std::string image = more.append(std::string(bytes, 'x')).bytes();
    auto file = parse(image);
    EXPECT_TRUE(file.ok()) << file.message();
    return file.ok() ? (*file)->rest().size() : 0;
  };
  EXPECT_EQ(restOf(0), 0u);
  EXPECT_EQ(restOf(20), 0u); // the padding
  EXPECT_EQ(restOf(21), 1u);
  EXPECT_EQ(restOf(10000), 9980u);
}

TEST(Gguf, DuplicateTensors) {
  EXPECT_EQ(errorOf(GgufBuilder().tensor("t", {8}).tensor("t", {8})),
            "test: tensor 't' is there twice");
}

} // namespace
