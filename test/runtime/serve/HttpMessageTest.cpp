//===- HttpMessageTest.cpp - Heads, paths, and who may ask ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/HttpMessage.h"

#include "runtime/serve/HttpAccess.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

TEST(HttpMessage, Heads) {
  EXPECT_EQ(
      headText({.headers = {{"A", "b\r\nC: d"}}}, HttpFraming::Length, 7, true),
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
      "A: b  C: d\r\nContent-Length: 7\r\nConnection: keep-alive\r\n"
      "\r\n");
  EXPECT_EQ(headText({.status = 404, .contentType = "text/event-stream"},
                     HttpFraming::Chunked, 0, false),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/event-stream\r\n"
            "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(headText({.status = 204, .contentType = ""}, HttpFraming::Length, 0,
                     true),
            "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(chunkText("0123456789abcdef"), "10\r\n0123456789abcdef\r\n");
}

TEST(HttpMessage, Paths) {
  EXPECT_EQ(pathOf("/v1/models?a=/b"), "/v1/models");
  EXPECT_EQ(pathOf("/a%20b%2Fc#d"), "/a b/c");
  EXPECT_EQ(pathOf("http://host:1/a?b"), "/a");
  for (const char *wrong : {"", "a", "*", "/%", "/%1", "/%g1", "/%1g", "/%00",
                            "http://host", "ftp://host/a", "/%+1", "/%-1"})
    EXPECT_EQ(pathOf(wrong), std::nullopt) << wrong;
  EXPECT_EQ(pathOf(std::string_view("/a\0b", 4)), std::nullopt);
}

HttpRequest with(const char *name, const std::string &value) {
  HttpRequest request;
  request.headers["host"] = "127.0.0.1:80";
  request.headers[name] = value;
  return request;
}

TEST(HttpAccess, Keys) {
  const HttpAccess access{.keys = {"abc", "d"}};
  for (const char *key : {"abc", "d"}) {
    EXPECT_TRUE(access.isKey(key));
    EXPECT_TRUE(
        access.hasKey(with("authorization", "bEARER " + std::string(key))));
    EXPECT_TRUE(access.hasKey(with("x-api-key", key)));
  }
  for (const char *key : {"", "ab", "abcd", "abd", "ABC", "dd", "a"}) {
    EXPECT_FALSE(access.isKey(key)) << key;
    EXPECT_FALSE(
        access.hasKey(with("authorization", "Bearer " + std::string(key))));
  }
  EXPECT_FALSE(access.hasKey(with("authorization", "Basic abc")));
  EXPECT_FALSE(access.hasKey(HttpRequest()));
  EXPECT_TRUE(HttpAccess().hasKey(HttpRequest()));
}

/// Of a head that cannot be parsed, what is sound of its headers is known.
TEST(HttpMessage, HeaderLines) {
  HttpRequest request;
  request.addHeaderLines(
      "GET http://a HTTP/1.1\r\nOrigin: \t b \r\nX : y\r\n"
      ": z\r\nnothing\r\nORIGIN:c\r\nEmpty:\r\na\rb: c\r\n\r\nIn: body\r\n");
  EXPECT_EQ(request.headers,
            (decltype(request.headers){{"origin", "b, c"}, {"empty", ""}}));
  request.addHeaderLines("Whole: a\r\nHalf: b");
  EXPECT_EQ(request.header("whole"), "a");
  EXPECT_EQ(request.header("half"), "");
}

TEST(HttpAccess, Hosts) {
  const HttpAccess access{.hosts = {"Models.lan"}};
  for (const char *host : {"127.0.0.1", "192.168.1.2:80", "[::1]", "[::1]:80",
                           "localhost:1", "LocalHost", "models.LAN:8080", ""})
    EXPECT_TRUE(access.isHostAllowed(with("host", host))) << host;
  for (const char *host : {"evil.example", "localhost.evil.example",
                           "127.0.0.1.evil.example", "models.lan.evil", "a:1"})
    EXPECT_FALSE(access.isHostAllowed(with("host", host))) << host;
  EXPECT_TRUE(HttpAccess{.keys = {"k"}}.isHostAllowed(with("host", "a")));
}

TEST(HttpAccess, Origins) {
  const HttpAccess access{.origins = {"https://a.example"}};
  EXPECT_TRUE(access.isOriginAllowed(HttpRequest()));
  for (const char *origin : {"https://a.example", "http://127.0.0.1:80"})
    EXPECT_TRUE(access.isOriginAllowed(with("origin", origin))) << origin;
  for (const char *origin : {"null", "http://a.example", "https://a.example:1",
                             "http://127.0.0.1", "https://a.example.evil"})
    EXPECT_FALSE(access.isOriginAllowed(with("origin", origin))) << origin;
  EXPECT_EQ(access.corsHeaders(with("origin", "https://a.example"))[0].second,
            "https://a.example");
  EXPECT_TRUE(
      access.corsHeaders(with("origin", "http://127.0.0.1:80")).empty());
  EXPECT_TRUE(access.corsHeaders(HttpRequest()).empty());
  const HttpAccess any{.origins = {"*"}};
  EXPECT_TRUE(any.isOriginAllowed(with("origin", "null")));
  EXPECT_EQ(any.corsHeaders(with("origin", "null"))[0].second, "*");
}

} // namespace
