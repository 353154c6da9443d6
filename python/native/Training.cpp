//===- Training.cpp - Training, as Python calls it ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Training.h"

#include "Errors.h"
#include "Interrupts.h"
#include "Messages.h"

#include "kf/Driver/CompiledTraining.h"
#include "runtime/core/Json.h"
#include "runtime/model/ConfigReader.h"
#include "runtime/session/EmbeddedModel.h"
#include "runtime/train/TrainingRun.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>

namespace nb = nanobind;
using namespace nb::literals;
using namespace kf;
using namespace kf::python;

namespace {

/// Number, loss, learning rate, norm of the gradient, tokens, seconds.
using Step = std::tuple<int64_t, double, double, double, int64_t, double>;

/// Hands steps to Python, on the thread that trains.
class StepListener : public TrainingListener {
public:
  explicit StepListener(nb::handle onStep) : callback(onStep) {}

  Status onStep(const TrainingStep &step) override {
    if (callback.is_none())
      return Status();
    const nb::gil_scoped_acquire gil;
    try {
      callback(Step(step.step, step.loss.mean(), step.learningRate,
                    step.gradientNorm, step.tokens, step.seconds));
    } catch (nb::python_error &error) {
      raised.emplace(std::move(error));
      return Status::cancelled();
    }
    return Status();
  }
  Status onEvaluation(int64_t, const TrainingLoss &loss) override {
    evaluated = loss.mean();
    return Status();
  }

  std::optional<nb::python_error> raised; ///< by the callback
  std::optional<double> evaluated;        ///< the last loss of what is held out

private:
  nb::handle callback;
};

/// What `train` was called with.
struct TrainRequest {
  ModelChoice model;
  DeviceChoice device;
  TrainingRunOptions run;
  std::optional<LoraConfig> lora;
  OptimizerOptions optimizer;
};

/// Reads the numbers and words of the JSON object `text`, which Python's code
/// has checked but for their ranges.
Status readRequest(const std::string &text, TrainRequest &request) {
  constexpr int64_t most = int64_t(1) << 24;
  KF_ASSIGN_OR_RETURN(const JsonDocument document, parseJson(text));
  const ConfigReader reader(*document);
  TrainingRunOptions &run = request.run;
  auto integer = [&](const char *key, int64_t least, auto &out) -> Status {
    if (reader.contains(key)) {
      KF_ASSIGN_OR_RETURN(out, reader.integer(key, least, most));
    }
    return Status();
  };
  auto number = [&](const char *key, double highest, auto &out) -> Status {
    if (reader.contains(key)) {
      KF_ASSIGN_OR_RETURN(out, reader.number(key, 0, highest));
    }
    return Status();
  };
  for (const auto &[key, out] :
       {std::pair("length", &run.length), std::pair("epochs", &run.epochs),
        std::pair("steps", &run.steps)})
    KF_RETURN_IF_ERROR(integer(key, 1, *out));
  for (const auto &[key, least, out] :
       {std::tuple("batch", 1, &run.batch),
        std::tuple("accumulate", 1, &run.accumulate),
        std::tuple("warmup", 0, &run.learningRate.warmup),
        std::tuple("eval_every", 0, &run.evalEvery),
        std::tuple("save_every", 0, &run.saveEvery),
        std::tuple("keep", 0, &run.keep)})
    KF_RETURN_IF_ERROR(integer(key, least, *out));
  KF_RETURN_IF_ERROR(number("eval_split", 0.9, run.evalSplit));
  for (const auto &[key, highest, out] :
       {std::tuple("learning_rate", 1e3, &run.learningRate.peak),
        std::tuple("min_learning_rate", 1e3, &run.learningRate.minimum),
        std::tuple("weight_decay", 10.0, &request.optimizer.weightDecay),
        std::tuple("clip", 1e9, &request.optimizer.clipNorm)})
    KF_RETURN_IF_ERROR(number(key, highest, *out));
  int64_t seed = 0;
  KF_RETURN_IF_ERROR(integer("seed", 0, seed));
  run.seed = static_cast<uint64_t>(seed);
  KF_ASSIGN_OR_RETURN(const std::string schedule, reader.text("schedule"));
  run.learningRate.decay = schedule == "constant"
                               ? LearningRate::Decay::Constant
                           : schedule == "cosine" ? LearningRate::Decay::Cosine
                                                  : LearningRate::Decay::Linear;
  KF_ASSIGN_OR_RETURN(const std::string optimizer, reader.text("optimizer"));
  if (optimizer == "sgd")
    request.optimizer.kind = OptimizerOptions::Kind::Sgd;
  KF_ASSIGN_OR_RETURN(run.trainOnPrompt,
                      reader.boolean("train_on_prompt", false));
  if (reader.contains("lora")) {
    request.lora.emplace();
    KF_ASSIGN_OR_RETURN(request.lora->rank, reader.integer("lora", 1, 4096));
    KF_ASSIGN_OR_RETURN(request.lora->alpha,
                        reader.number("lora_alpha", 0, 1e6));
    for (const auto &name : *reader.find("lora_targets"))
      request.lora->targets.push_back(name.get<std::string>());
  }
  run.modelOptions = typedOptions(request.lora, request.optimizer);
  return Status();
}

/// Steps in all, and the last loss of what is held out.
using Outcome = std::pair<int64_t, std::optional<double>>;

Result<Outcome> runTraining(const TrainRequest &request,
                            StepListener &listener) {
  KF_ASSIGN_OR_RETURN(const ModelFiles files,
                      openModel(request.model, /*withTokenizer=*/true,
                                openEmbeddedModel, request.run.observer));
  auto openTrained =
      [&](int64_t rows,
          int64_t length) -> Result<std::unique_ptr<TrainingModel>> {
    TrainingOptions options;
    options.model = request.model;
    options.withTokenizer = false;
    options.device = request.device;
    options.rows = rows;
    options.length = length;
    options.lora = request.lora;
    options.optimizer = request.optimizer;
    options.seed = request.run.seed;
    options.cancelled = request.run.cancelled;
    options.observer = request.run.observer;
    KF_ASSIGN_OR_RETURN(
        std::unique_ptr<CompiledTrainingModel> model,
        openTraining(std::move(options), CompileChoice(), openEmbeddedModel));
    return std::unique_ptr<TrainingModel>(std::move(model));
  };
  KF_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingRun> run,
                      TrainingRun::open(files, request.run, openTrained));
  KF_RETURN_IF_ERROR(run->run(listener));
  return Outcome(run->steps(), listener.evaluated);
}

