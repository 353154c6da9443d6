//===- TuningDatabaseTest.cpp - Measured schedules, kept ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/TuningDatabase.h"

#include "runtime/program/ExecutableCache.h"

#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <thread>

#include <sys/stat.h>

using namespace kf;
using kf::test::TempFolder;
using nlohmann::json;

namespace {

/// The key's kernel of `name`.
std::string kernelOf(const std::string &name) { return hashKey({name}); }

TuningEntry entryOf(const std::string &op, double seconds = 1.25e-4,
                    const std::string &schedule = "#kf.vector<tile = 8>") {
  TuningEntry entry;
  entry.key = {kernelOf(op),
               512,
               {"#kf.cpu_target<>", "4b1f", "AMD EPYC; 2 threads",
                "kf-1 llvm-22.1.8 abi-9"}};
  entry.subject = {op, {{-1, 2048}, {5632, 2048}}, {"f32", "q4_0"}};
  entry.schedule = schedule;
  entry.seconds = seconds;
  entry.defaultSeconds = 2 * seconds;
  entry.error = 1e-6;
  entry.date = "2026-01-31";
  entry.tried = {{"#kf.vector<tile = 4>", 1e-4, 0, 0.5, "the result is wrong"},
                 {schedule, 2e-4, seconds, 1e-6, ""}};
  return entry;
}

TuningDatabase databaseOf(const std::vector<TuningEntry> &entries) {
  TuningDatabase database;
  for (const TuningEntry &entry : entries)
    EXPECT_TRUE(database.insert(entry).ok());
  return database;
}

std::string textOf(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A sound file as JSON.
json fileJson() {
  return json::parse(databaseOf({entryOf("matmul")}).serialize());
}

std::string errorOf(const std::string &text) {
  auto database = TuningDatabase::parse(text, "db");
  EXPECT_FALSE(database.ok()) << text;
  EXPECT_EQ(database.message().find('\n'), std::string::npos);
  return database.message();
}

void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "in: " << text;
}

TEST(TuningDatabase, FindsWhatWasInserted) {
  TuningDatabase database = databaseOf({entryOf("matmul"), entryOf("rms")});
  EXPECT_EQ(database.size(), 2u);
  const TuningEntry *found = database.find(entryOf("matmul").key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->schedule, "#kf.vector<tile = 8>");
  EXPECT_EQ(found->seconds, 1.25e-4);
  // Every part of the key counts.
  for (auto change : std::vector<void (*)(TuningKey &)>{
           [](TuningKey &key) { key.kernel = kernelOf("x"); },
           [](TuningKey &key) { key.rows = 16; },
           [](TuningKey &key) { key.scope.target = "#kf.vulkan_target<>"; },
           [](TuningKey &key) { key.scope.identity = ""; },
           [](TuningKey &key) { key.scope.device = "x"; },
           [](TuningKey &key) { key.scope.compiler = "23"; }}) {
    TuningKey key = entryOf("matmul").key;
    change(key);
    EXPECT_FALSE(database.find(key));
  }
  // The last measurement holds, faster or not.
  ASSERT_TRUE(
      database.insert(entryOf("matmul", 2, "#kf.vector<tile = 4>")).ok());
  EXPECT_EQ(database.size(), 2u);
  EXPECT_EQ(database.find(entryOf("matmul").key)->seconds, 2);
}

TEST(TuningDatabase, DigestsTheSchedulesOfKeys) {
  const TuningScope scope = entryOf("a").key.scope;
  const std::vector<TuningKey> keys = {entryOf("a").key, entryOf("b").key};
  EXPECT_EQ(databaseOf({}).digest(keys), "");
  TuningEntry other = entryOf("b");
  other.key.scope.compiler = "kf-2";
  TuningEntry fewer = entryOf("a");
  fewer.key.rows = 16;
  EXPECT_EQ(databaseOf({other, fewer, entryOf("c")}).digest(keys), "");
  const std::string one = databaseOf({entryOf("a")}).digest(keys);
  EXPECT_EQ(one.size(), 32u);
  // Neither what is for others counts nor how long something took.
  EXPECT_EQ(
      databaseOf({entryOf("a", 3), other, fewer, entryOf("c")}).digest(keys),
      one);
  const std::string schedule = "#kf.vector<tile = 2>";
  EXPECT_NE(databaseOf({entryOf("a", 1, schedule)}).digest(keys), one);
  EXPECT_NE(databaseOf({entryOf("b")}).digest(keys), one);
  EXPECT_NE(databaseOf({entryOf("a"), entryOf("b")}).digest(keys), one);
  EXPECT_EQ(databaseOf({entryOf("a"), fewer, other}).scopes(),
            (std::vector<TuningScope>{scope, other.key.scope}));
}

TEST(TuningDatabase, TextGoesThereAndBack) {
  TuningEntry plain = entryOf("odd \"name\" \\ ", 1.0 / 3);
  plain.key.scope.identity.clear();
  plain.subject.shapes = {{}};
  plain.subject.types = {"f32"};
  plain.defaultSeconds = plain.error = 0;
  plain.date.clear();
  plain.tried.clear();
  TuningDatabase database = databaseOf({entryOf("matmul"), plain});
  const std::string text = database.serialize();
  auto again = TuningDatabase::parse(text, "db");
  ASSERT_TRUE(again.ok()) << again.message();
  EXPECT_EQ(again->serialize(), text);
  ASSERT_TRUE(again->find(plain.key));
  EXPECT_EQ(again->find(plain.key)->seconds, 1.0 / 3);
  EXPECT_EQ(again->list().size(), 2u);
  const TuningEntry whole = entryOf("matmul");
  ASSERT_TRUE(again->find(whole.key));
  EXPECT_EQ(again->find(whole.key)->subject, whole.subject);
  EXPECT_EQ(again->find(whole.key)->defaultSeconds, whole.defaultSeconds);
  EXPECT_EQ(again->find(whole.key)->error, whole.error);
  EXPECT_EQ(again->find(whole.key)->tried, whole.tried);
  EXPECT_EQ(TuningDatabase().serialize(),
            "{\"version\": 2, \"entries\": [\n]}\n");
}

TEST(TuningDatabase, SavesInOneStepAndMerges) {
  TempFolder temp;
  const std::string path = temp.path("deep/er/tuning.json");
  auto none = TuningDatabase::load(path);
  ASSERT_TRUE(none.ok()) << none.message();
  EXPECT_EQ(none->size(), 0u);

  ASSERT_TRUE(databaseOf({entryOf("a", 1), entryOf("b", 1)}).save(path).ok());
  auto mine = TuningDatabase::load(path);
  ASSERT_TRUE(mine.ok()) << mine.message();
  EXPECT_EQ(mine->size(), 2u);
  // Somebody else measures a and c meanwhile; b is measured here.
  ASSERT_TRUE(databaseOf({entryOf("a", 3), entryOf("c", 3)}).save(path).ok());
  ASSERT_TRUE(mine->insert(entryOf("b", 2)).ok());
  Status saved = mine->save(path);
  ASSERT_TRUE(saved.ok()) << saved.message();
  auto merged = TuningDatabase::load(path);
  ASSERT_TRUE(merged.ok()) << merged.message();
  EXPECT_EQ(merged->size(), 3u);
  EXPECT_EQ(merged->find(entryOf("a").key)->seconds, 3);
  EXPECT_EQ(merged->find(entryOf("b").key)->seconds, 2);
  EXPECT_EQ(merged->find(entryOf("c").key)->seconds, 3);
  // The file and its lock.
  const std::filesystem::directory_iterator first(
      std::filesystem::path(path).parent_path());
  EXPECT_EQ(std::distance(first, {}), 2);
}

TEST(TuningDatabase, OnlyTheDefaultFolderIsPrivate) {
  TempFolder temp;
  const mode_t mask = umask(022);
  const char *before = std::getenv("XDG_CACHE_HOME");
  const std::optional<std::string> kept =
      before ? std::optional<std::string>(before) : std::nullopt;
  setenv("XDG_CACHE_HOME", temp.path("cache").c_str(), 1);
  const std::string usual = TuningDatabase::defaultPath().take();
  const std::string shared = temp.path("deep/er/tuning.json");
  for (const std::string &path : {usual, shared}) {
    const Status saved = databaseOf({entryOf("a")}).save(path);
    EXPECT_TRUE(saved.ok()) << saved.message();
  }
  if (kept)
    setenv("XDG_CACHE_HOME", kept->c_str(), 1);
  else
    unsetenv("XDG_CACHE_HOME");
  umask(mask);
  auto modeOf = [](const std::filesystem::path &path) {
    return static_cast<unsigned>(std::filesystem::status(path).permissions());
  };
  EXPECT_EQ(modeOf(std::filesystem::path(usual).parent_path()), 0700u);
  EXPECT_EQ(modeOf(temp.path("deep")), 0755u);
  EXPECT_EQ(modeOf(temp.path("deep/er")), 0755u);
  EXPECT_EQ(modeOf(shared), 0644u);
}

TEST(TuningDatabase, WritersWaitForEachOther) {
  TempFolder temp;
  const std::string path = temp.path("tuning.json");
  constexpr int writers = 4, rounds = 10;
  std::vector<std::thread> threads;
  for (int t = 0; t < writers; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        std::string op = std::to_string(t) + "." + std::to_string(i);
        EXPECT_TRUE(databaseOf({entryOf(op)}).save(path).ok());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  auto database = TuningDatabase::load(path);
  ASSERT_TRUE(database.ok()) << database.message();
  EXPECT_EQ(database->size(), size_t(writers * rounds));
}

TEST(TuningDatabase, LeavesDamagedFilesAlone) {
  TempFolder temp;
  const std::string path = temp.write("tuning.json", "{\"version\": 2");
  EXPECT_FALSE(TuningDatabase::load(path).ok());
  Status saved = databaseOf({entryOf("a")}).save(path);
  expectContains(saved.message(), path + ": not valid JSON");
  EXPECT_EQ(textOf(path), "{\"version\": 2");
  expectContains(TuningDatabase::load(temp.path()).message(), "Is a directory");
  expectContains(databaseOf({}).save(path + "/x/tuning.json").message(),
                 "cannot make");
}

TEST(TuningDatabase, RefusesEntries) {
  const double infinite = std::numeric_limits<double>::infinity();
  auto errorAfter = [](auto change) {
    TuningEntry entry = entryOf("matmul");
    change(entry);
    TuningDatabase database;
    Status status = database.insert(entry);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(database.size(), 0u);
    return status.message();
  };
  for (const char *kernel : {"", "x", "6C62272E07BB014262B821756295C58D"})
    expectContains(errorAfter([=](TuningEntry &e) { e.key.kernel = kernel; }),
                   "the kernel is not a hash of 32 hexadecimal digits");
  expectContains(errorAfter([](TuningEntry &e) { e.key.rows = 0; }),
                 "the rows are not a positive number");
  expectContains(errorAfter([](TuningEntry &e) { e.subject.op = ""; }),
                 "the op is empty");
  expectContains(errorAfter([](TuningEntry &e) { e.key.scope.target = ""; }),
                 "the target is empty");
  expectContains(
      errorAfter([](TuningEntry &e) { e.key.scope.device = "a\nb"; }),
      "the device is not printable ASCII");
  expectContains(
      errorAfter([](TuningEntry &e) { e.subject.op = std::string(1025, 'x'); }),
      "the op has 1025 characters; at most 1024");
  expectContains(errorAfter([](TuningEntry &e) { e.schedule = "tile"; }),
                 "the schedule is not #kf.NAME<...>");
  for (double seconds : {0.0, -1.0, infinite, double(NAN)})
    expectContains(errorAfter([=](TuningEntry &e) { e.seconds = seconds; }),
                   "the time is not a positive number");
  for (double wrong : {-1.0, infinite, double(NAN)}) {
    expectContains(
        errorAfter([=](TuningEntry &e) { e.defaultSeconds = wrong; }),
        "the default's time is not a number that is zero or");
    expectContains(errorAfter([=](TuningEntry &e) { e.error = wrong; }),
                   "the error is not a number that is zero or positive");
    expectContains(errorAfter([=](TuningEntry &e) {
                     e.tried[1].predictedSeconds = wrong;
                   }),
                   "trial 1: the predicted time is not");
  }
  expectContains(errorAfter([](TuningEntry &e) { e.tried[0].schedule = "x"; }),
                 "trial 0: the schedule is not #kf.NAME<...>");
  expectContains(errorAfter([](TuningEntry &e) { e.tried[0].rejected = "\n"; }),
                 "trial 0: the reason is not printable ASCII");
  expectContains(
      errorAfter([](TuningEntry &e) { e.tried.resize(1025, e.tried.front()); }),
      "more than 1024 schedules were tried");
  expectContains(errorAfter([](TuningEntry &e) { e.subject.shapes = {{-2}}; }),
                 "below -1");
  expectContains(
      errorAfter([](TuningEntry &e) { e.subject.shapes.resize(65); }),
      "more than 64 arguments");
  expectContains(
      errorAfter([](TuningEntry &e) { e.subject.shapes.pop_back(); }),
      "arguments without a shape or a type");
  expectContains(errorAfter([](TuningEntry &e) { e.subject.types.pop_back(); }),
                 "arguments without a shape or a type");
  expectContains(errorAfter([](TuningEntry &e) { e.date = "31.1.2026"; }),
                 "the date is '31.1.2026'");
}

TEST(TuningDatabase, RefusesFiles) {
  expectContains(errorOf(""), "db: not valid JSON");
  expectContains(errorOf("[]"), "no tuning database");
  expectContains(errorOf("{}"), "no tuning database");
  expectContains(errorOf("{\"version\": 1}"),
                 "version 1 is not known; this program reads version 2");
  expectContains(errorOf("{\"version\": 2}"), "no list 'entries'");
  expectContains(errorOf("{\"version\": 2, \"version\": 2}"), "appears twice");
  expectContains(errorOf("{\"version\": 2, \"entries\": [1]}"),
                 "entry 0: the entry is not an object");
  auto changed = [](const std::string &pointer, const json &value) {
    json file = fileJson();
    file[json::json_pointer(pointer)] = value;
    return errorOf(file.dump());
  };
  auto without = [](const std::string &pointer, const char *name) {
    json file = fileJson();
    file[json::json_pointer(pointer)].erase(name);
    return errorOf(file.dump());
  };
  expectContains(changed("/extra", 1), "unknown field 'extra'");
  expectContains(changed("/entries/0/extra", 1), "unknown field 'extra'");
  expectContains(changed("/entries/0/key", 1), "'key' is not an object");
  expectContains(changed("/entries/0/key/kernel", 1), "no string 'kernel'");
  expectContains(without("/entries/0", "key"), "there is no 'key'");
  expectContains(without("/entries/0", "about"), "there is no 'about'");
  expectContains(without("/entries/0", "measured"), "there is no 'measured'");
  for (const json &rows : {json(1.5), json("1"), json(18446744073709551615u)})
    expectContains(changed("/entries/0/key/rows", rows), "no integer 'rows'");
  expectContains(changed("/entries/0/about/op", 1), "no string 'op'");
  expectContains(changed("/entries/0/about/types/0", 1), "list of strings");
  for (const json &shape :
       {json(1), json{1.5}, json{"1"}, json{18446744073709551615u}})
    expectContains(changed("/entries/0/about/shapes/0", shape),
                   "lists of integers");
  expectContains(changed("/entries/0/schedule", nullptr),
                 "no string 'schedule'");
  expectContains(changed("/entries/0/measured/seconds", "1"),
                 "'seconds' is not a number");
  for (const char *pointer :
       {"/entries/0/measured/seconds", "/entries/0/measured/x"})
    EXPECT_FALSE(changed(pointer, 0).empty());
  expectContains(without("/entries/0/measured", "seconds"),
                 "entry 0: the time is not");
  expectContains(changed("/entries/0/tried", 1), "no list 'tried'");
  expectContains(changed("/entries/0/tried/0", 1),
                 "trial 0: the trial is not an object");
  for (const json &value : {json(nullptr), json("x"), json::array({{1, 2}})})
    expectContains(changed("/entries/0/tried/1", value),
                   "entry 0: trial 1: the trial is not an object");
  expectContains(changed("/entries/0/tried/1/extra", 1),
                 "entry 0: trial 1: the trial has an unknown field 'extra'");
  for (const json &value : {json(nullptr), json(1), json::array({"#kf.x<>"}),
                            json::object({{"schedule", "#kf.x<>"}})}) {
    expectContains(changed("/entries/0/tried/0/schedule", value),
                   "trial 0: there is no string 'schedule'");
    expectContains(changed("/entries/0/tried/0/rejected", value),
                   "trial 0: there is no string 'rejected'");
  }
  for (const json &value : {json(nullptr), json("1"), json::array({1}),
                            json::object({{"seconds", 1}})})
    expectContains(changed("/entries/0/tried/0/seconds", value),
                   "trial 0: 'seconds' is not a number");
  expectContains(without("/entries/0/tried/0", "schedule"),
                 "trial 0: there is no string 'schedule'");
  expectContains(
      errorOf("{\"version\": 2, \"entries\": [{\"tried\": [{\"error\": 1, "
              "\"error\": 1}]}]}"),
      "key 'error' appears twice in one JSON object");
  // Other versions may have other trials.
  expectContains(errorOf("{\"entries\": [{\"tried\": [7, {\"x\": [{}]}]}], "
                         "\"version\": 3}"),
                 "version 3 is not known");
  expectContains(errorOf("{\"version\": 2, \"entries\": [{\"tried\": [" +
                         std::string(40, '[') + std::string(40, ']') + "]}]}"),
                 "nested");
  expectContains(changed("/entries/0/tried/0/rejected", ""),
                 "trial 0: the reason is empty");
  expectContains(changed("/entries/0/tried/1/error", true),
                 "trial 1: 'error' is not a number");
  expectContains(changed("/entries/1", fileJson()["entries"][0]),
                 "entry 1: its key has an entry already");
}

} // namespace
