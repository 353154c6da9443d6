//===- Tune.cpp - kf-run tune ---------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Interrupt.h"
#include "MeasuredCeilings.h"
#include "ModelFlags.h"
#include "Progress.h"
#include "Report.h"
#include "RowsTuner.h"
#include "TerminalObserver.h"
#include "TuneReport.h"

#include "runtime/core/Quote.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "runtime/engine/Engine.h"
#include "runtime/measure/Ceilings.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>

using namespace kf;

namespace {

/// Seconds that no kernel is worth less of, as long as there are any.
constexpr double kLeastSeconds = 0.25;
/// What of all time goes to what products read their rows in.
constexpr double kShareOfRows = 0.25;
/// Kernels that are named where some are left.
constexpr size_t kMostNamed = 4;

struct TuneOptions {
  ModelFlags model;
  std::string budget = "60s", database, explain, kernel;
  std::vector<std::string> tries;
  int64_t depth = 512, batch = 1;
  bool list = false, again = false;
  double seconds = 0; ///< of `budget`

  void addTo(OptionParser &parser) {
    model.addTo(parser);
    parser.text({"budget", 0, "TIME"}, budget,
                "what measuring may take: 90s, 2m or 500ms, seconds without a "
                "unit; 60s by default. "
                "The same command goes on where the last one ended");
    parser.text({"kernel", 0, "NAME"}, kernel,
                "tunes this kernel alone, as tune and emit-mlir name it");
    parser.texts({"try", 0, "SCHEDULE"}, tries,
                 "tries a schedule of your own, too, as emit-mlir prints them; "
                 "needs --kernel");
    parser.integer({"batch", 'b', "N"}, batch, 1, 1024,
                   "sequences that generate at once: tunes the programs for "
                   "as many, as bench runs them; 1 by default");
    parser.integer({"depth", 0, "N"}, depth, 0, int64_t(1) << 24,
                   "positions before a token that is generated; 512 by "
                   "default");
    parser.flag({"again"}, again, "measures what was measured before, too");
    parser.flag({"list"}, list, "prints what the database holds");
    parser.text({"explain", 0, "KERNEL"}, explain,
                "prints how the schedule of a kernel was chosen");
  }
};

Result<double> parseSeconds(const std::string &text) {
  double value = 0;
  auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  const double scale = unit == "ms"                ? 1e-3
                       : unit == "m"               ? 60
                       : unit == "s" || unit == "" ? 1
                                                   : 0;
  if (code != std::errc() || scale == 0 || !(value > 0) || value * scale > 1e6)
    return Status::error(
        "--budget takes a time such as 90s, 2m, 500ms or 90, not " +
        inQuotes(text));
  return value * scale;
}

/// A file that is not there is an empty database.
Result<TuningDatabase> loadDatabase(const std::string &path) {
  Result<TuningDatabase> database = TuningDatabase::load(path);
  if (!database.ok())
    return Status::error(database.message() +
                         "; name another file with --tuning-db, or remove it");
  return database;
}

/// What a step of `rows` counts among those of `sizes`: what sequences generate
/// with, `generating`, as much as all others; the last one, which long prompts
/// take, as much as what is left, of short prompts and of other numbers of
/// sequences.
double weightOfStep(int64_t rows, int64_t generating,
                    std::span<const int64_t> sizes) {
  const size_t others = sizes.size() < 3 ? 0 : sizes.size() - 2;
  if (rows == generating)
    return others ? 2 : 1;
  return rows == sizes.back() || !others ? 1 : 1 / double(others);
}

/// The kernels' names, and which steps have them: "a, b (body_1, body_16); c
/// (body_16)".
std::string namesOf(std::span<const TuneTask> tasks) {
  std::vector<std::string> names;
  std::map<std::string, std::string> stepsOf;
  for (const TuneTask &task : tasks) {
    std::string &steps = stepsOf[task.info().name];
    if (steps.empty())
      names.push_back(task.info().name);
    steps += (steps.empty() ? "" : ", ") + task.step->name;
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string &steps = stepsOf[names[i]];
    text += names[i];
    if (i + 1 < names.size() && stepsOf[names[i + 1]] == steps)
      text += ", ";
    else
      text += " (" + steps + (i + 1 < names.size() ? "); " : ")");
  }
  return text;
}

/// What a run of the command works on.
class TuneSession {
public:
  static Result<std::unique_ptr<TuneSession>> open(const TuneOptions &options);

