//===- Bench.cpp - kf-run bench -------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BenchCeilings.h"
#include "BenchOutput.h"
#include "BenchTest.h"
#include "Commands.h"
#include "Interrupt.h"
#include "MeasuredCeilings.h"
#include "ModelFlags.h"
#include "Progress.h"
#include "Report.h"

#include "runtime/core/Quote.h"
#include "runtime/model/ModelWork.h"

#include <algorithm>
#include <charconv>
#include <ctime>

using namespace kf;

namespace {

constexpr int64_t kMostTokens = int64_t(1) << 24;
constexpr int64_t kMostSequences = 1024;

/// What -pg says: tokens of a prompt, and those that are generated behind it.
struct PromptAndText {
  int64_t prompt = 0, generated = 0;
};

/// "512,128".
Result<PromptAndText> parsePair(std::string_view text) {
  PromptAndText pair;
  const char *last = text.data() + text.size();
  auto [comma, first] = std::from_chars(text.data(), last, pair.prompt);
  if (first == std::errc() && comma != last && *comma == ',') {
    auto [end, second] = std::from_chars(comma + 1, last, pair.generated);
    auto fits = [](int64_t n) { return n >= 1 && n <= kMostTokens; };
    if (second == std::errc() && end == last && fits(pair.prompt) &&
        fits(pair.generated))
      return pair;
  }
  return Status::error("-pg takes the tokens of a prompt and those to "
                       "generate, as in 512,128, not " +
                       inQuotes(text));
}

struct BenchOptions {
  ModelFlags model;
  std::vector<int64_t> prompts, generated, sequences, threads, depths;
  std::vector<std::string> pairTexts;
  std::vector<PromptAndText> pairs;
  int64_t repetitions = 5;
  std::string output = "md";
  std::string preset; ///< once it is read; empty: none

  void addTo(OptionParser &parser) {
    parser.integers({"n-prompt", 'p', "N,..."}, prompts, 0, kMostTokens,
                    "tokens of a prompt to read: tests pp<N>; 512 by default, "
                    "0: none");
    parser.integers({"n-gen", 'n', "N,..."}, generated, 0, kMostTokens,
                    "tokens to generate: tests tg<N>; 128 by default, 0: none");
    parser.texts({"pg", 0, "P,N", /*oneDash=*/true}, pairTexts,
                 "reads a prompt of P tokens and generates N behind it: a test "
                 "pp<P>+tg<N>; may be given any number of times");
    parser.integers({"sequences", 's', "N,..."}, sequences, 1, kMostSequences,
                    "sequences that generate at once, whose tokens count "
                    "together; 1 by default. Tests pp<N> have one");
    parser.integers({"n-depth", 'd', "N,..."}, depths, 0, kMostTokens,
                    "tokens that a sequence has before a test begins; 0 by "
                    "default");
    parser.integers({"threads", 't', "N,..."}, threads, 0,
                    ThreadPool::maxThreads,
                    "threads of the CPU device; 0, the default, is one per CPU "
                    "that the process may use");
    parser.integer({"repetitions", 'r', "N"}, repetitions, 1, 1000000,
                   "runs of each test, after one that does not count; 5 by "
                   "default");
    parser.choice({"output", 'o', "FORMAT"}, output,
                  {"md", "json", "jsonl", "csv"},
                  "md (the default), json, jsonl (an object a line) or csv");
    model.addTo(parser, /*withThreads=*/false);
    model.addRanksTo(parser);
    model.addDraftsTo(parser);
    model.lora.addTo(parser);
    parser.addCheck([this] { return complete(); });
  }

  /// Every test for one number of threads, those of as many sequences together.
  std::vector<BenchTest> tests() const {
    std::vector<BenchTest> tests;
    auto add = [&](int64_t prompt, int64_t count, int64_t depth,
                   int64_t parallel) {
      if (prompt || count)
        tests.push_back({prompt, count, depth, parallel});
    };
    for (int64_t depth : depths)
      for (int64_t prompt : prompts)
        add(prompt, 0, depth, 1);
    for (int64_t parallel : sequences)
      for (int64_t depth : depths) {
        for (int64_t count : generated)
          add(0, count, depth, parallel);
        for (const PromptAndText &pair : pairs)
          add(pair.prompt, pair.generated, depth, parallel);
      }
    return tests;
  }

private:
  Status complete() {
    for (const std::string &text : pairTexts) {
      KF_ASSIGN_OR_RETURN(const PromptAndText pair, parsePair(text));
      pairs.push_back(pair);
    }
    auto setDefault = [](std::vector<int64_t> &values, int64_t value) {
      if (values.empty())
        values = {value};
    };
    setDefault(prompts, 512);
    setDefault(generated, 128);
    setDefault(sequences, 1);
    setDefault(depths, 0);
    setDefault(threads, 0);
    if (threads.size() > 1 && model.profile.file &&
        !model.profile.file->empty())
      return Status::error("--profile=FILE takes the trace of one number of "
                           "threads; give one with -t");
    return tests().empty() ? Status::error("there is nothing to measure: -p "
                                           "and -n are 0, and there is no -pg")
                           : Status();
  }
};

std::string timeNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  const size_t size = std::strftime(text, sizeof(text), "%FT%TZ", &utc);
  return std::string(text, size);
}

