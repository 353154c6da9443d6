//===- RemoteServerTest.cpp - Addresses of servers ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/client/RemoteServer.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

TEST(ServerAddress, Sound) {
  const auto parse = [](std::string_view url) {
    Result<ServerAddress> address = ServerAddress::parse(url);
    EXPECT_TRUE(address.ok()) << address.message();
    return address.ok() ? address.take() : ServerAddress();
  };
  EXPECT_EQ(parse("http://127.0.0.1:8080").base, "http://127.0.0.1:8080/v1");
  EXPECT_EQ(parse("http://a/").base, "http://a/v1");
  EXPECT_EQ(parse("https://a.example/api/v1/").base,
            "https://a.example/api/v1");
  EXPECT_TRUE(parse("https://a").isEncrypted);
  EXPECT_FALSE(parse("http://a").isEncrypted);
  for (const char *local :
       {"http://localhost", "http://127.0.0.1:1", "http://[::1]:8080/x"})
    EXPECT_TRUE(parse(local).isLocal) << local;
  for (const char *other : {"http://localhost.example", "http://10.0.0.1",
                            "http://[::2]", "http://a/localhost"})
    EXPECT_FALSE(parse(other).isLocal) << other;
}

TEST(ServerAddress, Wrong) {
  for (const char *wrong :
       {"", "http", "http:", "http://", "http:///a", "https://", "ftp://a",
        "HTTP://a", "a:80", "http://a b", "http://a\n", "http://a?x",
        "http://a/#x", "http://\xc3\xa4", "http://u@a",
        "http://u:secret@a/b"}) {
    const Result<ServerAddress> address = ServerAddress::parse(wrong);
    EXPECT_FALSE(address.ok()) << wrong;
    EXPECT_EQ(address.message().find("secret"), std::string::npos);
  }
  EXPECT_FALSE(ServerAddress::parse("http://" + std::string(5000, 'a')).ok());
}

} // namespace