  /// Finds what products read their rows in, with a part of the time.
  Status tuneRows();
  /// Takes the kernels that there are then.
  Status takeKernels();
  Status tune();
  Status explain();

private:
  explicit TuneSession(const TuneOptions &options) : options(options) {}

  /// A program that an engine asks for, as TunedStep has it.
  struct Program {
    StepShape shape;
    int64_t tokens, sequences;
    double weight;
  };
  struct RowsTask {
    const Program *program;
    RowChoice choice;
  };

  void findPrograms();
  Result<CompilerModule> import(const Program &program);
  Result<TunedStep> makeStep(const Program &program,
                             const TuningDatabase &measured);
  Result<std::vector<RowsTask>> rowsTasks();
  Status tuneRows(const RowsTask &task, const TunerOptions &tunerOptions,
                  double seconds, const std::function<void(double)> &show);
  Result<TuningDatabase> rowsAlone() const;
  Status chooseTasks();
  Result<TunerOptions> tunerOptions();
  Status tune(KernelTuner &tuner, std::span<const TuneTask *const> rest,
              size_t number, size_t count);
  Status summarize(const KernelTuner &tuner, size_t tuned) const;
  Status writeTable(const std::string &rows);
  Result<uint64_t> rotateBytes() const;

  const TuneOptions &options;
  std::unique_ptr<Session> run;
  std::unique_ptr<Device> reference = createReferenceDevice();
  std::unique_ptr<ThreadPool> pool;
  TuningDatabase database;
  CompilerOptions compiler;
  double rowsSeconds = 0; ///< that tuneRows() took
  size_t rowsLeft = 0;    ///< that it had no time or no quiet machine for
  bool hasTable = false;  ///< whether its head is written
  std::vector<Program> programs;
  std::vector<TunedStep> steps;
  std::vector<TuneTask> tasks; ///< those that take the most time first
  size_t disturbed = 0;        ///< kernels that were tuned on a busy machine
};

Result<std::unique_ptr<TuneSession>>
TuneSession::open(const TuneOptions &options) {
  std::unique_ptr<TuneSession> session(new TuneSession(options));
  KF_ASSIGN_OR_RETURN(session->database, loadDatabase(options.database));
  KF_ASSIGN_OR_RETURN(session->run,
                      openSession(options.model, false, &session->compiler));
  if (session->run->device().name() == "reference")
    return Status::error("the reference has no schedules; tune for another "
                         "--device");
  session->compiler.tuningFile = options.database;
  session->findPrograms();
  return session;
}

void TuneSession::findPrograms() {
  const int64_t context = options.model.context
                              ? options.model.context
                              : run->files().config.maxPositions;
  // A prompt's step has as many rows as the contexts have room for.
  const int64_t most =
      std::min(promptRowsOf(run->files().config, run->device()),
               options.batch * context);
  const int64_t chosen = std::min({options.batch, kMostChosenPerStep, most});
  const std::vector<int64_t> sizes =
      programRows(most, options.batch, run->files().config, run->device());
  const int64_t generating =
      *std::ranges::lower_bound(sizes, std::min(chosen, sizes.back()));
  for (int64_t rows : sizes) {
    const int64_t texts = std::min(rows, chosen);
    const double weight = weightOfStep(rows, generating, sizes);
    // Larger ones are of prompts, one after the other, or of others that
    // generate.
    const bool generates = rows <= generating;
    const bool isShared = options.batch > 1 && isForGenerating(rows);
    const int64_t sequences = generates ? texts : isShared ? rows : 1;
    programs.push_back(
        {{StepPart::Body, rows}, generates ? texts : rows, sequences, weight});
    if (generates)
      for (StepPart part : {StepPart::Head, StepPart::Choose})
        programs.push_back({{part, rows}, texts, texts, weight});
  }
}

Result<CompilerModule> TuneSession::import(const Program &program) {
  const ModelFiles &files = run->files();
  Result<CompilerModule> module = CompilerModule::import(
      files.config, *files.weights, program.shape, compiler);
  if (!module.ok())
    return nameModel(files, module.status());
  return module;
}

/// With products that read their rows as `measured` says.
Result<TunedStep> TuneSession::makeStep(const Program &program,
                                        const TuningDatabase &measured) {
  CompilerOptions with = compiler;
  with.tuning = std::make_shared<const TuningDatabase>(measured);
  KF_ASSIGN_OR_RETURN(CompilerModule module, import(program));
  KF_ASSIGN_OR_RETURN(KernelSet kernels, module.kernels(with));
  return TunedStep{nameOf(program.shape), program.tokens, program.sequences,
                   program.weight, std::move(kernels)};
}

Status TuneSession::takeKernels() {
  const Progress progress("taking the model's kernels");
  for (const Program &program : programs) {
    KF_ASSIGN_OR_RETURN(TunedStep step, makeStep(program, database));
    steps.push_back(std::move(step));
  }
  return chooseTasks();
}

/// Those that the database does not answer yet.
Result<std::vector<TuneSession::RowsTask>> TuneSession::rowsTasks() {
  const Progress progress("looking at rows of products");
  std::vector<RowsTask> found;
  std::set<TuningKey> keys;
  for (const Program &program : programs) {
    KF_ASSIGN_OR_RETURN(CompilerModule module, import(program));
    KF_ASSIGN_OR_RETURN(std::vector<RowChoice> choices,
                        module.rowChoices(compiler));
    for (RowChoice &choice : choices)
      if (keys.insert(choice.key).second &&
          (options.again || !database.find(choice.key)))
        found.push_back({&program, std::move(choice)});
  }
  return found;
}

Status TuneSession::tuneRows() {
  KF_ASSIGN_OR_RETURN(const std::vector<RowsTask> rest, rowsTasks());
  if (rest.empty())
    return Status();
  // Before anything is measured that could not be kept.
  KF_RETURN_IF_ERROR(database.save(options.database));
  KF_ASSIGN_OR_RETURN(const TunerOptions tunerOptions, this->tunerOptions());
  const Stopwatch watch;
  const double all = options.seconds * kShareOfRows;
  size_t number = 0;
  for (; number < rest.size() && watch.seconds() < all; ++number) {
    const double left = all - watch.seconds();
    const double seconds = std::max(
        left / static_cast<double>(rest.size() - number), kLeastSeconds);
    Progress progress("tuning");
    const std::string detail = nameOf(rest[number].program->shape) + " " +
                               rest[number].choice.subject.op + ", " +
                               std::to_string(number + 1) + " of " +
                               std::to_string(rest.size());
    const double done = watch.seconds();
    Status status =
        tuneRows(rest[number], tunerOptions, seconds, [&](double share) {
          progress.update(
              std::min((done + share * seconds) / options.seconds, 1.0),
              detail);
        });
    if (!status.ok()) {
      if (number > 0)
        KF_RETURN_IF_ERROR(writeStdout(std::to_string(number) +
                                       " tuned now, rows of products "
                                       "alone; in " +
                                       options.database + "\n"));
      return status;
    }
  }
  rowsSeconds = watch.seconds();
  rowsLeft += rest.size() - number;
  return Status();
}

Status TuneSession::tuneRows(const RowsTask &task,
                             const TunerOptions &tunerOptions, double seconds,
                             const std::function<void(double)> &show) {
  show(0);
  auto makeWay = [&](const std::string &rows) -> Result<TunedStep> {
    KF_ASSIGN_OR_RETURN(TuningDatabase measured, rowsAlone());
    TuningEntry entry;
    entry.key = task.choice.key;
    entry.subject = task.choice.subject;
    entry.schedule = rows;
    entry.seconds = 1; // any
    KF_RETURN_IF_ERROR(measured.insert(entry));
    return makeStep(*task.program, measured);
  };
  const std::string name = nameOf(task.program->shape);
  const Result<std::optional<TuneResult>> tuned =
      kf::tuneRows(task.choice, makeWay, run->device(), *reference,
                   tunerOptions, seconds, show);
  if (!tuned.ok())
    return tuned.status().in(name + " " + task.choice.subject.op);
  const std::optional<TuneResult> &result = *tuned;
  if (!result)
    return Status();
  // A busy machine says nothing.
  if (result->disturbed) {
    ++rowsLeft;
    printWarning("other processes had cores while " + name + " " +
                 task.choice.subject.op +
                 " were measured, which stay as they were; the same command "
                 "measures them anew");
  } else {
    KF_RETURN_IF_ERROR(database.insert(result->entry));
    KF_RETURN_IF_ERROR(database.save(options.database));
  }
  return writeTable(rowsTableRows(name, task.choice, result->entry));
}

/// What was measured for rows. Kernels get the schedules that the target
/// chooses then: those that were measured are of kernels of one way alone.
Result<TuningDatabase> TuneSession::rowsAlone() const {
  TuningDatabase rows;
  for (TuningEntry &entry : database.list())
    if (entry.schedule.starts_with("#kf.rows<"))
      KF_RETURN_IF_ERROR(rows.insert(std::move(entry)));
  return rows;
}

/// Rows of a table, which has a head before the first of them.
Status TuneSession::writeTable(const std::string &rows) {
  return writeStdout((std::exchange(hasTable, true) ? "" : tuneTableHead()) +
                     rows);
}

Result<TunerOptions> TuneSession::tunerOptions() {
  TunerOptions made;
  // A first measurement may have taken more than the share of rows.
  made.budget = std::max(options.seconds - rowsSeconds,
                         (1 - kShareOfRows) * options.seconds);
  made.depth = options.depth;
  made.again = options.again;
  made.cancelled = &interruptFlag();
  KF_ASSIGN_OR_RETURN(made.rotateBytes, rotateBytes());
  if (!pool && options.model.device.threads != 1) {
    KF_ASSIGN_OR_RETURN(pool,
                        ThreadPool::create(int(options.model.device.threads)));
  }
  made.pool = pool.get();
  return made;
}

Status TuneSession::chooseTasks() {
  MachineRates rates;
  if (options.explain.empty()) {
    CeilingOptions ceilings;
    ceilings.cancelled = &interruptFlag();
    // As much as kernels are measured with, and no less than threads are fast
    // with: filling memory far beyond all caches takes long.
    KF_ASSIGN_OR_RETURN(ceilings.mostReadBytes, rotateBytes());
    ceilings.mostReadBytes = std::max(ceilings.mostReadBytes, kLeastReadBytes);
    const Progress progress("measuring the machine");
    KF_ASSIGN_OR_RETURN(rates, measureCeilings(run->device(), ceilings));
  }
  KF_ASSIGN_OR_RETURN(tasks, KernelTuner::tasksOf(steps, rates));
  const std::string &wanted =
      options.explain.empty() ? options.kernel : options.explain;
  if (!wanted.empty()) {
    const std::string names = namesOf(tasks);
    std::erase_if(tasks, [&](const TuneTask &task) {
      return task.info().name != wanted && task.name() != wanted;
    });
    if (tasks.empty())
      return Status::error("the model has no kernel " + inQuotes(wanted) +
                           "; it has " + names);
  }
  for (TuneTask &task : tasks)
    for (const std::string &schedule : options.tries) {
      std::vector<ScheduleCandidate> &all = task.candidates;
      if (schedule == all[0].schedule)
        continue;
      std::erase_if(all, [&](const ScheduleCandidate &candidate) {
        return candidate.schedule == schedule;
      });
      all.insert(all.begin() + 1, {schedule, 0});
    }
  std::ranges::sort(tasks, {}, [](const TuneTask &task) {
    return std::tuple(-task.weight(), task.step, task.kernel);
  });
  return Status();
}

/// Bytes that a step reads, as far as the device's last cache may hold them.
Result<uint64_t> TuneSession::rotateBytes() const {
  const WeightSource &weights = *run->files().weights;
  uint64_t bytes = 0;
  for (const std::string &name : weights.names()) {
    KF_ASSIGN_OR_RETURN(TensorView view, weights.describe(name));
    bytes += view.bytes;
  }
  return std::min(bytes, 2 * lastCacheBytes(run->device()));
}

Status TuneSession::explain() {
  std::string text;
  for (const TuneTask &task : tasks)
    text += (text.empty() ? "" : "\n") +
            explanation(task, database.find(task.info().key));
  return writeStdout(text);
}

Status TuneSession::tune() {
  // Before anything is measured that could not be kept.
  KF_RETURN_IF_ERROR(database.save(options.database));
  KF_ASSIGN_OR_RETURN(const TunerOptions tunerOptions, this->tunerOptions());
  KernelTuner tuner(run->device(), *reference, database, tunerOptions);

  std::vector<const TuneTask *> rest;
  // What was not tuned at all goes before what has schedules left.
  for (const bool tuned : {false, true})
    for (const TuneTask &task : tasks)
      if (tuner.isTuned(task) == tuned &&
          (options.again ? task.candidates.size() > 1 : !tuner.isDone(task)))
        rest.push_back(&task);
  size_t number = 0;
  for (; number < rest.size() && tuner.left() > 0; ++number) {
    Status status =
        tune(tuner, std::span(rest).subspan(number), number, rest.size());
    if (!status.ok()) {
      // Of the kernel that was interrupted.
      KF_RETURN_IF_ERROR(database.save(options.database));
      KF_RETURN_IF_ERROR(summarize(tuner, number));
      return status;
    }
  }
  return summarize(tuner, number);
}

/// Tunes the first of `rest`, with its part of the time that is left.
Status TuneSession::tune(KernelTuner &tuner,
                         std::span<const TuneTask *const> rest, size_t number,
                         size_t count) {
  const TuneTask &task = *rest[0];
  double shares = 0;
  for (const TuneTask *other : rest)
    shares += other->weight();
  const double left = tuner.left();
  const double seconds = std::max(left * task.weight() / shares, kLeastSeconds);
  Progress progress("tuning");
  const std::string detail = task.name() + ", " + std::to_string(number + 1) +
                             " of " + std::to_string(count);
  const double done = options.seconds - left;
  auto show = [&](double share) {
    progress.update(std::min((done + share * seconds) / options.seconds, 1.0),
                    detail);
  };
  show(0);
  Result<TuneResult> result = tuner.tune(task, seconds, show);
  if (!result.ok())
    return result.status().in(task.name());
  disturbed += result->disturbed;
  KF_RETURN_IF_ERROR(database.save(options.database));
  return writeTable(tuneTableRows(task, result->entry));
}

Status TuneSession::summarize(const KernelTuner &tuner, size_t tuned) const {
  if (disturbed)
    printWarning("other processes had cores while " +
                 std::to_string(disturbed) + " of " + std::to_string(tuned) +
                 " kernels were measured, which keep the schedules that they "
                 "had; --again measures them anew");
  size_t known = 0, all = 0, begun = 0;
  std::vector<std::string> missing;
  for (const TuneTask &task : tasks) {
    if (task.candidates.size() < 2)
      continue;
    ++all;
    if (!tuner.isTuned(task))
      missing.push_back(task.name());
    else if (++known; !options.again && !tuner.isDone(task))
      ++begun;
  }
  if (all == 0)
    return writeStdout("nothing to tune: there is a single schedule\n");
  std::string text = tuned ? "\n" : "";
  for (const TunedStep &step : steps)
    text += gainText(step, database);
  text += std::to_string(tuned) + " tuned now, " + std::to_string(known) +
          " of " + std::to_string(all) + " kernels in all; in " +
          options.database + "\n";
  if (!missing.empty()) {
    text += "not tuned yet: ";
    for (size_t i = 0; i < std::min(missing.size(), kMostNamed); ++i)
      text += (i ? ", " : "") + missing[i];
    if (missing.size() > kMostNamed)
      text += " and " + std::to_string(missing.size() - kMostNamed) + " more";
    text += "\n";
  }
  if (begun)
    text +=
        "tuned, with schedules left to try: " + std::to_string(begun) + "\n";
  if (rowsLeft)
    text +=
        "rows of products not measured yet: " + std::to_string(rowsLeft) + "\n";
  if (!options.again && (begun || rowsLeft || !missing.empty()))
    text += "the same command goes on with these\n";
  return writeStdout(text);
}

Status list(const TuneOptions &options) {
  KF_ASSIGN_OR_RETURN(TuningDatabase database, loadDatabase(options.database));
  KF_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                      openDevice(options.model.device, &terminal()));
  KF_ASSIGN_OR_RETURN(const CompilerOptions compiler,
                      compilerOptionsFor(options.model, *device));
  KF_ASSIGN_OR_RETURN(const TuningScope here, tuningScopeOf(compiler));
  return writeStdout(databaseText(database, options.database, here));
}

