//===- GenerateCommand.cpp - kf-run generate ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Generate.h"
#include "ModelFlags.h"
#include "TemplateFlags.h"

#include "runtime/core/Quote.h"
#include "runtime/session/EmbeddedModel.h"

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

using namespace kf;

namespace {

/// What generate takes beside what to continue, and how.
struct CommandOptions {
  ModelFlags model;
  std::vector<std::string> programs; ///< files; none: they are compiled
  bool conversation = false, noConversation = false;
  std::optional<std::string> system; ///< chat's
  TemplateFlags chatTemplate;        ///< likewise

  void addTo(OptionParser &parser);
};

/// What is said by programs that are compiled already.
Status checkCompiled(const ModelFlags &model) {
  for (auto [name, isGiven] :
       {std::pair("--cache-type", !model.cacheType.empty()),
        std::pair("--activation-type", model.activationType != "f32"),
        std::pair("--target-cpu", model.targetCpu != "native"),
        std::pair("--tuning-db", model.tuning.file.has_value())})
    if (isGiven)
      return Status::error(std::string(name) +
                           " is for compiling, and programs of --program are "
                           "compiled; give it to emit-mlir");
  if (model.ranks > 1)
    return Status::error(optionOf(model.parallelism) +
                         " shares out models that are compiled, and programs "
                         "of --program are for one rank; leave one of the two "
                         "out");
  return Status();
}

/// An error for a text in place of a model.
Status checkModel(const std::string &model) {
  std::error_code none;
  if (model.find_first_of(" \n") == model.npos ||
      std::filesystem::exists(model, none))
    return Status();
  return Status::error("there is no model " + inQuotes(model) +
                       "; a text to continue is given as -p TEXT");
}

void CommandOptions::addTo(OptionParser &parser) {
  parser.flag({"conversation"}, conversation, "chats, as 'kf-run chat' does");
  parser.text({"system", 0, "TEXT"}, system,
              "implies --conversation: the system message",
              OptionParser::Empty::Allowed);
  chatTemplate.addTo(parser, "implies --conversation: ");
  parser.flag({"no-conversation"}, noConversation,
              "a MODEL without a command continues a text, also on a "
              "terminal without a prompt, where it would chat");
  model.addTo(parser);
  model.addRanksTo(parser);
  model.addDraftsTo(parser);
  model.lora.addOneTo(parser);
  parser.texts({"program", 0, "FILE"}, programs,
               "a step of the model, as 'emit-mlir --compile-to=binary' wrote "
               "it, and again for others: these run, and nothing is compiled");
  parser.addCheck([this] { return checkModel(model.model); });
  parser.addCheck(
      [this] { return programs.empty() ? Status() : checkCompiled(model); });
  parser.addCheck([this] {
    return !programs.empty() && model.draftModel
               ? Status::error("--draft-model compiles its programs: leave it "
                               "or --program out")
               : Status();
  });
}

/// Whether a person is to type what the model answers. `isImplied`: no command
/// was given.
bool isForChat(const GenerateOptions &options, const CommandOptions &command,
               bool isImplied) {
  if (command.conversation || command.system || command.chatTemplate.isGiven())
    return true;
  const bool hasPrompt =
      options.prompt || !options.file.empty() || !options.ids.empty();
  if (!isImplied || command.noConversation || hasPrompt ||
      !command.programs.empty() || !options.json.empty() ||
      !options.stops.empty() || options.ignoreEos || options.quiet ||
      command.model.model.empty() || command.model.dummy.used() ||
      !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
    return false;
  // What is wrong with it, generate tells.
  const Result<bool> made = hasChatTemplate(command.model.model);
  return made.ok() && *made;
}

int runGenerateOrChat(Arguments arguments, bool isImplied) {
  GenerateOptions options;
  CommandOptions command;
  OptionParser parser(
      "generate [MODEL] [options]",
      "Continues a text and prints what follows as it comes; a line about "
      "speed and memory goes to stderr.");
  options.addTo(parser);
  command.addTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  if (isForChat(options, command, isImplied))
    return runChat(arguments);
  return runGeneration(
      options, command.model,
      [&](bool withTokenizer) -> Result<std::unique_ptr<Session>> {
        if (!command.programs.empty())
          return Session::open(command.model.options(withTokenizer),
                               {.device = openDevice,
                                .steps = stepsFromFiles(command.programs),
                                .embedded = openEmbeddedModel});
        return openSession(command.model, withTokenizer);
      });
}

} // namespace

int kf::runGenerate(Arguments arguments) {
  return runGenerateOrChat(arguments, /*isImplied=*/false);
}

int kf::runModel(Arguments arguments) {
  return runGenerateOrChat(arguments, /*isImplied=*/true);
}

int kf::runDemo() {
  GenerateOptions options;
  options.prompt = "Once upon a time";
  options.echo = true;
  return runGeneration(options, ModelFlags(), [](bool withTokenizer) {
    return openSession(ModelFlags(), withTokenizer);
  });
}
