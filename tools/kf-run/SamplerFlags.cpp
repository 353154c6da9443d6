//===- SamplerFlags.cpp - Options of commands that choose tokens ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SamplerFlags.h"

using namespace kf;

void kf::addSamplerFlags(OptionParser &parser, SamplerOptions &out) {
  parser.real({"temp", 0, "X"}, out.temperature, 0, 1e6,
              "temperature; 0, the default, takes the most likely token");
  parser.integer({"top-k", 0, "N"}, out.topK, 0, int64_t(1) << 24,
                 "draws from the N most likely tokens; 0, the default: all");
  parser.real({"top-p", 0, "X"}, out.topP, 0, 1,
              "draws from the most likely tokens that sum up to X; 1 by "
              "default");
  parser.real({"min-p", 0, "X"}, out.minP, 0, 1,
              "leaves out tokens less likely than X times the most likely "
              "one; 0 by default");
  parser.real({"repeat-penalty", 0, "X"}, out.repetitionPenalty, 0, 1e6,
              "makes tokens that were seen less likely; 1, the default, "
              "does not");
  parser.number({"seed", 0, "N"}, out.seed,
                "the same seed gives the same text; 0 by default");
}