int finish(const Status &status) {
  return status.isCancelled()
             ? reportInterrupt("the same command goes on from here")
             : report(status);
}

Status runTuning(TuneOptions &options) {
  // The database is written; what is compiled here names its schedules.
  std::optional<std::string> &file = options.model.tuning.file;
  if (file) {
    options.database = *file;
    // A name that is misspelt is no empty database.
    const bool isRead = options.list || !options.explain.empty();
    std::error_code error;
    if (!isRead)
      KF_RETURN_IF_ERROR(checkOutput(options.database).in("--tuning-db"));
    else if (!std::filesystem::exists(options.database, error))
      return Status::error(
          "--tuning-db: cannot open '" + options.database +
          "': " + (error ? error.message() : "there is no such file"));
  } else {
    KF_ASSIGN_OR_RETURN(options.database, TuningDatabase::defaultPath());
  }
  file = "none";
  if (options.list)
    return list(options);
  catchFirstInterrupt();
  KF_ASSIGN_OR_RETURN(std::unique_ptr<TuneSession> session,
                      TuneSession::open(options));
  if (options.explain.empty() && options.kernel.empty())
    KF_RETURN_IF_ERROR(session->tuneRows());
  KF_RETURN_IF_ERROR(session->takeKernels());
  return options.explain.empty() ? session->tune() : session->explain();
}

} // namespace

