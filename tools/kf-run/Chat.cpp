//===- Chat.cpp - kf-run chat ---------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChatSession.h"
#include "Commands.h"
#include "Interrupt.h"
#include "LineReader.h"
#include "Prompt.h"
#include "Report.h"
#include "SamplerFlags.h"
#include "WordWrap.h"

#include "runtime/core/Quote.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

using namespace kf;

namespace {

/// Set by an interrupt, which ends what is going on, an answer or the reading
/// of a line, and not the program.
std::atomic<bool> &interrupted = interruptFlag();

enum class After { Nothing, File, Text };

/// A command of a line, and what follows it.
struct ChatCommand {
  std::string_view name;
  After after;
  std::string_view help;
};

constexpr ChatCommand kCommands[] = {
    {"/clear", After::Nothing, "starts over, with the system message"},
    {"/regen", After::Nothing, "answers the last message again, differently"},
    {"/undo", After::Nothing, "takes the last message and its answer back"},
    {"/system", After::Text,
     "TEXT  changes the system message; alone, shows "
     "it"},
    {"/save", After::File,
     "FILE  writes the conversation to a JSON file; in a terminal"},
    {"/load", After::File,
     "FILE  goes on with the conversation in a JSON file; in a terminal"},
    {"/stats", After::Nothing,
     "tokens in the cache, computed and reused, and speeds"},
    {"/help", After::Nothing, "this text"},
    {"/exit", After::Nothing, "ends, as Ctrl-D does"},
};

std::string helpText() {
  std::string text;
  for (const ChatCommand &command : kCommands) {
    const size_t end =
        command.after == After::Nothing ? 0 : command.help.find("  ");
    std::string head(command.name);
    if (end > 0)
      head += " " + std::string(command.help.substr(0, end));
    head.resize(14, ' ');
    text += head + std::string(command.help.substr(end ? end + 2 : 0)) + "\n";
  }
  return text + "Ctrl-C stops an answer. A line that ends with \\ goes on in "
                "the next one; one\nthat begins with // begins with / for the "
                "model. The tab key completes commands.\n";
}

std::string rate(int64_t tokens, double seconds) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.1f ms (%.0f tok/s)", seconds * 1e3,
                seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0);
  return buffer;
}

std::string describe(const char *what, const ChatCounts &counts) {
  return std::string(what) + ": prompt " +
         std::to_string(counts.reused + counts.computed) + " tokens, " +
         std::to_string(counts.reused) + " reused, " +
         std::to_string(counts.computed) + " computed in " +
         rate(counts.computed, counts.prefillSeconds) + "; generated " +
         std::to_string(counts.generated) + ", decoded in " +
         rate(counts.decodedTokens, counts.decodeSeconds) + "\n";
}

/// Reads lines and does what they say.
class Repl {
public:
  Repl(ChatSession &chat, bool wraps) : chat(chat), wraps(wraps) {
    std::vector<LineReader::Command> commands;
    for (const ChatCommand &command : kCommands)
      commands.push_back(
          {std::string(command.name), command.after == After::File});
    lines.complete(std::move(commands));
  }

  /// Returns the exit code.
  int run() {
    if (lines.interactive())
      greet();
    while (!done) {
      std::string line;
      Result<LineReader::Event> event = readMessage(line);
      if (!event.ok())
        return report(event.status());
      if (*event == LineReader::Event::End)
        break;
      if (*event == LineReader::Event::Interrupted) {
        if (wasInterrupted)
          return ExitInterrupted;
        wasInterrupted = true;
        interrupted = false;
        std::fputs("Ctrl-C once more, or Ctrl-D, ends the chat.\n", stderr);
        continue;
      }
      wasInterrupted = interrupted = false;
      noteSampling();
      if (Status status = handle(line); !status.ok()) {
        const int failure = report(status);
        // A person sees the error; a script learns of it.
        code = lines.interactive() ? code : failure;
      }
      if (!output.ok())
        return report(output);
    }
    return code;
  }

private:
  void greet() {
    std::fprintf(stderr, "%s on %s, context %lld. /help tells the commands.\n",
                 chat.model().files().name.c_str(),
                 chat.model().device().name().c_str(),
                 static_cast<long long>(chat.model().engine().contextLength()));
    noteSampling();
  }

  /// Once.
  void noteSampling() {
    if (!noted)
      noteRecommended(chat.recommended());
    noted = true;
  }

  Result<LineReader::Event> readMessage(std::string &message) {
    for (bool continued = false;; continued = true) {
      std::string line;
      KF_ASSIGN_OR_RETURN(LineReader::Event event, lines.read(line, continued));
      if (event == LineReader::Event::Interrupted)
        return event;
      if (event == LineReader::Event::End)
        return continued ? LineReader::Event::Line : event;
      message += line;
      if (!message.ends_with('\\'))
        return event;
      message.back() = '\n';
    }
  }

  void print(std::string_view text) {
    if (output.ok())
      output = writeStdout(text);
    if (!output.ok())
      interrupted = true; // nobody is there to hear the rest
  }

  Status handle(const std::string &line) {
    if (line.find_first_not_of(" \t\r") == std::string::npos)
      return Status();
    if (line.starts_with("//"))
      return finish(say(line.substr(1)));
    if (line.starts_with('/'))
      return command(line);
    return finish(say(line));
  }

  Result<StopReason> say(const std::string &text) {
    return chat.say(text, onText(), &interrupted);
  }
  ChatSession::OnText onText() {
    return [this, wrap = WordWrap(wraps ? wrappedColumns() : 0)](
               std::string_view text) mutable {
      warnings.begin();
      print(wrap.add(text));
    };
  }

