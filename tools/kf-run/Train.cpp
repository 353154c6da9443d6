//===- Train.cpp - kf-run train -------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Interrupt.h"
#include "ModelFlags.h"
#include "ProfileFlags.h"
#include "Progress.h"
#include "Report.h"
#include "TrainFlags.h"
#include "TrainLog.h"

#include "runtime/core/JsonText.h"
#include "runtime/core/Lines.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/devices/OpenDevice.h"
#include "runtime/session/EmbeddedModel.h"

#include <cstdio>

using namespace kf;

namespace {

/// Shows and logs what a training is at.
class TrainReport : public TrainingListener {
public:
  /// Of `run`, whose log begins where it does.
  static Result<TrainReport> open(const TrainFlags &flags,
                                  const TrainingRun &run);

  void onStepProgress(double share) override;
  void onEvaluationProgress(double share) override;
  Status onStep(const TrainingStep &step) override;
  Status onEvaluation(int64_t step, const TrainingLoss &loss) override;
  /// Prints a line on stdout, unless the log is there.
  Status print(const std::string &line) const;
  /// Takes the progress off the terminal.
  void end() { progress.reset(); }

private:
  TrainReport(const TrainFlags &flags, const TrainingRun &run)
      : flags(flags), steps(run.steps()), done(run.firstStep()) {}
  /// "step 3 of 20".
  std::string stepText(int64_t step) const {
    return "step " + std::to_string(step) + " of " + std::to_string(steps);
  }
  void show(double share, const std::string &detail) {
    progress->update((static_cast<double>(done) + share) /
                         static_cast<double>(steps),
                     detail);
  }

  const TrainFlags &flags;
  int64_t steps, done;
  std::optional<TrainLog> log;
  std::unique_ptr<Progress> progress;
  Stopwatch watch;
  std::string last; ///< of the last step, for the progress
  // Since the last line on stdout:
  TrainingLoss loss;
  int64_t tokens = 0;
  double seconds = 0;
};

Result<TrainReport> TrainReport::open(const TrainFlags &flags,
                                      const TrainingRun &run) {
  TrainReport report(flags, run);
  if (flags.log) {
    KF_ASSIGN_OR_RETURN(report.log, TrainLog::open(*flags.log, report.done));
    if (report.log->isEmpty())
      KF_RETURN_IF_ERROR(report.log->write(
          jsonObject({{"step", jsonText(report.done)},
                      {"template_time", jsonText(run.templateTime())}})));
  }
  report.progress = std::make_unique<Progress>("training");
  return report;
}

Status TrainReport::print(const std::string &line) const {
  return flags.log == "-" ? Status() : writeStdout(line + "\n");
}

void TrainReport::onStepProgress(double share) {
  show(share, stepText(done + 1) + last);
}

void TrainReport::onEvaluationProgress(double share) {
  show(0, "evaluating, " + std::to_string(static_cast<int>(100 * share)) + "%");
}

Status TrainReport::onStep(const TrainingStep &step) {
  done = step.step;
  char text[160];
  std::snprintf(text, sizeof(text), ", loss %.4f, %.0f tokens/s",
                step.loss.mean(),
                static_cast<double>(step.tokens) / step.seconds);
  last = text;
  if (log)
    KF_RETURN_IF_ERROR(log->write(jsonLine(step, watch.seconds())));
  loss += step.loss;
  tokens += step.tokens;
  seconds += step.seconds;
  if (done % flags.printEvery != 0 && done != steps)
    return Status();
  std::snprintf(text, sizeof(text),
                ": loss %.4f, gradient norm %.3g, learning rate %.3g, %.0f "
                "tokens/s",
                loss.mean(), step.gradientNorm, step.learningRate,
                static_cast<double>(tokens) / seconds);
  loss = {};
  tokens = 0;
  seconds = 0;
  return print(stepText(done) + text);
}

Status TrainReport::onEvaluation(int64_t step, const TrainingLoss &held) {
  if (log)
    KF_RETURN_IF_ERROR(log->write(jsonLine(step, held, watch.seconds())));
  char text[64];
  std::snprintf(text, sizeof(text), ": evaluation loss %.4f", held.mean());
  return print(stepText(step) + text);
}

Status showProfile(const TrainFlags &flags) {
  if (!flags.request.profile)
    return Status();
  KF_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                      openDevice(flags.request.device, nullptr));
  return kf::showProfile(flags.profile, *flags.request.profile, *device);
}

/// Sets `checkpoint` to what there is to go on from.
Status runTraining(const TrainFlags &flags, std::string &checkpoint) {
  catchFirstInterrupt();
  KF_ASSIGN_OR_RETURN(std::unique_ptr<TrainingRun> run,
                      openTrainingRun(flags.request,
                                      {.targetCpu = flags.targetCpu,
                                       .tuningFile = flags.tuning.file,
                                       .useCache = !flags.noCache},
                                      {openEmbeddedModel, saveEmbeddedFiles}));
  checkpoint = run->lastCheckpoint();
  KF_ASSIGN_OR_RETURN(TrainReport report, TrainReport::open(flags, *run));
  const Status status = run->run(report);
  report.end();
  checkpoint = run->lastCheckpoint();
  KF_RETURN_IF_ERROR(status);
  KF_RETURN_IF_ERROR(report.print(
      (flags.request.lora ? "wrote the adapter " : "wrote the model ") +
      quotePath(flags.request.run.output)));
  run.reset(); // whose memory the ceilings are measured in
  return showProfile(flags);
}

} // namespace

int kf::runTrain(Arguments arguments) {
  TrainFlags flags;
  OptionParser parser(
      "train [MODEL] --data FILE --lora RANK --output DIR [options]",
      "Trains an adapter for a model, or all of its weights, on examples, and "
      "writes it as PEFT and this program read it: 'kf-run generate MODEL "
      "--lora DIR' uses it. Ctrl-C saves a checkpoint, from which --resume "
      "goes on.");
  flags.addTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  std::string checkpoint;
  const Status status = runTraining(flags, checkpoint);
  if (!status.isCancelled())
    return report(status);
  return reportInterrupt(checkpoint.empty()
                             ? "no step was completed, and nothing is saved"
                             : "the same command with --resume goes on from " +
                                   quotePath(checkpoint));
}
