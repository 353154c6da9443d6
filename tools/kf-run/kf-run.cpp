//===- kf-run.cpp - Runs models and functions of kf ops -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "CopyProgram.h"
#include "ForeignFlags.h"
#include "Main.h"
#include "MeasuredCeilings.h"
#include "NearestName.h"
#include "OptionParser.h"
#include "OutOfMemory.h"
#include "Presets.h"
#include "Ranks.h"
#include "Report.h"

#include "kf/Driver/Compiler.h"
#include "runtime/core/Quote.h"
#include "runtime/devices/OpenDevice.h"
#include "runtime/model/NamedConfigs.h"
#include "runtime/session/EmbeddedModel.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

using namespace kf;

namespace {

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(Arguments);
  bool ranked = false; ///< by all ranks that a launcher has started
};

constexpr Command kCommands[] = {
    {"generate", "continue a text; the default", runGenerate, true},
    {"batch", "continue many texts at once", runBatch, true},
    {"chat", "talk with a model", runChat, true},
    {"serve", "answer requests of OpenAI's API by HTTP", runServe, true},
    {"compare", "ask servers and a model the same, side by side", runCompare},
    {"logits", "scores of the next token after given ids", runLogits, true},
    {"perplexity", "how well a model predicts a text", runPerplexity, true},
    {"embed", "embeddings of texts", runEmbed, true},
    {"tokenize", "token ids and pieces of a text", runTokenize},
    {"inspect", "show what a model is made of", runInspect},
    {"quantize", "write a model as a GGUF file of another type", runQuantize},
    {"train", "train an adapter for a model, or the model", runTrain},
    {"exec", "compile and run a function of kf ops", runExec},
    {"tune", "find the fastest schedules of a model's kernels", runTune},
    {"eval", "how near and how fast a device computes", runEval},
    {"emit-mlir", "print a model or a file at any phase", runEmitMlir},
    {"bench", "how fast a model reads and generates", runBench, true},
    {"devices", "list the devices of this machine", runDevices},
    {"cache", "list or clear the cache of compiled programs", runCache},
};

void endOnFatalError(const char *reason) {
  printError(std::string("the compiler cannot go on: ") + reason);
  _exit(ExitFailure);
}

/// Returns the exit code.
int printHelp() {
  std::string out =
      "usage: kf-run [COMMAND] [arguments]\n\n"
      "Compiles decoders of the LLaMA family and runs them. Without arguments\n"
      "it continues a story with the model that it carries inside; a model in\n"
      "place of COMMAND is one to generate with, or, on a terminal and "
      "without\n"
      "a prompt, to chat with.\n\n"
      "commands:\n";
  for (const Command &command : kCommands) {
    out += "  " + std::string(command.name);
    out.append(12 - command.name.size(), ' ');
    out += std::string(command.summary) + "\n";
  }
  out += "\n'kf-run help COMMAND' describes a command, 'kf-run help presets' "
         "what --preset\nsets. 'kf-run --version' prints the version.\n";
  return report(writeStdout(out));
}

std::vector<std::string_view> namesOfCommands() {
  std::vector<std::string_view> names;
  for (const Command &command : kCommands)
    names.push_back(command.name);
  return names;
}

/// Says that there is no such thing as `word`, and returns the exit code.
int refuse(std::string_view thing, std::string_view word) {
  const std::string_view advice = adviceForCommand(word);
  std::string said = advice.empty() ? didYouMean(word, namesOfCommands())
                                    : "; " + std::string(advice);
  if (said.empty() && word.find(' ') != word.npos)
    said = "; a text to continue is given as -p TEXT";
  if (said.empty())
    said = "; see 'kf-run --help'";
  printError("there is no " + std::string(thing) + " " + inQuotes(word) + said);
  return ExitUsage;
}

/// Whether a first argument is a model rather than a misspelt command.
bool isModel(std::string_view argument) {
  std::error_code error;
  return argument.ends_with(".gguf") ||
         argument.find('/') != std::string_view::npos ||
         findNamedConfig(argument) != nullptr ||
         std::filesystem::exists(argument, error);
}

const char *environmentVariable(const char *name) { return std::getenv(name); }

/// Whether the ranks that a launcher has started run a model together for these
/// arguments.
bool isRanked(Arguments arguments) {
  if (arguments.empty())
    return false;
  const std::string_view first = arguments.front();
  for (const Command &command : kCommands)
    if (command.name == first)
      return command.ranked;
  return first != "-h" && first != "--help" && first != "--version" &&
         (first.starts_with('-') || isModel(first));
}

int dispatch(Arguments arguments) {
  setCommandNames(namesOfCommands());
  if (arguments.empty())
    return runDemo();
  const std::string_view first = arguments.front();
  if (first == "help" && arguments.size() > 1) {
    const char *help = "--help";
    for (const Command &command : kCommands)
      if (command.name == arguments[1])
        return command.run({&help, 1});
    if (std::string_view(arguments[1]) == "presets")
      return report(writeStdout(presetsText()));
    return refuse("command", arguments[1]);
  }
  if (first == "--help" || first == "-h" || first == "help")
    return printHelp();
  if (first == "--version")
    return report(writeStdout("kf-run " KF_VERSION "\n"));
  for (const Command &command : kCommands)
    if (command.name == first)
      return command.run(arguments.subspan(1));
  if (first.starts_with('-') || isModel(first))
    return runModel(arguments);
  return refuse("command or file", first);
}

/// Runs the command, as one of the ranks that a launcher has started, if one
/// has; returns the exit code. What is not theirs together is rank 0's alone.
int dispatchRank(Arguments arguments) {
  const bool ranked = isRanked(arguments);
  const Result<std::optional<LaunchedRank>> launched =
      findLauncher(environmentVariable);
  if (!launched.ok())
    return ranked ? report(launched.status()) : dispatch(arguments);
  if (!*launched)
    return dispatch(arguments);
  if (ranked)
    return runRanked(**launched, dispatch, arguments,
                     {.device = openDevice,
                      .steps = nullptr,
                      .embedded = openEmbeddedModel});
  return (*launched)->rank == 0 ? dispatch(arguments) : ExitSuccess;
}

} // namespace

int main(int argc, char **argv) {
  installCompilerErrorHandlers({exitOutOfMemory, endOnFatalError});
  installCopyCompiler(compileCopy);
  return runMain(argc, argv, dispatchRank);
}
