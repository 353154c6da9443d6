//===- kf-exec.cpp - Runs what is compiled --------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime without the compiler: files that 'kf-run emit-mlir
// --compile-to=binary' wrote, on this machine.
//
//===----------------------------------------------------------------------===//

#include "tools/kf-run/Generate.h"
#include "tools/kf-run/Main.h"
#include "tools/kf-run/ProgramExec.h"
#include "tools/kf-run/Report.h"

#include "runtime/core/Quote.h"
#include "runtime/engine/ProgramFiles.h"

#include <span>
#include <string_view>

using namespace kf;

namespace {

using Arguments = std::span<const char *const>;

constexpr std::string_view kTool = "kf-exec";

constexpr std::string_view kHelp =
    "usage: kf-exec COMMAND [arguments]\n\n"
    "Runs programs that 'kf-run emit-mlir --compile-to=binary -o FILE' wrote;\n"
    "compiles nothing.\n\n"
    "commands:\n"
    "  run         run a program on tensors\n"
    "  generate    continue a text with a model and its programs\n\n"
    "'kf-exec COMMAND --help' describes a command. 'kf-exec --version' prints\n"
    "the version.\n";

Status run(const std::string &path, const ExecFlags &flags) {
  KF_ASSIGN_OR_RETURN(const ExecData data, readExecData(flags));
  KF_ASSIGN_OR_RETURN(Executable executable, readExecutable(path));
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                      openExecDevice(flags, executable.ranks));
  return execProgram(flags, std::move(executable), data, std::move(device))
      .in(inQuotes(path));
}

int runProgram(Arguments arguments) {
  std::string path;
  ExecFlags flags;
  OptionParser parser("run FILE [options]",
                      "Runs a compiled program, and prints or checks its "
                      "results.",
                      kTool);
  parser.positional("FILE", true, path,
                    "what 'kf-run emit-mlir --compile-to=binary' wrote");
  flags.addTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  if (std::optional<int> code = flags.checkOutputs(parser))
    return *code;
  return report(run(path, flags));
}

int runGenerate(Arguments arguments) {
  GenerateOptions options;
  SessionFlags session;
  std::vector<std::string> programs;
  OptionParser parser(
      "generate MODEL --program FILE... [options]",
      "Continues a text with a model's compiled steps and prints what follows "
      "as it comes; a line about speed and memory goes to stderr.",
      kTool);
  parser.texts({"program", 0, "FILE"}, programs,
               "a step of MODEL, as 'kf-run emit-mlir --compile-to=binary' "
               "wrote it, and again for others");
  options.addTo(parser);
  session.addTo(parser, /*withEmbedded=*/false);
  session.lora.addOneTo(parser);
  parser.addCheck([&] {
    return programs.empty() ? Status::error("--program is missing") : Status();
  });
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  return runGeneration(options, session, [&](bool withTokenizer) {
    return Session::open(
        session.options(withTokenizer),
        {.device = openDevice, .steps = stepsFromFiles(programs)});
  });
}

int dispatch(Arguments arguments) {
  setCommandNames({"run", "generate"});
  const std::string_view first = arguments.empty() ? "" : arguments.front();
  if (first == "--help" || first == "-h" || first == "help")
    return report(writeStdout(kHelp));
  if (first == "--version")
    return report(writeStdout("kf-exec " KF_VERSION "\n"));
  if (first == "run")
    return runProgram(arguments.subspan(1));
  if (first == "generate")
    return runGenerate(arguments.subspan(1));
  printError((first.empty() ? "a command is missing"
                            : "there is no command " + inQuotes(first)) +
             "; there are run and generate, see 'kf-exec --help'");
  return ExitUsage;
}

} // namespace

int main(int argc, char **argv) { return runMain(argc, argv, dispatch); }