/// A GPU raises its clocks when it has work, and its driver may take a fifth of
/// a second for that, in which it is four times as slow (Vulkan on an H200).
constexpr double kGpuWarmUpSeconds = 0.5;

/// Runs the tests of one number of threads.
class Bench {
public:
  Bench(const BenchOptions &options, BenchOutput &output)
      : options(options), output(output) {}

  /// Opens the model.
  Status open(int64_t threads);
  /// An error if a test needs a longer context than there is.
  Status checkContext() const;
  Status run();

  int64_t finished() const { return count; }
  /// Of the model that is open.
  BenchSubject subject() const;

private:
  Status runTest(const BenchTest &test);

  const BenchOptions &options;
  BenchOutput &output;
  std::unique_ptr<Session> session;
  CompilerOptions compiler; ///< what it compiles with
  std::optional<ModelWork> work;
  std::optional<BenchCeilings> ceilings; ///< none where ranks share positions
  /// Of a test at least: others had cores, or more than all of it was reached.
  bool lowCeilings = false;
  int64_t count = 0; ///< tests that are finished
};

Status Bench::open(int64_t threads) {
  ceilings.reset();
  work.reset();
  session.reset();
  ModelFlags flags = options.model;
  flags.device.threads = threads;
  if (!flags.context && !flags.wholeContext)
    for (const BenchTest &test : options.tests())
      flags.context = std::max(flags.context, test.positions());
  KF_ASSIGN_OR_RETURN(session,
                      openSession(flags, /*withTokenizer=*/false, &compiler));
  KF_RETURN_IF_ERROR(checkContext());
  const ModelFiles &files = session->files();
  KF_ASSIGN_OR_RETURN(const DataType cacheType,
                      parseDataType(compiler.cacheType));
  Result<ModelWork> told =
      ModelWork::of(files.config, *files.weights, cacheType);
  if (!told.ok())
    return nameModel(files, told.status());
  work = told.take();
  // Each rank computes all but a part of the attention: the sum of their rates
  // is not for one's work.
  if (flags.parallelism == Parallelism::Context)
    return Status();
  double mostBytes = 0;
  for (const BenchTest &test : options.tests())
    mostBytes = std::max(mostBytes, mostStepBytes(*work, test));
  const Progress progress("measuring " + session->device().name());
  KF_ASSIGN_OR_RETURN(BenchCeilings made,
                      BenchCeilings::create(session->device(),
                                            session->ranksAtOnce(), *work,
                                            mostBytes));
  ceilings.emplace(std::move(made));
  return Status();
}

Status Bench::checkContext() const {
  const int64_t limit = options.model.context
                            ? options.model.context
                            : session->files().config.maxPositions;
  for (const BenchTest &test : options.tests())
    if (test.positions() > limit)
      return Status::error("test " + test.name() + " takes " +
                           std::to_string(test.positions()) +
                           " positions, but " +
                           (options.model.context ? "--context" : "the model") +
                           " has room for " + std::to_string(limit) +
                           "; choose less with -p, -n, -pg and -d");
  return Status();
}

BenchSubject Bench::subject() const {
  const ModelFiles &files = session->files();
  Device &device = session->device();
  BenchSubject subject;
  subject.model = files.name;
  subject.architecture = nameOf(files.config.architecture);
  subject.weightType = nameOf(work->weightType());
  subject.cacheType = compiler.cacheType;
  subject.activationType = compiler.activationType;
  subject.modelBytes = work->tensorBytes();
  subject.parameters = work->parameters();
  subject.device = device.name();
  subject.description = device.description();
  subject.isHost = device.name() == "cpu" || device.name() == "reference";
  subject.preset = options.preset;
  subject.ranks = session->ranks();
  subject.threads = subject.isHost
                        ? session->ranksAtOnce() * std::max(device.workers(), 1)
                        : 0;
  return subject;
}

