//===- TuningDatabaseTest.cpp - Measured schedules, kept ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/TuningDatabase.h"

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

TuningEntry entryOf(const std::string &op, double seconds = 1.25e-4,
                    const std::string &schedule = "#kf.vector<tile = 8>") {
  TuningEntry entry;
  entry.key = {op,    {{-1, 2048}, {5632, 2048}}, {"f32", "q4_0"},
               "cpu", "AMD EPYC; 2 threads",      "22.1.8"};
  entry.schedule = schedule;
  entry.seconds = seconds;
  entry.date = "2026-01-31";
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
           [](TuningKey &key) { key.op = "x"; },
           [](TuningKey &key) { key.shapes[0][1] = 1; },
           [](TuningKey &key) { key.shapes.pop_back(); },
           [](TuningKey &key) { key.types[1] = "q8_0"; },
           [](TuningKey &key) { key.target = "vulkan"; },
           [](TuningKey &key) { key.device = "x"; },
           [](TuningKey &key) { key.compiler = "23"; }}) {
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

TEST(TuningDatabase, TextGoesThereAndBack) {
  TuningEntry plain = entryOf("odd \"name\" \\ ", 1.0 / 3);
  plain.key.shapes = {{}};
  plain.key.types.clear();
  plain.date.clear();
  TuningDatabase database = databaseOf({entryOf("matmul"), plain});
  const std::string text = database.serialize();
  auto again = TuningDatabase::parse(text, "db");
  ASSERT_TRUE(again.ok()) << again.message();
  EXPECT_EQ(again->serialize(), text);
  ASSERT_TRUE(again->find(plain.key));
  EXPECT_EQ(again->find(plain.key)->seconds, 1.0 / 3);
  EXPECT_EQ(again->list().size(), 2u);
  EXPECT_EQ(TuningDatabase().serialize(),
            "{\"version\": 1, \"entries\": [\n]}\n");
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
  const std::string path = temp.write("tuning.json", "{\"version\": 1");
  EXPECT_FALSE(TuningDatabase::load(path).ok());
  Status saved = databaseOf({entryOf("a")}).save(path);
  expectContains(saved.message(), path + ": not valid JSON");
  EXPECT_EQ(textOf(path), "{\"version\": 1");
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
  expectContains(errorAfter([](TuningEntry &e) { e.key.op = ""; }),
                 "the op is empty");
  expectContains(errorAfter([](TuningEntry &e) { e.key.device = "a\nb"; }),
                 "the device is not printable ASCII");
  expectContains(
      errorAfter([](TuningEntry &e) { e.key.op = std::string(1025, 'x'); }),
      "the op has 1025 characters; at most 1024");
  expectContains(errorAfter([](TuningEntry &e) { e.schedule = "tile"; }),
                 "the schedule is not #kf.NAME<...>");
  for (double seconds : {0.0, -1.0, infinite, double(NAN)})
    expectContains(errorAfter([=](TuningEntry &e) { e.seconds = seconds; }),
                   "the time is not a positive number");
  expectContains(errorAfter([](TuningEntry &e) { e.key.shapes = {{-2}}; }),
                 "below -1");
  expectContains(errorAfter([](TuningEntry &e) { e.key.shapes.resize(65); }),
                 "more than 64 arguments");
  expectContains(errorAfter([](TuningEntry &e) { e.date = "31.1.2026"; }),
                 "the date is '31.1.2026'");
}

TEST(TuningDatabase, RefusesFiles) {
  expectContains(errorOf(""), "db: not valid JSON");
  expectContains(errorOf("[]"), "no tuning database");
  expectContains(errorOf("{}"), "no tuning database");
  expectContains(errorOf("{\"version\": 2}"),
                 "version 2 is not known; this program reads version 1");
  expectContains(errorOf("{\"version\": 1}"), "no list 'entries'");
  expectContains(errorOf("{\"version\": 1, \"version\": 1}"), "appears twice");
  expectContains(errorOf("{\"version\": 1, \"entries\": [1]}"),
                 "entry 0: the entry is not an object");
  auto changed = [](const std::string &pointer, const json &value) {
    json file = fileJson();
    file[json::json_pointer(pointer)] = value;
    return errorOf(file.dump());
  };
  expectContains(changed("/extra", 1), "unknown field 'extra'");
  expectContains(changed("/entries/0/extra", 1), "unknown field 'extra'");
  expectContains(changed("/entries/0/key", 1), "the key is not an object");
  expectContains(changed("/entries/0/key/op", 1), "no string 'op'");
  expectContains(changed("/entries/0/key/types/0", 1), "list of strings");
  for (const json &shape :
       {json(1), json{1.5}, json{"1"}, json{18446744073709551615u}})
    expectContains(changed("/entries/0/key/shapes/0", shape),
                   "lists of integers");
  expectContains(changed("/entries/0/schedule", nullptr),
                 "no string 'schedule'");
  expectContains(changed("/entries/0/measured/seconds", "1"),
                 "no number 'seconds'");
  expectContains(changed("/entries/0/measured/seconds", 0),
                 "entry 0: the time is not");
  expectContains(changed("/entries/1", fileJson()["entries"][0]),
                 "entry 1: its key has an entry already");
}

} // namespace
