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
#include "runtime/batch/TemplateFields.h"
#include "runtime/core/Json.h"
#include "runtime/model/ConfigReader.h"
#include "runtime/session/EmbeddedModel.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <random>
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
    const HeldGil gil;
    try {
      nb::object given =
          nb::cast(Step(step.step, step.loss.mean(), step.learningRate,
                        step.gradientNorm, step.tokens, step.seconds));
      nb::object returned = nb::steal(stayIfEnded([&] {
        return PyObject_CallFunctionObjArgs(callback.ptr(), given.ptr(),
                                            nullptr);
      }));
      const bool hasReturned = returned.is_valid();
      drop(given);
      drop(returned);
      if (!hasReturned)
        nb::raise_python_error();
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

/// Reads the numbers and words of the JSON object `text`, which Python's code
/// has checked but for their ranges.
Status readRequest(const std::string &text, TrainingRequest &request) {
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
  if (reader.contains("lora")) {
    KF_ASSIGN_OR_RETURN(request.rank, reader.integer("lora", 1, 4096));
  }
  for (const auto &[key, highest, out] :
       {std::tuple("eval_split", 0.9, &run.evalSplit),
        std::tuple("lora_alpha", 1e6, &request.alpha),
        std::tuple("lora_dropout", 1.0, &request.dropout),
        std::tuple("learning_rate", 1e3, &request.rate),
        std::tuple("min_learning_rate", 1e3, &request.minimumRate),
        std::tuple("beta1", 1.0, &request.beta1),
        std::tuple("beta2", 1.0, &request.beta2),
        std::tuple("epsilon", 1.0, &request.epsilon),
        std::tuple("momentum", 1.0, &request.momentum)})
    KF_RETURN_IF_ERROR(number(key, highest, *out));
  for (const auto &[key, highest, out] :
       {std::tuple("weight_decay", 10.0, &request.weightDecay),
        std::tuple("clip", 1e9, &request.clip)})
    KF_RETURN_IF_ERROR(number(key, highest, *out));
  run.anySeed = !reader.contains("seed");
  run.seed = std::random_device()();
  if (reader.contains("seed")) {
    KF_ASSIGN_OR_RETURN(const int64_t seed,
                        reader.integer("seed", 0, INT64_MAX));
    run.seed = static_cast<uint64_t>(seed);
  }
  for (const auto &[key, out] : {std::pair("schedule", &request.schedule),
                                 std::pair("optimizer", &request.optimizerName),
                                 std::pair("recompute", &request.recomputeName),
                                 std::pair("long", &request.longName)}) {
    KF_ASSIGN_OR_RETURN(*out, reader.text(key));
  }
  for (const auto &[key, out] :
       {std::pair("full", &request.full),
        std::pair("rslora", &request.rankStabilized),
        std::pair("pack", &run.pack), std::pair("shuffle", &run.shuffle),
        std::pair("train_on_prompt", &run.trainOnPrompt),
        std::pair("force", &run.force)}) {
    KF_ASSIGN_OR_RETURN(*out, reader.boolean(key, *out));
  }
  if (reader.contains("lora_targets"))
    for (const auto &name : *reader.find("lora_targets"))
      request.targets.push_back(name.get<std::string>());
  KF_ASSIGN_OR_RETURN(run.chatTemplate.variables,
                      readTemplateVariables(reader, text));
  return request.complete();
}

/// Steps in all, and the last loss of what is held out.
using Outcome = std::pair<int64_t, std::optional<double>>;

Result<Outcome> runTraining(const TrainingRequest &request,
                            StepListener &listener) {
  KF_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingRun> run,
                      openTrainingRun(request, CompileChoice(),
                                      {openEmbeddedModel, saveEmbeddedFiles}));
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
           const std::optional<nb::bytes> &chatTemplate,
           const std::optional<nb::bytes> &resume, const std::string &options,
           const nb::object &onStep) {
  std::atomic<bool> cancelled = false;
  Messages told;
  TrainingRequest request;
  request.model.path = textOf(path);
  request.device.device = device;
  request.device.threads = threads;
  request.run.data = textOf(data);
  request.run.output = textOf(output);
  if (evalData)
    request.run.evalData = textOf(*evalData);
  if (chatTemplate)
    request.run.chatTemplate.file = textOf(*chatTemplate);
  if (resume)
    request.run.resume = textOf(*resume);
  request.run.cancelled = &cancelled;
  request.run.observer = &told;
  raiseIfError(readRequest(options, request));
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
        "data"_a, "output"_a, "eval_data"_a.none(), "chat_template"_a.none(),
        "resume"_a.none(), "options"_a, "on_step"_a.none());
}
