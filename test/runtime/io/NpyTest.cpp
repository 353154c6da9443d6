//===- NpyTest.cpp - NumPy files and tensor literals ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Npy.h"

#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace kf;
using kf::test::TempFolder;

namespace {

void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "in: " << text;
}

/// A .npy file of this version, dictionary and payload.
std::string npy(const std::string &dict, const std::string &payload,
                char version = 1) {
  std::string result = "\x93NUMPY";
  result += version;
  result += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    result += static_cast<char>(dict.size() >> (8 * i));
  return result + dict + payload;
}

Result<HostTensor> parse(const std::string &bytes) {
  return parseNpy(std::as_bytes(std::span(bytes)));
}

template <typename T> std::vector<T> valuesOf(const HostTensor &tensor) {
  return std::vector<T>(tensor.data<T>(),
                        tensor.data<T>() + tensor.elementCount());
}

template <typename T> void expectRoundTrip(DataType type, T low, T high) {
  auto tensor = HostTensor::zeros(type, {2, 1, 3});
  ASSERT_TRUE(tensor.ok());
  tensor->data<T>()[0] = low;
  tensor->data<T>()[5] = high;
  auto bytes = formatNpy(*tensor);
  ASSERT_TRUE(bytes.ok()) << bytes.message();
  EXPECT_EQ((bytes->size() - tensor->bytes.size()) % 64, 0u);
  auto back = parse(*bytes);
  ASSERT_TRUE(back.ok()) << back.message();
  EXPECT_EQ(back->type, type);
  EXPECT_EQ(back->shape, tensor->shape);
  EXPECT_EQ(back->bytes, tensor->bytes);
}

TEST(Npy, RoundTripsEveryType) {
  expectRoundTrip<float>(DataType::F32, -1.5f, 1e30f);
  expectRoundTrip<double>(DataType::F64, -1.5, 1e300);
  expectRoundTrip<uint16_t>(DataType::F16, 0x3c00, 0x7bff);
  expectRoundTrip<int8_t>(DataType::I8, -128, 127);
  expectRoundTrip<uint8_t>(DataType::U8, 0, 255);
  expectRoundTrip<int16_t>(DataType::I16, -32768, 32767);
  expectRoundTrip<int32_t>(DataType::I32, INT32_MIN, INT32_MAX);
  expectRoundTrip<int64_t>(DataType::I64, INT64_MIN, INT64_MAX);
  expectRoundTrip<uint8_t>(DataType::I1, 1, 0);
  EXPECT_EQ(formatNpy(*HostTensor::zeros(DataType::BF16, {1})).message(),
            "a .npy file cannot hold bf16 elements; convert them to f32");
}

TEST(Npy, ReadsWhatNumPyWrites) {
  // numpy.save of numpy.array([1, -2], dtype='<i2'), byte for byte.
  std::string dict =
      "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }";
  dict += std::string(117 - dict.size(), ' ') + "\n";
  std::string payload("\x01\x00\xfe\xff", 4);
  for (char version : {1, 2, 3}) {
    auto tensor = parse(npy(dict, payload, version));
    ASSERT_TRUE(tensor.ok()) << tensor.message();
    EXPECT_EQ(tensor->type, DataType::I16);
    EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2}));
    EXPECT_EQ(valuesOf<int16_t>(*tensor), (std::vector<int16_t>{1, -2}));
  }
  auto ours = HostTensor::zeros(DataType::I16, {2});
  ASSERT_TRUE(ours.ok());
  ours->data<int16_t>()[0] = 1;
  ours->data<int16_t>()[1] = -2;
  EXPECT_EQ(*formatNpy(*ours), npy(dict, payload));

  auto scalar = parse(npy(
      "{\"shape\": (), \"descr\": \"<i1\", \"fortran_order\": False}", "x"));
  ASSERT_TRUE(scalar.ok()) << scalar.message();
  EXPECT_TRUE(scalar->shape.empty());
}

TEST(Npy, RejectsWhatItCannotRead) {
  auto error = [](const std::string &descr, const std::string &order,
                  const std::string &shape, const std::string &payload) {
    return parse(npy("{'descr': '" + descr + "', 'fortran_order': " + order +
                         ", 'shape': " + shape + ", }",
                     payload))
        .message();
  };
  EXPECT_EQ(error("<f4", "False", "(1,)", "1234"), "");
  expectContains(error(">f4", "False", "(1,)", "1234"), "type '>f4'");
  expectContains(error("<c8", "False", "(1,)", "12345678"), "type '<c8'");
  expectContains(error("|O", "False", "(1,)", "1234"), "type '|O'");
  expectContains(error("<f4", "True", "(1, 1)", "1234"), "Fortran order");
  expectContains(error("<f4", "False", "(1,)", "123"), "needs 4 bytes");
  expectContains(error("<f4", "False", "(1,)", "12345"), "has 5");
  expectContains(error("|b1", "False", "(1,)", "\x02"), "neither 0 nor 1");
  expectContains(error("<f4", "Maybe", "(1,)", "1234"), "malformed");
  for (std::string shape : {"(-1,)", "(1", "1", "(1 2)", "(,)", "(x,)"})
    expectContains(error("<f4", "False", shape, "1234"), "malformed");
  for (std::string shape :
       {"(4611686018427387904, 4)", "(9223372036854775807,)"})
    EXPECT_NE(error("<f4", "False", shape, ""), "");
  expectContains(error("<f4", "False", "(99999999999999999999,)", ""),
                 "malformed");
  expectContains(parse("").message(), "not a .npy file");
  expectContains(parse(npy("{}", "", 9)).message(), "format 9");
  expectContains(parse(npy("{}", "")).message(), "malformed");
  expectContains(parse(npy("{'descr': [('a', '<f4')]}", "")).message(),
                 "structured");
  std::string whole =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "1234");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse(whole.substr(0, size)).ok()) << size;
}

