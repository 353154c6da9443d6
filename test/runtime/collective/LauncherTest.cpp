//===- LauncherTest.cpp - Which rank a launcher has made this -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/Launcher.h"

#include <gtest/gtest.h>

#include <map>

using namespace kf;

namespace {

using Variables = std::map<std::string, std::string>;

Result<std::optional<LaunchedRank>> find(const Variables &variables) {
  return findLauncher([&](const char *name) -> const char * {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launcher, IsNoneWithoutVariables) {
  EXPECT_EQ(find({}).take(), std::nullopt);
  EXPECT_EQ(find({{"MASTER_ADDR", "host"}, {"KF_MPI", "mpich"}}).take(),
            std::nullopt);
  EXPECT_EQ(find({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).take(), std::nullopt);
}

TEST(Launcher, IsKnownByItsVariables) {
  struct Case {
    const char *rank, *size;
    std::optional<MpiKind> mpi;
    uint16_t port;
  };
  for (const Case &known :
       {Case{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", MpiKind::OpenMpi,
             0},
        Case{"PMI_RANK", "PMI_SIZE", MpiKind::Mpich, 0},
        Case{"RANK", "WORLD_SIZE", std::nullopt, 29500},
        Case{"SLURM_PROCID", "SLURM_NTASKS", std::nullopt, 29500}}) {
    const auto found = find({{known.rank, "2"}, {known.size, "4"}}).take();
    ASSERT_TRUE(found) << known.rank;
    EXPECT_EQ(found->rank, 2);
    EXPECT_EQ(found->size, 4);
    EXPECT_EQ(found->mpi, known.mpi);
    EXPECT_EQ(found->address, "127.0.0.1");
    EXPECT_EQ(found->port, known.port);
  }
}

TEST(Launcher, SaysWhereRanksMeet) {
  const auto found = find({{"RANK", "1"},
                           {"WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "10.0.0.1"},
                           {"MASTER_PORT", "4000"}})
                         .take();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->address, "10.0.0.1");
  EXPECT_EQ(found->port, 4000);
}

// mpirun within a job of Slurm's: the ranks are mpirun's.
TEST(Launcher, IsTheInnermostOne) {
  const auto found = find({{"SLURM_PROCID", "0"},
                           {"SLURM_NTASKS", "8"},
                           {"PMI_RANK", "1"},
                           {"PMI_SIZE", "2"}})
                         .take();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 1);
  EXPECT_EQ(found->size, 2);
}

TEST(Launcher, IsNoBatchScriptOfSlurms) {
  Variables variables = {
      {"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}};
  EXPECT_EQ(find(variables).take(), std::nullopt);
  variables["SLURM_STEP_ID"] = "0";
  EXPECT_TRUE(find(variables).take());
  // salloc's shell has no rank
  EXPECT_EQ(find({{"SLURM_NTASKS", "8"}}).take(), std::nullopt);
}

TEST(Launcher, CanBeToldOfMpi) {
  Variables variables = {
      {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"KF_MPI", "openmpi"}};
  const auto found = find(variables).take();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->mpi, MpiKind::OpenMpi);
  EXPECT_EQ(found->port, 0);
  variables["KF_MPI"] = "lam";
  EXPECT_EQ(find(variables).message(),
            "KF_MPI='lam' is neither openmpi nor mpich");
}

TEST(Launcher, NamesVariablesThatAreWrong) {
  EXPECT_EQ(find({{"RANK", "1"}}).message(),
            "RANK is set without WORLD_SIZE; a rank has both");
  EXPECT_EQ(find({{"WORLD_SIZE", "2"}}).message(),
            "WORLD_SIZE is set without RANK; a rank has both");
  EXPECT_EQ(find({{"RANK", "2"}, {"WORLD_SIZE", "2"}}).message(),
            "RANK='2' is no integer from 0 to 1");
  EXPECT_EQ(find({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}).message(),
            "RANK='-1' is no integer from 0 to 1");
  EXPECT_EQ(find({{"RANK", "0"}, {"WORLD_SIZE", "2x"}}).message(),
            "WORLD_SIZE='2x' is no integer from 1 to 1024");
  EXPECT_EQ(find({{"PMI_RANK", ""}, {"PMI_SIZE", "2"}}).message(),
            "PMI_RANK='' is no integer from 0 to 1");
  EXPECT_EQ(find({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "0"}})
                .message(),
            "MASTER_PORT='0' is no integer from 1 to 65535");
}

} // namespace
