//===- Launcher.cpp - Which rank a launcher has made this -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/Launcher.h"

#include "runtime/core/Exceptions.h"
#include "runtime/program/Executable.h"

#include <charconv>
#include <string_view>

using namespace kf;

namespace {

/// The variables of a launcher.
struct Variables {
  const char *rank, *size;
  std::optional<MpiKind> mpi;
};

constexpr Variables kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", MpiKind::OpenMpi},
    {"PMI_RANK", "PMI_SIZE", MpiKind::Mpich},
    {"RANK", "WORLD_SIZE", std::nullopt},
    {"SLURM_PROCID", "SLURM_NTASKS", std::nullopt},
};

/// Where ranks meet that are told no port: that of other launchers' programs.
constexpr uint16_t kDefaultPort = 29500;

Result<int64_t> readNumber(const Environment &environment, const char *name,
                           int64_t least, int64_t most) {
  const std::string_view text = environment(name);
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() ||
      value < least || value > most)
    return Status::error(std::string(name) + "='" + std::string(text) +
                         "' is no integer from " + std::to_string(least) +
                         " to " + std::to_string(most));
  return value;
}

/// A batch script of Slurm's has the variables of its job, and is no rank.
bool isBatchScript(const Environment &environment) {
  return environment("SLURM_JOB_ID") && !environment("SLURM_STEP_ID");
}

Result<std::optional<MpiKind>> readMpi(const Environment &environment,
                                       std::optional<MpiKind> byLauncher) {
  const char *named = environment("KF_MPI");
  if (!named)
    return byLauncher;
  const std::string_view name = named;
  if (name == "openmpi")
    return std::optional(MpiKind::OpenMpi);
  if (name == "mpich")
    return std::optional(MpiKind::Mpich);
  return Status::error("KF_MPI='" + std::string(name) +
                       "' is neither openmpi nor mpich");
}

} // namespace

Result<std::optional<LaunchedRank>>
kf::findLauncher(const Environment &environment) try {
  for (const Variables &variables : kLaunchers) {
    const bool hasRank = environment(variables.rank);
    const bool hasSize = environment(variables.size);
    if (std::string_view(variables.rank).starts_with("SLURM") &&
        (!hasRank || isBatchScript(environment)))
      continue;
    if (!hasRank && !hasSize)
      continue;
    if (hasRank != hasSize)
      return Status::error(
          std::string(hasRank ? variables.rank : variables.size) +
          " is set without " + (hasRank ? variables.size : variables.rank) +
          "; a rank has both");
    LaunchedRank found;
    KF_ASSIGN_OR_RETURN(found.size,
                        readNumber(environment, variables.size, 1, kMaxRanks));
    KF_ASSIGN_OR_RETURN(
        found.rank, readNumber(environment, variables.rank, 0, found.size - 1));
    if (found.size == 1)
      return std::optional<LaunchedRank>();
    KF_ASSIGN_OR_RETURN(found.mpi, readMpi(environment, variables.mpi));
    if (const char *address = environment("MASTER_ADDR"))
      found.address = address;
    found.port = found.mpi ? 0 : kDefaultPort;
    if (environment("MASTER_PORT")) {
      KF_ASSIGN_OR_RETURN(const int64_t port,
                          readNumber(environment, "MASTER_PORT", 1, 65535));
      found.port = static_cast<uint16_t>(port);
    }
    return std::optional(found);
  }
  return std::optional<LaunchedRank>();
} catch (...) {
  return statusOfException();
}
