//===- JobKeyTest.cpp - What ranks of one job know ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/JobKey.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include <sys/stat.h>

using namespace kf;

namespace {

class JobKeyTest : public testing::Test {
protected:
  void SetUp() override {
    folder = testing::TempDir() + "/job-key-test";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string &text, mode_t mode) {
    const std::string path = folder + "/key";
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  Result<JobKey> find(const std::map<std::string, std::string> &variables) {
    return JobKey::find([&](const char *name) -> const char * {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  }

  std::string folder;
};

TEST_F(JobKeyTest, ComesFromTheEnvironmentOrAFile) {
  const std::string text(32, 'k');
  const Digest wanted = hmacSha256(text, "m");
  EXPECT_EQ(find({{"KF_JOB_KEY", text}}).take().prove("m"), wanted);
  const std::string path = write("  " + text + "\n", 0600);
  EXPECT_EQ(find({{"KF_JOB_KEY_FILE", path}}).take().prove("m"), wanted);
}

TEST_F(JobKeyTest, IsNotGuessedNorReadByOthers) {
  EXPECT_EQ(find({{"KF_JOB_KEY", "secret"}}).message(),
            "KF_JOB_KEY: a job key of 6 bytes is too easily guessed; it takes "
            "16 or more, as 'openssl rand -hex 32' prints them");
  const std::string path = write(std::string(32, 'k'), 0640);
  EXPECT_EQ(find({{"KF_JOB_KEY_FILE", path}}).message(),
            "others can read the job key in '" + path +
                "'; make the file your own, of mode 0600");
  EXPECT_EQ(find({{"KF_JOB_KEY_FILE", folder}}).message(),
            "the job key in '" + folder + "' is not in a regular file");
  EXPECT_EQ(find({{"KF_JOB_KEY_FILE", folder + "/none"}}).message(),
            "there is no job key in '" + folder + "/none'");
}

// Many ranks of a host begin at once, and one of them makes the key.
TEST_F(JobKeyTest, IsTheUsersOwnWithoutEither) {
  std::vector<Digest> proofs(16);
  std::vector<std::thread> ranks;
  for (Digest &proof : proofs)
    ranks.emplace_back([&] {
      const Result<JobKey> key = find({{"XDG_STATE_HOME", folder}});
      ASSERT_TRUE(key.ok()) << key.message();
      proof = key->prove("m");
    });
  for (std::thread &rank : ranks)
    rank.join();
  for (const Digest &proof : proofs)
    EXPECT_EQ(proof, proofs.front());
  struct stat info;
  ASSERT_EQ(::stat((folder + "/kernelforge/job-key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(info.st_size, 65);
}

TEST_F(JobKeyTest, SaysWhatToDoWithoutAFolder) {
  EXPECT_EQ(find({}).message(),
            "there is no folder for the job's key: neither XDG_STATE_HOME nor "
            "HOME is set; set KF_JOB_KEY_FILE to a file that all ranks can "
            "read");
}

} // namespace
