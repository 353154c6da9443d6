//===- Launcher.h - Which rank a launcher has made this ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_LAUNCHER_H
#define KF_RUNTIME_COLLECTIVE_LAUNCHER_H

#include "runtime/collective/JobKey.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace kf {

/// Libraries of MPI that there may be a plugin for (MpiPlugin.h).
enum class MpiKind {
  OpenMpi,
  Mpich ///< and what has its binary interface
};

/// What a launcher, which starts a process for each rank, says of this one.
struct LaunchedRank {
  int64_t rank = 0, size = 1;
  /// What connects the ranks of the launcher's own job; nothing: it started
  /// processes, no more.
  std::optional<MpiKind> mpi = std::nullopt;
  /// Where rank 0 waits for the others. Port 0: any; the ranks tell one another
  /// by MPI.
  std::string address = "127.0.0.1";
  uint16_t port = 0;
};

/// Reads the variables of Open MPI's mpirun (OMPI_COMM_WORLD_RANK and _SIZE),
/// those of PMI that MPICH's sets (PMI_RANK, PMI_SIZE), RANK and WORLD_SIZE,
/// and Slurm's (SLURM_PROCID, SLURM_NTASKS), in this order; MASTER_ADDR and
/// MASTER_PORT; and KF_MPI, "openmpi" or "mpich", where another launcher starts
/// programs of MPI. Nothing: there is no launcher, or one of a single process.
/// Errors name the variable.
Result<std::optional<LaunchedRank>>
findLauncher(const Environment &environment);

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_LAUNCHER_H
