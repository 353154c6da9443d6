//===- LineReader.h - Lines from people and from scripts --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_LINEREADER_H
#define KF_TOOLS_KF_RUN_LINEREADER_H

#include "runtime/core/Status.h"

#include <memory>
#include <string>
#include <vector>

namespace kf {

/// Reads stdin line by line: with a prompt, editing and a history that lasts
/// (libedit) where stdin and stdout are a terminal, as it is where not. Lines
/// are UTF-8 in every locale. Interrupts must not restart system calls (no
/// SA_RESTART). One thread, one object at a time.
class LineReader {
public:
  /// The history is the file chat_history in $XDG_STATE_HOME/kernelforge
  /// (~/.local/state/kernelforge); without a place for it there is none.
  LineReader();
  LineReader(const LineReader &) = delete;
  LineReader &operator=(const LineReader &) = delete;
  ~LineReader();

  enum class Event { Line, Interrupted, End };
  /// Reads one line, at most 16 MiB, without its line break. `continued` shows
  /// the prompt of a line that continues another. Fails if stdin does.
  Result<Event> read(std::string &line, bool continued = false);
  /// Asks `question`; true if the answer begins with y. An interrupt and the
  /// end of stdin are a no.
  Result<bool> confirm(const std::string &question);

  /// A word that a line may begin with, and whether a file's name follows it.
  struct Command {
    std::string name;
    bool takesFile = false;
  };
  /// What the tab key completes, where lines can be edited.
  void complete(std::vector<Command> commands);

  /// Stdin is a terminal: lines are typed.
  bool typed() const { return fromTerminal; }
  /// Stdout is one, too: a person types and sees.
  bool interactive() const { return fromTerminal && toTerminal; }

private:
  struct Editor;
  Result<Event> readPlain(std::string &line);
  Result<Event> readEdited(std::string &line, const std::string &prompt);

  bool fromTerminal, toTerminal;
  std::unique_ptr<Editor> editor; ///< null: there is nothing to edit on
  std::string pending;            ///< that was read and not handed out
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_LINEREADER_H