Status Bench::runTest(const BenchTest &test) {
  BenchResult result;
  result.subject = subject();
  result.test = test;
  result.rowsPerStep = session->engine().rowsPerStep();
  result.time = timeNow();
  Progress progress(test.name() +
                    ", sequences: " + std::to_string(test.sequences));
  BenchRunner runner(session->engine(), test);
  KF_RETURN_IF_ERROR(
      runner.prepare(result.subject.isHost ? 0 : kGpuWarmUpSeconds));
  if (ceilings)
    KF_RETURN_IF_ERROR(ceilings->begin(test));
  const EngineCounts before = session->engine().counts();
  for (int64_t i = 0; i < options.repetitions; ++i) {
    progress.update(static_cast<double>(i) /
                        static_cast<double>(options.repetitions),
                    std::to_string(i) + " of " +
                        std::to_string(options.repetitions) + " runs");
    KF_ASSIGN_OR_RETURN(const BenchRunner::Times times, runner.run());
    result.seconds.push_back(times.all);
    result.firstToken +=
        times.firstToken / static_cast<double>(options.repetitions);
  }
  const EngineCounts counts = session->engine().counts();
  result.drafted = counts.drafted - before.drafted;
  result.accepted = counts.accepted - before.accepted;
  const EngineTimings timings = session->engine().timings();
  result.load = session->openSeconds() + timings.load + timings.pack;
  result.compile = timings.compile;
  result.memory = session->engine().memory();
  result.peakMemory = peakMemory();
  if (!result.subject.isHost) {
    KF_ASSIGN_OR_RETURN(const DeviceMemory memory, session->device().memory());
    result.deviceMemory = memory.total - std::min(memory.free, memory.total);
  }
  if (ceilings) {
    KF_ASSIGN_OR_RETURN(result.ceiling, ceilings->end(session->engine()));
    // Which say what a step for each token takes.
    const bool isPassed =
        result.drafted == 0 && ceilingShareOf(result).value_or(0) > 1;
    lowCeilings |= ceilings->wasDisturbed() || isPassed;
  }
  return output.add(result);
}

Status Bench::run() {
  int64_t sequences = 0;
  for (const BenchTest &test : options.tests()) {
    if (test.sequences != sequences)
      KF_RETURN_IF_ERROR(session->start({.tokens = test.positions(),
                                         .parallel = test.sequences,
                                         .reusesPrefixes = false}));
    sequences = test.sequences;
    KF_RETURN_IF_ERROR(runTest(test));
    ++count;
  }
  if (lowCeilings)
    warnOfLowCeilings();
  return showProfile(options.model, *session);
}

Status runAll(const BenchOptions &options, int64_t &finished) {
  const std::unique_ptr<BenchOutput> output =
      BenchOutput::create(options.output, options.tests(),
                          options.model.ngram || options.model.draftModel);
  Bench bench(options, *output);
  Status status;
  bool begun = false;
  for (int64_t threads : options.threads) {
    status = bench.open(threads);
    if (status.ok() && !begun) {
      status = output->begin(bench.subject());
      begun = status.ok();
    }
    if (status.ok())
      status = bench.run();
    if (!status.ok())
      break;
  }
  finished = bench.finished();
  // What is finished is complete, whatever ended the rest.
  if (begun)
    if (const Status ended = output->end(); status.ok())
      return ended;
  return status;
}

} // namespace

int kf::runBench(Arguments arguments) {
  BenchOptions options;
  OptionParser parser(
      "bench [MODEL] [options]",
      "Measures how many tokens a second a model reads and generates: the "
      "mean of several runs and their standard deviation, and the share of a "
      "ceiling that is measured beside them, of memory's read rate (of GPUs, "
      "what copies read and write) or of multiply-adds, whichever a test "
      "needs longer for. Every combination of the values of -s, -d and -t is a "
      "test of its own; tokens are random.");
  options.addTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  options.preset = parser.presetUse().name;
  catchFirstInterrupt();
  int64_t finished = 0;
  const Status status = runAll(options, finished);
  if (status.isCancelled()) {
    const size_t all = options.threads.size() * options.tests().size();
    return reportInterrupt(std::to_string(finished) + " of " +
                           std::to_string(all) + " tests were finished");
  }
  return report(status);
}
