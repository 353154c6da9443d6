//===- ProgramExec.h - Running an Executable on tensors ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_PROGRAMEXEC_H
#define KF_TOOLS_KF_RUN_PROGRAMEXEC_H

#include "DeviceFlags.h"
#include "OptionParser.h"
#include "ProfileFlags.h"
#include "TensorText.h"

#include "runtime/core/Tensor.h"
#include "runtime/program/Executable.h"
#include "runtime/weights/WeightSource.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kf {

/// What to give a program and what to do with its results.
struct ExecFlags {
  std::string weights;
  std::vector<std::string> inputs, outputs, expected;
  Tolerance tolerance;
  int64_t context = 256, printLimit = 1024, bench = 0;
  DeviceFlags device;
  ProfileFlags profile;

  /// Adds the options to `parser`.
  void addTo(OptionParser &parser);
  /// Whether the files of --output can be written: an error about the use of
  /// the command, which `parser` knows, or about the file. Nothing if so, else
  /// the exit code.
  std::optional<int> checkOutputs(const OptionParser &parser) const;
};

/// What the flags name, read before anything is compiled.
struct ExecData {
  std::vector<HostTensor> inputs;
  std::vector<std::optional<HostTensor>> expected; ///< nothing: (ignored)
  std::unique_ptr<WeightSource> weights;           ///< null: none
};
Result<ExecData> readExecData(const ExecFlags &flags);

/// Pages of pools that have room for `positions` positions.
int64_t cachePages(const Executable &program, int64_t positions);

/// What `flags` say, for the first of a program's `ranks`.
Result<std::unique_ptr<Device>> openExecDevice(const ExecFlags &flags,
                                               int64_t ranks);

/// Runs `executable` on `device` once, and prints, writes or compares its
/// results; with `--bench` more often. A program of several ranks is run by as
/// many threads on the same inputs, each with a device of that kind. Errors:
/// ranks whose results differ, too.
Status execProgram(const ExecFlags &flags, Executable executable,
                   const ExecData &data, std::unique_ptr<Device> device);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_PROGRAMEXEC_H
