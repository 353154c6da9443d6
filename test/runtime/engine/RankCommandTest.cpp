//===- RankCommandTest.cpp - What ranks tell one another ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/RankCommand.h"

#include "test/runtime/StatusAssertions.h"

#include <gtest/gtest.h>

#include <random>

using namespace kf;
using namespace kf::test;

namespace {

constexpr StepShape kBody = {StepPart::Body, 512},
                    kChoice = {StepPart::Choose, 16};

/// A message with a command of each kind.
std::string allCommands() {
  static const std::string bytes = "some bytes";
  StartProgram start{kBody, {}};
  for (size_t i = 0; i < start.scalars.size(); ++i)
    start.scalars[i] = i % 2 ? -static_cast<int64_t>(i) : INT64_MAX;
  std::string message;
  for (const RankCommand &command : std::initializer_list<RankCommand>{
           LoadProgram{kBody, std::string("a\0b", 3)}, OpenCache{17, 2048, 999},
           BindProgram{{StepPart::Embed, 1}},
           WriteInput{kChoice, 3, uint64_t(1) << 40,
                      std::as_bytes(std::span(bytes))},
           CopyInput{kBody, 0, 4, kChoice, 8, 12},
           CopyPages{{{1, 2}, {-3, INT32_MAX}}}, start, BeginProfile(),
           ShowProfile()})
    encode(command, message);
  return message;
}

TEST(RankCommand, ComesAsItWasSent) {
  const std::string message = allCommands();
  Result<std::vector<RankCommand>> decoded = decodeCommands(message);
  ASSERT_TRUE(decoded.ok()) << decoded.message();
  ASSERT_EQ(decoded->size(), std::variant_size_v<RankCommand>);
  for (size_t i = 0; i < decoded->size(); ++i)
    EXPECT_EQ((*decoded)[i].index(), i);
  EXPECT_EQ(std::get<LoadProgram>((*decoded)[0]).executable,
            std::string("a\0b", 3));
  EXPECT_EQ(std::get<OpenCache>((*decoded)[1]).mostRows, 2048);
  EXPECT_EQ(std::get<OpenCache>((*decoded)[1]).positions, 999);
  EXPECT_EQ(std::get<BindProgram>((*decoded)[2]).shape,
            (StepShape{StepPart::Embed, 1}));
  const auto &write = std::get<WriteInput>((*decoded)[3]);
  EXPECT_EQ(write.offset, uint64_t(1) << 40);
  EXPECT_EQ(std::string(reinterpret_cast<const char *>(write.bytes.data()),
                        write.bytes.size()),
            "some bytes");
  const auto &copy = std::get<CopyInput>((*decoded)[4]);
  EXPECT_EQ(copy.from, kChoice);
  EXPECT_EQ(copy.outputOffset, 8u);
  EXPECT_EQ(copy.bytes, 12u);
  EXPECT_EQ(std::get<CopyPages>((*decoded)[5]).copies,
            (std::vector<PageCopy>{{1, 2}, {-3, INT32_MAX}}));
  EXPECT_EQ(std::get<StartProgram>((*decoded)[6]).scalars[0], INT64_MAX);
  EXPECT_EQ(std::get<StartProgram>((*decoded)[6]).scalars[1], -1);
  // What was decoded is encoded as it was.
  std::string again;
  for (const RankCommand &command : *decoded)
    encode(command, again);
  EXPECT_EQ(again, message);
}

TEST(RankCommand, RefusesBytesThatAreNone) {
  const std::string message = allCommands();
  size_t whole = 0; // beginnings that end with a command
  for (size_t size = 0; size < message.size(); ++size) {
    const auto decoded =
        decodeCommands(std::string_view(message).substr(0, size));
    whole += decoded.ok();
    if (!decoded.ok())
      EXPECT_EQ(decoded.message(),
                "a message of another rank that is no list of commands");
  }
  EXPECT_EQ(whole, std::variant_size_v<RankCommand>);
  // A size that no memory holds.
  std::string huge("\0\0", 2);
  huge.append(16, '\xff');
  EXPECT_FALSE(decodeCommands(huge).ok());
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string changed = message;
    for (int j = 0; j < 3; ++j)
      changed[random() % changed.size()] = static_cast<char>(random());
    (void)decodeCommands(changed);
    (void)decodeAnswer(changed);
  }
}

TEST(RankAnswer, ComesAsItWasSent) {
  for (const RankAnswer &answer :
       {RankAnswer{Status(), "a key"},
        RankAnswer{Status::error("no room", StatusCode::OutOfMemory), ""},
        RankAnswer{Status::cancelled(), ""}}) {
    const std::string message = encode(answer);
    Result<RankAnswer> decoded = decodeAnswer(message);
    ASSERT_TRUE(decoded.ok()) << decoded.message();
    EXPECT_EQ(decoded->status.message(), answer.status.message());
    EXPECT_EQ(decoded->status.code(), answer.status.code());
    EXPECT_EQ(decoded->text, answer.text);
    for (size_t size = 0; size < message.size(); ++size)
      EXPECT_TRUE(failsWith(
          decodeAnswer(std::string_view(message).substr(0, size)).status(),
          "is no answer"));
    EXPECT_FALSE(decodeAnswer(message + "x").ok());
  }
  std::string unknown = encode(RankAnswer());
  unknown[0] = 99;
  EXPECT_FALSE(decodeAnswer(unknown).ok());
}

} // namespace
