//===- ProfileFlags.cpp - What --profile asks for -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProfileFlags.h"

#include "Interrupt.h"
#include "MeasuredCeilings.h"
#include "Progress.h"
#include "Report.h"

#include "runtime/measure/Ceilings.h"

#include <algorithm>
#include <cstdio>

using namespace kf;

/// As much is read as by any run, and no less than threads are fast with.
static uint64_t mostReadBytes(const Profile &profile) {
  double most = kLeastReadBytes;
  for (const ProgramProfile &program : profile.programs())
    most = std::max(most, program.bytesOfRun());
  return static_cast<uint64_t>(std::min(most, 1e15));
}

void ProfileFlags::addTo(OptionParser &parser) {
  parser.optionalText({"profile", 0, "FILE"}, "", file,
                      "prints what each kernel took, moved and computed to "
                      "stderr; with =FILE, or FILE if it ends in .json, writes "
                      "a trace too, which ui.perfetto.dev and "
                      "chrome://tracing open",
                      ".json");
  parser.output(file);
  parser.addCheck([this] {
    if (file == "-")
      return Status::error("--profile=FILE takes the path of a file; the table "
                           "is printed without one");
    return Status();
  });
}

std::unique_ptr<Profile> ProfileFlags::make() const {
  return file ? std::make_unique<Profile>(!file->empty()) : nullptr;
}

Status kf::showProfile(const ProfileFlags &flags, const Profile &profile,
                       Device &device, const std::string &others) {
  MachineRates rates;
  bool disturbed = false;
  {
    const Progress progress("measuring what the machine can do");
    CeilingOptions options;
    options.cancelled = &interruptFlag();
    options.mostReadBytes = mostReadBytes(profile);
    // The table says it where they were disturbed.
    Result<MachineRates> measured =
        measureCeilings(device, options, &disturbed);
    if (measured.ok())
      rates = *measured;
    else if (!measured.status().isCancelled())
      printWarning(measured.message() + "; the profile has no ceilings");
  }
  {
    const ProgressPause pause;
    std::fputs((profile.table(rates, disturbed) + others).c_str(), stderr);
  }
  if (flags.file->empty())
    return Status();
  if (profile.droppedEvents())
    printWarning("the trace has room for its first events alone; " +
                 std::to_string(profile.droppedEvents()) + " are left out");
  return writeOutput(*flags.file, profile.trace(device.name()));
}
