//===- ConformanceTest.cpp - The same as jinja2 and transformers ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// constructs.json and conversations.json hold what jinja2 and transformers made
// of templates; README.md says how they came to be.
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/ChatTemplate.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

using namespace kf;

namespace {

using Json = nlohmann::ordered_json;

const std::string kFolder = KF_SOURCE_DIR "/test/runtime/chat/";

std::string readFile(const std::string &name) {
  std::ifstream file(kFolder + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The moment at which the expectations were made.
std::tm testTime() {
  std::tm time = {};
  strptime("2024-07-26 09:05:03", "%Y-%m-%d %H:%M:%S", &time);
  return time;
}

Result<std::string> render(const std::string &source, const Json &variables) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(source);
  if (!parsed.ok())
    return parsed.status();
  return parsed->render(variables, testTime());
}

/// `expected`: a text, {"raised": its text} or {"error": ...}.
void check(const Result<std::string> &result, const Json &expected,
           const std::string &where) {
  if (expected.is_string()) {
    EXPECT_TRUE(result.ok()) << where << "\n  " << result.message();
    if (result.ok())
      EXPECT_EQ(*result, expected.get<std::string>()) << where;
  } else if (expected.contains("raised")) {
    EXPECT_FALSE(result.ok()) << where;
    EXPECT_EQ(result.message(), expected["raised"].get<std::string>()) << where;
  } else {
    EXPECT_FALSE(result.ok())
        << where << "\n  gives '" << (result.ok() ? *result : "") << "' not "
        << expected.dump();
    if (!result.ok())
      EXPECT_TRUE(result.message().starts_with("chat template, line "))
          << where << "\n  " << result.message();
  }
}

TEST(Conformance, Constructs) {
  const Json data = Json::parse(readFile("constructs.json"));
  ASSERT_GT(data["cases"].size(), 400u);
  for (const Json &item : data["cases"]) {
    const auto source = item[0].get<std::string>();
    check(render(source, data["context"]), item[1], source);
  }
}

TEST(Conformance, Conversations) {
  const Json data = Json::parse(readFile("conversations.json"));
  ASSERT_GT(data["cases"].size(), 100u);
  std::map<std::string, std::string> templates;
  for (const Json &item : data["cases"]) {
    const auto name = item["template"].get<std::string>();
    if (!templates.contains(name))
      templates[name] = readFile("templates/" + name + ".jinja");
    Json variables = data["variables"];
    variables.update(item["variables"]);
    variables["messages"] =
        data["conversations"][item["conversation"].get<std::string>()];
    check(render(templates[name], variables), item["expected"],
          name + ", " + item["conversation"].get<std::string>() + ", " +
              item["variables"].dump());
  }
}

} // namespace