int kf::runTune(Arguments arguments) {
  TuneOptions options;
  OptionParser parser(
      "tune [MODEL] [options]",
      "Measures schedules of the kernels that a model's steps have, of one "
      "token, of prompts and of many texts, and keeps the fastest in a "
      "database, which all commands compile with that run as many threads on "
      "the same device. Schedules whose results differ from the reference's "
      "are rejected.");
  options.addTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  Result<double> seconds = parseSeconds(options.budget);
  if (!seconds.ok())
    return parser.usageError(seconds.message());
  options.seconds = *seconds;
  if (!options.tries.empty() && options.kernel.empty())
    return parser.usageError("--try needs --kernel");
  for (std::string &schedule : options.tries) {
    Result<std::string> text = normalizeSchedule(schedule);
    if (!text.ok())
      return parser.usageError("--try: " + text.message());
    schedule = text.take();
  }
  if (options.model.tuning.file == "none")
    return parser.usageError("--tuning-db none leaves no place for what is "
                             "measured");
  if (options.list && !options.explain.empty())
    return parser.usageError("--list and --explain exclude each other");
  if (!options.kernel.empty() && (options.list || !options.explain.empty()))
    return parser.usageError(
        "--kernel says what is tuned, which --list and --explain do nothing "
        "of; --explain KERNEL is about one kernel");
  if (options.list && !options.model.model.empty())
    return parser.usageError("--list is of a whole database and takes no "
                             "MODEL; leave " +
                             inQuotes(options.model.model) + " out");
  if (options.model.profile.file)
    return parser.usageError("--profile is of a model's steps, which tune runs "
                             "none of; leave it out");
  return finish(runTuning(options));
}