TEST(Npy, ReadsAndWritesFiles) {
  TempFolder temp;
  auto tensor = parseTensorLiteral("2x2xf32=1,2,3,4");
  ASSERT_TRUE(tensor.ok());
  ASSERT_TRUE(writeNpy(temp.path("x.npy"), *tensor).ok());
  auto back = parseTensorLiteral("@" + temp.path("x.npy"));
  ASSERT_TRUE(back.ok()) << back.message();
  EXPECT_EQ(back->bytes, tensor->bytes);
  expectContains(readNpy(temp.path("y.npy")).message(), "cannot open");
  expectContains(readNpy(temp.write("z.npy", "zz")).message(),
                 "z.npy: not a .npy file");
  expectContains(writeNpy(temp.path("no/x.npy"), *tensor).message(),
                 "cannot write");
}

TEST(TensorLiteral, ReadsValues) {
  auto expect = [](const std::string &text, std::vector<int64_t> shape,
                   std::vector<float> values) {
    auto tensor = parseTensorLiteral(text);
    ASSERT_TRUE(tensor.ok()) << tensor.message();
    EXPECT_EQ(tensor->shape, shape) << text;
    EXPECT_EQ(valuesOf<float>(*tensor), values) << text;
  };
  expect("2x3xf32=1,2,3,4,5,6", {2, 3}, {1, 2, 3, 4, 5, 6});
  expect("2x2xf32=[1 2][3 4]", {2, 2}, {1, 2, 3, 4});
  expect("2x2xf32=[[1, 2], [3, -4e-1]]", {2, 2}, {1, 2, 3, -0.4f});
  expect("f32=1.5", {}, {1.5f});
  expect("3xf32=+7", {3}, {7, 7, 7});
  expect("2xf32", {2}, {0, 0});
  expect("0x4xf32=", {0, 4}, {});
  expect("2xf32=inf -inf", {2},
         {std::numeric_limits<float>::infinity(),
          -std::numeric_limits<float>::infinity()});
  EXPECT_TRUE(std::isnan(parseTensorLiteral("f32=nan")->data<float>()[0]));
}

TEST(TensorLiteral, ReadsEveryType) {
  EXPECT_EQ(parseTensorLiteral("f64=0.1")->data<double>()[0], 0.1);
  EXPECT_EQ(parseTensorLiteral("f16=1")->data<uint16_t>()[0], 0x3c00);
  EXPECT_EQ(parseTensorLiteral("bf16=1")->data<uint16_t>()[0], 0x3f80);
  EXPECT_EQ(parseTensorLiteral("i8=-128")->data<int8_t>()[0], -128);
  EXPECT_EQ(parseTensorLiteral("ui8=255")->data<uint8_t>()[0], 255);
  EXPECT_EQ(parseTensorLiteral("i16=-1")->data<int16_t>()[0], -1);
  EXPECT_EQ(parseTensorLiteral("i32=7")->data<int32_t>()[0], 7);
  EXPECT_EQ(parseTensorLiteral("i64=-9223372036854775808")->data<int64_t>()[0],
            INT64_MIN);
  EXPECT_EQ(valuesOf<uint8_t>(*parseTensorLiteral("4xi1=1,0,true,false")),
            (std::vector<uint8_t>{1, 0, 1, 0}));
}

TEST(TensorLiteral, ReadsRawFiles) {
  TempFolder temp;
  std::string path = temp.write("x.bin", std::string("\1\0\0\0\2\0\0\0", 8));
  auto tensor = parseTensorLiteral("2xi32=@" + path);
  ASSERT_TRUE(tensor.ok()) << tensor.message();
  EXPECT_EQ(valuesOf<int32_t>(*tensor), (std::vector<int32_t>{1, 2}));
  expectContains(parseTensorLiteral("3xi32=@" + path).message(),
                 "has 8 bytes, the tensor 12");
  expectContains(parseTensorLiteral("3xi32=@none").message(), "cannot open");
}

TEST(TensorLiteral, RejectsMistakes) {
  auto error = [](const std::string &text) {
    std::string message = parseTensorLiteral(text).message();
    expectContains(message, "tensor '");
    return message;
  };
  expectContains(error("2xf32=1,2,3"), "3 values for a tensor of 2");
  expectContains(error("2xf32="), "0 values for a tensor of 2");
  expectContains(error("2xf32=1,a"), "'a' is not a value of type f32");
  expectContains(error("i8=128"), "'128' is not a value of type i8");
  expectContains(error("ui8=-1"), "'-1' is not a value of type ui8");
  expectContains(error("i1=2"), "'2' is not a value of type i1");
  expectContains(error("i32=1.5"), "'1.5' is not");
  expectContains(error("2xf32=[1,2"), "'[' without ']'");
  expectContains(error("2xf32=1,2]"), "']' without '['");
  expectContains(error("-1xf32"), "dimension '-1'");
  expectContains(error("?xf32"), "dimension '?'");
  expectContains(error("xf32"), "dimension ''");
  error("2xf33");
  error("");
  error("4611686018427387904x4xf32");
  expectContains(error("1000000000000000xf32"), "exceeds this machine");
}

} // namespace
