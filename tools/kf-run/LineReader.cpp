//===- LineReader.cpp - Lines from people and from scripts ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LineReader.h"

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <histedit.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace kf;

static constexpr size_t kMaxLine = size_t(16) << 20;
static constexpr int kHistoryLines = 1000;

/// The history's file, its folders made; empty if there is no place for it.
static std::string historyFile() {
  std::string folder;
  const char *state = std::getenv("XDG_STATE_HOME");
  if (state && *state == '/') {
    folder = state;
  } else if (const char *home = std::getenv("HOME"); home && *home == '/') {
    folder = std::string(home) + "/.local";
    mkdir(folder.c_str(), 0700);
    folder += "/state";
  } else {
    return "";
  }
  mkdir(folder.c_str(), 0700);
  folder += "/kernelforge";
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return "";
  return folder + "/chat_history";
}

struct LineReader::Terminal {
  EditLine *editor = nullptr;
  History *history = nullptr;
  std::string file;
  bool continued = false;

  static char *prompt(EditLine *editor) {
    void *self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    static char first[] = "> ", next[] = ". ";
    return static_cast<Terminal *>(self)->continued ? next : first;
  }

  /// Whether the terminal can be edited on.
  bool open() {
    editor = el_init("kf-run", stdin, stdout, stderr);
    history = history_init();
    if (!editor || !history)
      return false;
    HistEvent event;
    ::history(history, &event, H_SETSIZE, kHistoryLines);
    ::history(history, &event, H_SETUNIQUE, 1);
    file = historyFile();
    if (!file.empty())
      ::history(history, &event, H_LOAD, file.c_str());
    el_set(editor, EL_CLIENTDATA, this);
    el_set(editor, EL_PROMPT, prompt);
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_HIST, ::history, history);
    el_source(editor, nullptr);
    return true;
  }

  void remember(const char *line) {
    HistEvent event;
    ::history(history, &event, H_ENTER, line);
    if (file.empty())
      return;
    // What people say is nobody else's to read.
    const mode_t mask = umask(077);
    ::history(history, &event, H_SAVE, file.c_str());
    umask(mask);
  }

  ~Terminal() {
    if (history)
      history_end(history);
    if (editor)
      el_end(editor);
  }
};

LineReader::LineReader() {
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
    return;
  std::setlocale(LC_CTYPE, "");
  terminal = std::make_unique<Terminal>();
  if (!terminal->open())
    terminal.reset();
}

LineReader::~LineReader() = default;

Result<LineReader::Event> LineReader::read(std::string &line, bool continued) {
  return terminal ? readTerminal(line, continued) : readPlain(line);
}

Result<LineReader::Event> LineReader::readTerminal(std::string &line,
                                                   bool continued) {
  terminal->continued = continued;
  int count = 0;
  errno = 0;
  const char *text = el_gets(terminal->editor, &count);
  if (!text || count <= 0) {
    const bool interrupted = errno == EINTR;
    el_reset(terminal->editor);
    std::fputc('\n', stdout);
    std::fflush(stdout);
    return interrupted ? Event::Interrupted : Event::End;
  }
  line.assign(text, static_cast<size_t>(count));
  if (line.ends_with('\n'))
    line.pop_back();
  if (line.find_first_not_of(" \t") != std::string::npos)
    terminal->remember(text);
  return Event::Line;
}

Result<LineReader::Event> LineReader::readPlain(std::string &line) {
  size_t searched = 0;
  for (;;) {
    const size_t end = pending.find('\n', searched);
    if (end != std::string::npos) {
      line = pending.substr(0, end);
      pending.erase(0, end + 1);
      return Event::Line;
    }
    searched = pending.size();
    if (searched > kMaxLine)
      return Status::error("stdin has a line of more than 16 MiB; no context "
                           "is that long");
    char buffer[65536];
    const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR)
      return Event::Interrupted;
    if (count < 0)
      return Status::error(std::string("cannot read stdin: ") +
                           std::strerror(errno));
    if (count == 0 && pending.empty())
      return Event::End;
    if (count == 0) {
      line = std::exchange(pending, {});
      return Event::Line;
    }
    pending.append(buffer, static_cast<size_t>(count));
  }
}
