//===- TuneReport.cpp - What kf-run tune prints ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TuneReport.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

using namespace kf;

namespace {

std::string formatted(const char *format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string left(std::string text, size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}
std::string right(const std::string &text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

constexpr size_t kNameWidth = 40, kNumberWidth = 11, kChangeWidth = 13;
constexpr char kIndent[] = "    ";

/// A schedule as lines of a table, its parameters apart where one is too long.
std::string scheduleLines(std::string schedule) {
  constexpr size_t most = 100 - (sizeof(kIndent) - 1);
  std::string text;
  while (schedule.size() > most) {
    const size_t comma = schedule.rfind(", ", most - 1);
    if (comma == std::string::npos)
      break;
    text += kIndent + schedule.substr(0, comma + 1) + "\n";
    schedule = "  " + schedule.substr(comma + 2);
  }
  return text + kIndent + schedule + "\n";
}

/// A row of a table of schedules: its numbers, the schedule below them, and
/// another line that says why it is out.
std::string row(const std::string &name, const std::string &predicted,
                const std::string &measured, const std::string &error,
                const std::string &verdict, const std::string &schedule,
                const std::string &rejected = {}) {
  return left(name, kNameWidth) + right(predicted, kNumberWidth) +
         right(measured, kNumberWidth) + right(error, kNumberWidth) + "  " +
         verdict + "\n" + scheduleLines(schedule) +
         (rejected.empty() ? "" : kIndent + rejected + "\n");
}

std::string timeOrNone(double seconds) {
  return seconds > 0 ? secondsText(seconds) : "-";
}

/// "5.2 % less"; empty where one of them is not known.
std::string change(double seconds, double than) {
  if (seconds <= 0 || than <= 0)
    return "";
  const double percent = (1 - seconds / than) * 100;
  return formatted("%.1f %% ", std::abs(percent)) +
         (percent >= 0 ? "less" : "more");
}

/// What is predicted is not the trial's: the run which measured it may have had
/// other rates.
std::string trialRow(const std::string &name, double predicted,
                     const TuningTrial &trial, const std::string &verdict,
                     double seconds) {
  const bool isRejected = !trial.rejected.empty();
  return row(name, timeOrNone(predicted), timeOrNone(seconds),
             isRejected && trial.error == 0 ? "-"
                                            : formatted("%.1e", trial.error),
             verdict, trial.schedule, trial.rejected);
}

const TuningTrial *find(const TuningEntry &entry, const std::string &schedule) {
  auto found = std::ranges::find(entry.tried, schedule, &TuningTrial::schedule);
  return found == entry.tried.end() ? nullptr : &*found;
}

/// What the default is called when nothing is faster.
std::string verdictOf(const TuningTrial &trial, const TuningEntry &entry,
                      const std::string &byDefault) {
  if (!trial.rejected.empty())
    return "rejected";
  if (trial.schedule == entry.schedule) {
    if (trial.schedule == byDefault)
      return isFinished(entry) ? "default, stays" : "default, so far";
    const std::string gain = change(entry.seconds, entry.defaultSeconds);
    return gain.empty() ? "chosen" : "chosen, " + gain;
  }
  return trial.schedule == byDefault ? "default" : "not chosen";
}

/// Of the default and the winner, the times that they had in turns.
double secondsOf(const TuningTrial &trial, const TuningEntry &entry,
                 const std::string &byDefault) {
  if (trial.schedule == entry.schedule)
    return entry.seconds;
  return trial.schedule == byDefault && entry.defaultSeconds > 0
             ? entry.defaultSeconds
             : trial.seconds;
}

/// A line about what keeps measurements of `scope` from being used `here`;
/// empty where nothing does.
std::string whyUnused(const TuningScope &scope, const TuningScope &here) {
  if (scope.compiler != here.compiler)
    return "not used: this version is " + here.compiler + "\n";
  if (scope.device != here.device)
    return "not used on this device, " + here.device + "\n";
  if (scope.target != here.target)
    return "not used: kernels are compiled for " + here.target + "\n";
  // A hash, which tells nobody anything.
  if (scope.identity != here.identity)
    return "not used: this machine has other features\n";
  return "";
}

std::string plural(size_t count, const char *one, const char *many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

} // namespace

std::string kf::secondsText(double seconds) {
  if (seconds < 1e-3)
    return formatted("%.1f us", seconds * 1e6);
  return seconds < 1 ? formatted("%.2f ms", seconds * 1e3)
                     : formatted("%.2f s", seconds);
}

std::string kf::tuneTableHead() {
  return row("kernel", "predicted", "measured", "error", "verdict", "schedule");
}

std::string kf::tuneTableRows(const TuneTask &task, const TuningEntry &entry) {
  const std::string &byDefault = task.candidates[0].schedule;
  std::string text, name = task.name();
  size_t others = 0;
  auto add = [&](const TuningTrial &trial) {
    text += trialRow(name, task.predictedSeconds(trial.schedule), trial,
                     verdictOf(trial, entry, byDefault),
                     secondsOf(trial, entry, byDefault));
    name.clear();
  };
  if (const TuningTrial *trial = find(entry, byDefault))
    add(*trial);
  for (const TuningTrial &trial : entry.tried) {
    if (trial.schedule == byDefault)
      continue;
    if (trial.schedule == entry.schedule || !trial.rejected.empty())
      add(trial);
    else
      ++others;
  }
  if (others)
    text += "  " + plural(others, "other is", "others are") + " not chosen\n";
  return text;
}

std::string kf::rowsTableRows(const std::string &step, const RowChoice &choice,
                              const TuningEntry &entry) {
  std::string text, name = step + " " + choice.subject.op;
  for (const TuningTrial &trial : entry.tried) {
    text += trialRow(name, /*predicted=*/0, trial,
                     verdictOf(trial, entry, choice.rows[0]),
                     secondsOf(trial, entry, choice.rows[0]));
    name.clear();
  }
  return text;
}

std::string kf::gainText(const TunedStep &step,
                         const TuningDatabase &database) {
  double now = 0, before = 0;
  size_t count = 0;
  for (const KernelInfo &info : step.kernels.list())
    if (const TuningEntry *entry = database.find(info.key);
        entry && entry->defaultSeconds > 0) {
      now += static_cast<double>(info.dispatches) * entry->seconds;
      before += static_cast<double>(info.dispatches) * entry->defaultSeconds;
      ++count;
    }
  if (count == 0)
    return "";
  return step.name + ": " + plural(count, "kernel takes ", "kernels take ") +
         secondsText(now) + " a step, by default " + secondsText(before) +
         " (" + change(now, before) + ")\n";
}

std::string kf::explanation(const TuneTask &task, const TuningEntry *entry) {
  const KernelInfo &info = task.info();
  const std::string &byDefault = task.candidates[0].schedule;
  std::string text = task.name() + ": " + info.description + "; " +
                     plural(size_t(info.rows), "row", "rows") + ", " +
                     plural(size_t(info.dispatches), "dispatch", "dispatches") +
                     " a step, " + formatted("%.1f %%", task.share * 100) +
                     " of its time as predicted\n";
  if (!entry)
    text += "not tuned: the default, " + byDefault + ", is used\n";
  else if (entry->schedule == byDefault && !isFinished(*entry))
    text += "not tuned to the end: the default, " + byDefault + ", is used\n";
  else if (entry->schedule == byDefault)
    text += "the default, " + byDefault +
            ", is used: in turns, nothing that counts was faster for certain\n";
  else
    text += entry->schedule + " is used: it took " +
            secondsText(entry->seconds) +
            (entry->defaultSeconds > 0
                 ? " where the default took " +
                       secondsText(entry->defaultSeconds) + ", in turns\n"
                 : "; the default was not measured\n");
  text += tuneTableHead();
  if (entry) {
    std::vector<const TuningTrial *> trials;
    for (const TuningTrial &trial : entry->tried)
      trials.push_back(&trial);
    std::ranges::sort(trials, {}, [&](const TuningTrial *trial) {
      const double seconds = secondsOf(*trial, *entry, byDefault);
      return std::tuple(!trial->rejected.empty(), seconds, trial);
    });
    for (const TuningTrial *trial : trials)
      text += trialRow("", task.predictedSeconds(trial->schedule), *trial,
                       verdictOf(*trial, *entry, byDefault),
                       secondsOf(*trial, *entry, byDefault));
  }
  for (const ScheduleCandidate &candidate : task.candidates)
    if (!entry || !find(*entry, candidate.schedule))
      text += row("", timeOrNone(candidate.predictedSeconds), "-", "-",
                  candidate.schedule == byDefault ? "default" : "not tried",
                  candidate.schedule);
  return text;
}

std::string kf::databaseText(const TuningDatabase &database,
                             const std::string &path, const TuningScope &here) {
  std::string text;
  const std::vector<TuningEntry> entries = database.list();
  for (const TuningScope &scope : database.scopes()) {
    text += scope.device + ", " + scope.target + ", " + scope.compiler + "\n" +
            whyUnused(scope, here);
    for (const TuningEntry &entry : entries) {
      if (entry.key.scope != scope)
        continue;
      std::string subject = entry.subject.op;
      for (size_t i = 0; i < entry.subject.types.size(); ++i) {
        subject += i ? ", " : " ";
        for (int64_t extent : entry.subject.shapes[i])
          subject += (extent < 0 ? "?" : std::to_string(extent)) + "x";
        subject += entry.subject.types[i];
      }
      text +=
          "  " + subject + "; " +
          plural(size_t(entry.key.rows), "row", "rows") + "\n    " +
          right(secondsText(entry.seconds), kNumberWidth) + "  " +
          left(isFinished(entry) ? change(entry.seconds, entry.defaultSeconds)
                                 : "not compared",
               kChangeWidth) +
          entry.date + "  " + entry.schedule + "\n";
    }
  }
  return text + plural(entries.size(), "entry", "entries") + ", in " + path +
         "\n";
}