std::string textOf(const nb::bytes &path) {
  return {path.c_str(), path.size()};
}

/// What came of it, and what was told meanwhile.
std::pair<Outcome, std::vector<Messages::Line>>
trainModel(const nb::bytes &path, const std::string &device, int64_t threads,
           const nb::bytes &data, const nb::bytes &output,
           const std::optional<nb::bytes> &evalData,
           const std::optional<nb::bytes> &resume, const std::string &options,
           const nb::object &onStep) {
  std::atomic<bool> cancelled = false;
  Messages told;
  TrainRequest request;
  request.model.path = textOf(path);
  request.device.device = device;
  request.device.threads = threads;
  request.run.data = textOf(data);
  request.run.output = textOf(output);
  if (evalData)
    request.run.evalData = textOf(*evalData);
  if (resume)
    request.run.resume = textOf(*resume);
  request.run.cancelled = &cancelled;
  request.run.observer = &told;
  raiseIfError(readRequest(options, request));
  if (!request.lora)
    request.run.fullModel = request.model.path;
  StepListener listener(onStep);
  Result<Outcome> outcome = runInterruptibly(
      cancelled, [&] { return runTraining(request, listener); });
  if (listener.raised)
    throw std::move(*listener.raised);
  return {valueOf(std::move(outcome)), told.take()};
}

} // namespace

void python::bindTraining(nb::module_ &m) {
  m.def("train", &trainModel, "path"_a, "device"_a, "threads"_a.noconvert(),
        "data"_a, "output"_a, "eval_data"_a.none(), "resume"_a.none(),
        "options"_a, "on_step"_a.none());
}