  /// Ends an answer's text, and says why where that is not plain.
  Status finish(const Result<StopReason> &reason) {
    if (reason.ok())
      print("\n");
    warnings.end();
    if (!reason.ok())
      return reason.status();
    if (*reason == StopReason::ContextFull)
      std::fputs("The context is full; /clear starts over.\n", stderr);
    else if (*reason != StopReason::StopToken &&
             *reason != StopReason::Complete)
      std::fprintf(stderr, "[%s]\n", std::string(nameOf(*reason)).c_str());
    return Status();
  }

  Status command(std::string_view line) {
    const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    const std::string_view name = line.substr(0, end);
    std::string_view rest = line.substr(end);
    const size_t first = rest.find_first_not_of(" \t\r");
    rest = first == rest.npos ? std::string_view() : rest.substr(first);
    rest = rest.substr(0, rest.find_last_not_of(" \t\r") + 1);
    const auto *command =
        std::ranges::find(kCommands, name, &ChatCommand::name);
    if (command == std::end(kCommands))
      return Status::error("unknown command " + inQuotes(name) +
                           "; /help tells the commands, and // begins a "
                           "message with a /");
    // A text from elsewhere is to be said, not to read and write files.
    if (command->after == After::File && !lines.typed())
      return Status::error(std::string(name) +
                           " is off, since stdin is no terminal; // begins a "
                           "message with a /");
    if (command->after == After::File && rest.empty())
      return Status::error(std::string(name) + " needs a file's name");
    if (command->after == After::Nothing && !rest.empty())
      return Status::error(std::string(name) + " takes nothing after it");
    if (name == "/save")
      return save(std::string(rest));
    if (name == "/load")
      return load(std::string(rest));
    if (name == "/system")
      return setSystem(std::string(rest));
    if (name == "/regen")
      return regenerate();
    if (name == "/undo" && !chat.undo())
      return Status::error("there is nothing to take back");
    if (name == "/undo")
      print("taken back; " + std::to_string(chat.messages().size()) +
            " messages are left\n");
    else if (name == "/clear")
      chat.clear();
    else if (name == "/stats")
      print(stats());
    else if (name == "/help")
      print(helpText());
    else if (name == "/exit")
      done = true;
    return Status();
  }

  Status regenerate() {
    if (chat.sampling().options.temperature == 0)
      printNote("the most likely tokens are taken, so that the answer is the "
                "same; --temp 0.8 draws them");
    return finish(chat.answerAgain(onText(), &interrupted));
  }

  Status setSystem(std::string text) {
    if (!text.empty())
      chat.setSystemMessage(std::move(text));
    print(chat.systemMessage().empty()
              ? "there is no system message\n"
              : "system message: " + chat.systemMessage() + "\n");
    return Status();
  }

  Status save(const std::string &path) {
    std::error_code ignored;
    const bool exists = std::filesystem::is_regular_file(path, ignored);
    if (exists) {
      KF_ASSIGN_OR_RETURN(
          const bool replace,
          lines.confirm(quotePath(path) + " is there; replace it?"));
      if (!replace) {
        print("not saved\n");
        return Status();
      }
    }
    KF_RETURN_IF_ERROR(chat.save(path, exists));
    print("saved " + std::to_string(chat.messages().size()) + " messages\n");
    return Status();
  }

  Status load(const std::string &path) {
    KF_RETURN_IF_ERROR(chat.load(path));
    print("loaded " + std::to_string(chat.messages().size()) + " messages\n");
    if (!chat.awaitsAnswer())
      return Status();
    return finish(chat.answer(onText(), &interrupted));
  }

  std::string stats() {
    return "cache: " + std::to_string(chat.position()) + " of " +
           std::to_string(chat.model().engine().contextLength()) + " tokens; " +
           std::to_string(chat.messages().size()) + " messages\n" +
           describe("last", chat.lastCounts()) +
           describe("all", chat.totalCounts()) +
           "seed: " + std::to_string(chat.seed()) + "\n";
  }

  ChatSession &chat;
  LineReader lines;
  Status output; ///< of writing to stdout
  HeldWarnings warnings;
  bool wraps; ///< answers are broken into lines
  bool done = false, wasInterrupted = false, noted = false;
  int code = ExitSuccess;
};

} // namespace

int kf::runChat(Arguments arguments) {
  ChatOptions options;
  bool noWrap = false, noEscape = false;
  OptionParser parser(
      "chat [MODEL] [options]",
      "Talks with a model. Lines from stdin are what the user says, those "
      "that begin with / are commands (/help). Only tokens that are not in "
      "the cache are computed.");
  parser.text({"system", 0, "TEXT"}, options.system,
              "the system message, which tells the model how to be",
              OptionParser::Empty::Allowed);
  options.chatTemplate.addTo(parser);
  parser.integer({"tokens", 'n', "N"}, options.tokens, 1, int64_t(1) << 24,
                 "the most tokens of an answer; by default what the model "
                 "recommends (generation_config.json's max_new_tokens), or as "
                 "many as fit");
  parser.flag({"no-wrap"}, noWrap,
              "leaves it to the terminal where lines of answers end");
  addEscapeFlag(parser, noEscape,
                [&] { options.system = unescaped(options.system); });
  addSamplerFlags(parser, options.sampler, ModelSampling::Always);
  options.format.addTo(parser);
  options.model.addTo(parser);
  options.model.addRanksTo(parser);
  options.model.addDraftsTo(parser);
  options.model.lora.addOneTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  Result<std::unique_ptr<ChatSession>> chat = ChatSession::open(options);
  if (!chat.ok())
    return report(chat.status());
  catchEveryInterrupt();
  const int code = Repl(**chat, !noWrap).run();
  const int shown = report(showProfile(options.model, (*chat)->model()));
  return code == ExitSuccess ? shown : code;
}
