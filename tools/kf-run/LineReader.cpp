//===- LineReader.cpp - Lines from people and from scripts ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LineReader.h"

#include "Progress.h"
#include "Report.h"

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <histedit.h>
#include <langinfo.h>
#include <string_view>
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

/// What people type is UTF-8, also where the locale has no letters beyond
/// ASCII, of which libedit would drop the others. False if no locale has them.
static bool chooseUtf8() {
  for (const char *name : {"", "C.UTF-8", "en_US.UTF-8"})
    if (std::setlocale(LC_CTYPE, name) &&
        std::string_view(nl_langinfo(CODESET)) == "UTF-8")
      return true;
  return false;
}

/// Names of files that begin with `start`, those of folders with a / behind.
static std::vector<std::string> filesThatBegin(const std::string &start) {
  namespace fs = std::filesystem;
  const fs::path path(start);
  const std::string name = path.filename().string();
  const std::string before = start.substr(0, start.size() - name.size());
  std::vector<std::string> found;
  std::error_code error;
  fs::directory_iterator entries(before.empty() ? "." : before, error);
  for (; !error && entries != fs::directory_iterator();
       entries.increment(error)) {
    const std::string entry = entries->path().filename().string();
    std::error_code none;
    if (entry.starts_with(name) && (!name.empty() || entry[0] != '.'))
      found.push_back(before + entry +
                      (entries->is_directory(none) ? "/" : ""));
  }
  return found;
}

/// What all of `words`, of which there is one, begin with.
static std::string commonStart(const std::vector<std::string> &words) {
  std::string common = words.front();
  for (const std::string &word : words)
    common.resize(static_cast<size_t>(std::ranges::mismatch(common, word).in1 -
                                      common.begin()));
  return common;
}

struct LineReader::Editor {
  EditLine *editor = nullptr;
  History *history = nullptr;
  std::string file, prompt;
  std::vector<Command> commands;

  /// What `line`, up to the cursor, can be completed to.
  std::vector<std::string> completions(const std::string &line) const {
    std::vector<std::string> found;
    const size_t blank = line.find(' ');
    for (const Command &command : commands) {
      if (blank == line.npos && command.name.starts_with(line))
        found.push_back(command.name);
      else if (command.takesFile && line.substr(0, blank) == command.name)
        for (const std::string &file : filesThatBegin(line.substr(blank + 1)))
          found.push_back(command.name + " " + file);
    }
    return found;
  }

  static unsigned char completeLine(EditLine *editor, int) {
    void *self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    const LineInfo *info = el_line(editor);
    const std::string line(info->buffer, info->cursor);
    if (!line.starts_with('/'))
      return CC_ERROR;
    std::vector<std::string> found =
        static_cast<Editor *>(self)->completions(line);
    if (found.empty())
      return CC_ERROR;
    std::string text = commonStart(found).substr(line.size());
    if (found.size() == 1 && !found.front().ends_with('/'))
      text += ' ';
    if (!text.empty())
      return el_insertstr(editor, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
    std::ranges::sort(found);
    std::string list = "\n";
    for (const std::string &word : found)
      list += word + "\n";
    std::fputs(list.c_str(), stdout);
    return CC_REDISPLAY;
  }

  static char *promptOf(EditLine *editor) {
    void *self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return static_cast<Editor *>(self)->prompt.data();
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
    el_set(editor, EL_PROMPT, promptOf);
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_HIST, ::history, history);
    // Of narrow strings it makes copies that nothing frees.
    el_wset(editor, EL_ADDFN, L"kf-complete", L"Complete a command",
            completeLine);
    el_set(editor, EL_BIND, "^I", "kf-complete", nullptr);
    el_source(editor, nullptr);
    return true;
  }

  void remember(const std::string &line) {
    HistEvent event;
    ::history(history, &event, H_ENTER, (line + "\n").c_str());
    if (file.empty())
      return;
    // What people say is nobody else's to read.
    const mode_t mask = umask(077);
    ::history(history, &event, H_SAVE, file.c_str());
    umask(mask);
  }

  ~Editor() {
    if (history)
      history_end(history);
    if (editor)
      el_end(editor);
  }
};

LineReader::LineReader()
    : fromTerminal(isatty(STDIN_FILENO)), toTerminal(isatty(STDOUT_FILENO)) {
  if (!interactive() || !chooseUtf8())
    return;
  editor = std::make_unique<Editor>();
  if (!editor->open())
    editor.reset();
}

LineReader::~LineReader() = default;

void LineReader::complete(std::vector<Command> commands) {
  if (editor)
    editor->commands = std::move(commands);
}

Result<LineReader::Event> LineReader::read(std::string &line, bool continued) {
  const std::string prompt = continued ? ". " : "> ";
  if (!editor) {
    if (interactive())
      KF_RETURN_IF_ERROR(writeStdout(prompt));
    return readPlain(line);
  }
  KF_ASSIGN_OR_RETURN(const Event event, readEdited(line, prompt));
  if (event == Event::Line &&
      line.find_first_not_of(" \t") != std::string::npos)
    editor->remember(line);
  return event;
}

Result<bool> LineReader::confirm(const std::string &question) {
  const std::string prompt = question + " [y/N] ";
  if (!editor)
    std::fputs(prompt.c_str(), stderr);
  std::string answer;
  KF_ASSIGN_OR_RETURN(const Event event,
                      editor ? readEdited(answer, prompt) : readPlain(answer));
  return event == Event::Line && !answer.empty() &&
         (answer[0] == 'y' || answer[0] == 'Y');
}

Result<LineReader::Event> LineReader::readEdited(std::string &line,
                                                 const std::string &prompt) {
  editor->prompt = prompt;
  int count = 0;
  errno = 0;
  const char *text = el_gets(editor->editor, &count);
  if (!text || count <= 0) {
    const bool interrupted = errno == EINTR;
    el_reset(editor->editor);
    std::fputc('\n', stdout);
    std::fflush(stdout);
    return interrupted ? Event::Interrupted : Event::End;
  }
  line.assign(text, static_cast<size_t>(count));
  if (line.ends_with('\n'))
    line.pop_back();
  return Event::Line;
}

Result<LineReader::Event> LineReader::readPlain(std::string &line) {
  size_t searched = 0;
  for (;;) {
    const size_t end = pending.find('\n', searched);
    if (end != std::string::npos) {
      if (interactive()) { // the terminal has shown it
        const ProgressPause pause;
        noteShown("\n");
      }
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
