//===- Commands.h - The commands of kf-run ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_COMMANDS_H
#define KF_TOOLS_KF_RUN_COMMANDS_H

#include <span>

namespace kf {

/// What follows the command's name on the command line.
using Arguments = std::span<const char *const>;

// Each runs a command and returns the exit code (see Report.h). Errors are
// printed by then.
int runGenerate(Arguments arguments);
int runBatch(Arguments arguments);
int runChat(Arguments arguments);
int runServe(Arguments arguments);
int runCompare(Arguments arguments);
int runLogits(Arguments arguments);
int runPerplexity(Arguments arguments);
int runEmbed(Arguments arguments);
int runTokenize(Arguments arguments);
int runEmitMlir(Arguments arguments);
int runQuantize(Arguments arguments);
int runExec(Arguments arguments);
int runEval(Arguments arguments);
int runBench(Arguments arguments);
int runDevices(Arguments arguments);
int runCache(Arguments arguments);
int runInspect(Arguments arguments);
int runTrain(Arguments arguments);
int runTune(Arguments arguments);

/// chat where a person is to type and the model is made for it, else generate:
/// what a model in place of a command does.
int runModel(Arguments arguments);

/// generate from the embedded model with a prompt of its own, which is printed
/// too: what `kf-run` alone does.
int runDemo();

} // namespace kf

#endif // KF_TOOLS_KF_RUN_COMMANDS_H
