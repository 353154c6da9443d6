//===- EvalKernels.cpp - Kernels one by one -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EvalKernels.h"

#include "Interrupt.h"
#include "Progress.h"
#include "Report.h"

#include "kf/Driver/Compiler.h"
#include "runtime/convert/TensorTypes.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "runtime/io/ScaledWeights.h"
#include "runtime/measure/Ceilings.h"
#include "runtime/measure/Profile.h"
#include "runtime/measure/Statistics.h"
#include "runtime/model/DummyWeights.h"
#include "runtime/model/NamedConfigs.h"
#include "runtime/model/TensorList.h"
#include "runtime/tuning/KernelRunner.h"
#include "runtime/tuning/KernelTurns.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

using namespace kf;

namespace {

/// A layer of TinyLlama, with a small vocabulary and a longer context: what all
/// layers of a model do, and no more.
Result<ModelConfig> layerConfig() {
  KF_ASSIGN_OR_RETURN(
      ModelConfig config,
      parseModelConfig(findNamedConfig("tinyllama-1.1b")->json));
  config.layers = 1;
  config.layerConfigs.resize(1);
  config.vocabSize = 2048;
  config.maxPositions = 8192;
  return config;
}

/// The most rows of a step, and the most positions before them.
constexpr int64_t kMostPositions = 65536;

/// Rows whose results the reference, which is slow, is asked for.
constexpr int64_t kCheckedRows = 17;

/// What a file has for an error that is no number.
constexpr double kNotFinite = 1e30;

/// Memory that runs go round at most, so that each finds its weights where a
/// step would: beyond the caches. Of four times the last one they keep nothing
/// that can be measured, of twice as much up to a seventh.
constexpr uint64_t kMostRotated = uint64_t(512) << 20;

/// Runs of a kernel come in as many bursts, with pauses between them, so that
/// another process has a part in few of them; one that it has a part in is
/// repeated as often.
constexpr int64_t kBursts = 3;
constexpr int kRepeats = 3;
constexpr std::chrono::milliseconds kPause{2};
/// Of a short kernel, as many runs as take this long, but no more than
/// kMostRunsOfSample, count as one, by their median: a single one is hardly
/// longer than the clock shows. More would go round all copies of what it
/// reads, and find it in a cache.
constexpr double kSampleSeconds = 100e-6;
constexpr int64_t kMostRunsOfSample = 8;

/// Names of types of weights, separated by commas.
Status parseTypes(std::string_view text, std::vector<DataType> &out) {
  out.clear();
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    KF_ASSIGN_OR_RETURN(const DataType type,
                        parseWeightType(text.substr(at, comma - at)));
    out.push_back(type);
    at = comma + 1;
  }
  return Status();
}

/// Weights of `type`, which those of 8 bits keep.
Result<std::unique_ptr<WeightSource>> randomWeights(const ModelConfig &config,
                                                    DataType type) {
  std::unique_ptr<WeightSource> source;
  KF_ASSIGN_OR_RETURN(source, DummyWeights::create(config, type, 1));
  if (type != DataType::F8E4M3)
    return source;
  KF_ASSIGN_OR_RETURN(source, ScaledWeights::create(std::move(source)));
  KF_RETURN_IF_ERROR(keepFloat8(config, *source).status());
  return source;
}

/// Measures kernels, each once.
class KernelEvaluator {
public:
  KernelEvaluator(Device &device, const KernelEvalOptions &options,
                  const MachineRates &rates, const KernelBaseline *baseline,
                  const std::set<std::string> *only)
      : device(device), reference(createReferenceDevice()), options(options),
        rates(rates), baseline(baseline), only(only) {
    if (baseline)
      for (const EvalKernel &kernel : baseline->report.kernels)
        before.emplace(kernel.key(), &kernel);
  }

  /// Adds the kernels of a part of a step, but those that were there before.
  /// `from` and `to` are how much of all this is.
  Status addStep(const ModelConfig &config, const WeightSource &source,
                 const CompilerOptions &compiler, const StepShape &shape,
                 double from, double to) {
    const int64_t rows = shape.rows;
    KF_ASSIGN_OR_RETURN(
        CompilerModule module,
        CompilerModule::import(config, source, shape, compiler));
    KF_ASSIGN_OR_RETURN(KernelSet kernels, module.kernels(compiler));
    for (size_t i = 0; i < kernels.list().size(); ++i) {
      if (isCancelled(&interruptFlag()))
        return Status::cancelled();
      progress.update(from + (to - from) * static_cast<double>(i) /
                                 static_cast<double>(kernels.list().size()),
                      kernels.list()[i].name);
      KF_RETURN_IF_ERROR(add(kernels, i, rows, config.maxPositions - rows)
                             .in(kernels.list()[i].name));
    }
    return Status();
  }

  KernelEvaluation take() { return std::move(results); }

private:
  /// `room` is how many positions there can be before the rows.
  Status add(const KernelSet &kernels, size_t number, int64_t rows,
             int64_t room) {
    const KernelInfo &info = kernels.list()[number];
    if (!known.insert({info.name, info.description, rows}).second)
      return Status();
    EvalKernel kernel;
    kernel.name = info.name;
    kernel.description = info.description;
    kernel.rows = rows;
    std::set<int64_t> all = {0};
    for (int64_t depth : options.depths)
      all.insert(std::clamp<int64_t>(depth, 0, std::max<int64_t>(room, 0)));
    if (std::ranges::none_of(all, [&](int64_t depth) {
          kernel.depth = depth;
          return isWanted(kernel);
        }))
      return Status();
    KF_ASSIGN_OR_RETURN(const Executable compiled, kernels.compile(number));
    KF_ASSIGN_OR_RETURN(const Executable expected,
                        kernels.compileForReference(number));
    std::set<int64_t> depths = {0};
    if (!compiled.caches.empty()) {
      depths.clear();
      for (int64_t depth : options.depths)
        depths.insert(
            std::clamp<int64_t>(depth, 0, std::max<int64_t>(room, 0)));
    }
    for (int64_t depth : depths) {
      EvalKernel result = kernel;
      result.depth = depth;
      if (!isWanted(result))
        continue;
      KernelCase kernelCase;
      kernelCase.tokens = rows;
      kernelCase.sizes = {{kRowsSize, rows}, {kSequencesSize, 1}};
      kernelCase.depth = depth;
      kernelCase.inputs = info.inputs;
      kernelCase.outputs = info.outputs;
      KF_RETURN_IF_ERROR(measure(compiled, expected, kernelCase, result));
      results.code.emplace(result.code, compiled);
      results.kernels.push_back(std::move(result));
    }
    return Status();
  }

  bool isWanted(const EvalKernel &kernel) const {
    return !only || only->contains(kernel.key());
  }

  Status measure(const Executable &compiled, const Executable &expected,
                 const KernelCase &kernelCase, EvalKernel &result) {
    KernelRunnerOptions settings;
    settings.checkTokens = kCheckedRows;
    settings.rotateBytes = std::min(4 * lastCacheBytes(device), kMostRotated);
    KF_ASSIGN_OR_RETURN(std::unique_ptr<KernelRunner> runner,
                        KernelRunner::create(device, *reference, expected,
                                             kernelCase, settings));
    KF_ASSIGN_OR_RETURN(std::unique_ptr<KernelVariant> variant,
                        runner->load(compiled));
    KF_ASSIGN_OR_RETURN(const ResultDifference difference, variant->check());
    auto finite = [](double error) {
      return std::isfinite(error) ? error : kNotFinite;
    };
    result.maxError = finite(difference.largest);
    result.meanError = finite(difference.mean);
    result.cosine = std::isfinite(difference.cosine) ? difference.cosine : -1;
    if (!difference.agrees)
      result.complaint = difference.complaint;
    KF_RETURN_IF_ERROR(measureRuns(*runner, *variant, result));
    result.code = hashKey({compiled.serialize()});
    KF_RETURN_IF_ERROR(compareInTurns(*runner, *variant, result));
    KF_ASSIGN_OR_RETURN(const auto scalars,
                        kernelScalars(compiled, kernelCase));
    addWork(compiled, kernelCase, scalars, result);
    return Status();
  }

  Status measureRuns(KernelRunner &runner, KernelVariant &variant,
                     EvalKernel &result) {
    KF_ASSIGN_OR_RETURN(const std::vector<double> first,
                        variant.measure(2, &interruptFlag()));
    const int64_t each = std::clamp<int64_t>(
        static_cast<int64_t>(kSampleSeconds / std::ranges::min(first)), 1,
        kMostRunsOfSample);
    std::vector<double> all;
    for (int64_t burst = 0; burst < kBursts; ++burst) {
      const int64_t samples =
          options.runs * (burst + 1) / kBursts - options.runs * burst / kBursts;
      bool disturbed = samples > 0;
      std::vector<double> seconds;
      for (int i = 0; i < kRepeats && disturbed; ++i) {
        std::this_thread::sleep_for(kPause);
        // Behind a pause the first run finds nothing in the caches.
        KF_ASSIGN_OR_RETURN(
            seconds, variant.measure(samples * each + 1, &interruptFlag()));
        disturbed = runner.wasDisturbed();
      }
      result.disturbed |= disturbed;
      for (int64_t i = 0; i < samples; ++i)
        all.push_back(
            statisticsOf(std::span(seconds).subspan(i * each + 1, each))
                .median);
    }
    result.setTimes(all);
    return Status();
  }

  /// Runs the baseline's kernel, too, if it is another one and was kept.
  Status compareInTurns(KernelRunner &runner, KernelVariant &variant,
                        const EvalKernel &result) {
    const auto found = before.find(result.key());
    if (found == before.end() || found->second->code == result.code)
      return Status();
    const std::string &code = found->second->code;
    std::optional<Executable> kept;
    if (!code.empty()) {
      KF_ASSIGN_OR_RETURN(kept, baseline->code.lookup(code));
    }
    if (!kept) {
      ++results.withoutCode;
      return Status();
    }
    Result<std::unique_ptr<KernelVariant>> other = runner.load(*kept);
    if (!other.ok()) {
      printWarning(result.key() +
                   ": the baseline's kernel does not run here (" +
                   other.message() + "), times of two runs are compared");
      ++results.withoutCode;
      return Status();
    }
    TurnOptions turns;
    turns.slower = baseline->slower;
    turns.cancelled = &interruptFlag();
    auto runsOf = [](KernelVariant &kernel) {
      return [&kernel](int64_t runs) {
        return kernel.measure(runs, &interruptFlag());
      };
    };
    KF_ASSIGN_OR_RETURN(const TimeRatio ratio,
                        ratioInTurns(runsOf(variant), runsOf(**other), turns));
    results.turns.insert_or_assign(result.key(), ratio);
    return Status();
  }

  /// What a run had to do, if the compiler knows.
  void addWork(const Executable &compiled, const KernelCase &kernelCase,
               std::span<const int64_t> scalars, EvalKernel &result) {
    const std::optional<KernelWork> &work = compiled.kernels.front().work;
    if (!work)
      return;
    KeyCounts keys;
    if (work->keys) {
      const size_t rows = static_cast<size_t>(kernelCase.tokens);
      std::vector<int32_t> positions(rows), sequences(rows, 0);
      std::iota(positions.begin(), positions.end(),
                static_cast<int32_t>(kernelCase.depth));
      keys = countKeys(positions, sequences, work->keys->window);
    }
    const WorkAmount amount = amountOf(*work, scalars, keys);
    result.bytes = amount.bytes;
    result.flops = amount.operations();
    if (result.seconds > 0)
      result.ceiling = leastSeconds(amount, rates) / result.seconds;
  }

  Device &device;
  std::unique_ptr<Device> reference;
  const KernelEvalOptions &options;
  const MachineRates &rates;
  const KernelBaseline *baseline;                   ///< may be null
  const std::set<std::string> *only;                ///< may be null
  std::map<std::string, const EvalKernel *> before; ///< the baseline's, by key
  KernelEvaluation results;
  /// Names, operands and rows of what was measured.
  std::set<std::tuple<std::string, std::string, int64_t>> known;
  Progress progress{"measuring kernels"};
};

} // namespace

void KernelEvalOptions::addTo(OptionParser &parser) {
  types.assign(weightTypes().begin(), weightTypes().end());
  parser.integers({"rows", 0, "N,..."}, rows, 1, kMostPositions,
                  "rows of the steps whose kernels are measured, as far as the "
                  "model's context goes; 1,16,512 by default");
  parser.integers({"depth", 'd', "N,..."}, depths, 0, kMostPositions,
                  "positions that attention finds in the cache before a step's "
                  "rows; 0,4096 by default");
  parser.text({"types", 0, "q4_0,f16"}, typesText,
              "types of weights, where there is no MODEL; by default all that "
              "models come in");
  parser.integer({"repetitions", 'r', "N"}, runs, 2, 1000,
                 "how often each kernel is timed; 15 by default. Of "
                 "kernels shorter than 0.1 ms, the median of up to 8 runs "
                 "counts as one time");
  parser.addCheck([this] {
    if (rows.empty())
      rows = {1, 16, 512};
    if (depths.empty())
      depths = {0, 4096};
    return typesText.empty() ? Status()
                             : parseTypes(typesText, types).in("--types");
  });
}

ExecutableCache kf::codeBeside(const std::string &file) {
  return ExecutableCache(
      file + ".kernels", [](const std::string &line) { printWarning(line); },
      UINT64_MAX);
}

void KernelEvaluation::merge(KernelEvaluation again) {
  for (EvalKernel &kernel : again.kernels) {
    auto found = std::ranges::find_if(kernels, [&](const EvalKernel &other) {
      return other.key() == kernel.key();
    });
    // Nothing makes a machine faster than it is.
    if (found != kernels.end() &&
        (kernel.disturbed == found->disturbed ? kernel.seconds < found->seconds
                                              : found->disturbed))
      *found = std::move(kernel);
  }
  for (auto &[key, ratio] : again.turns)
    turns.insert_or_assign(key, ratio);
}

Result<KernelEvaluation>
kf::evaluateKernels(const ModelFlags &flags, const KernelEvalOptions &options,
                    Device &device, const MachineRates &rates,
                    const KernelBaseline *baseline,
                    const std::set<std::string> *only) {
  KF_ASSIGN_OR_RETURN(const CompilerOptions compiler,
                      compilerOptionsFor(flags, device));
  KernelEvaluator evaluator(device, options, rates, baseline, only);
  auto addModel = [&](const ModelConfig &config, const WeightSource &source,
                      size_t number, size_t count) {
    const double each = 1.0 / static_cast<double>(count * options.rows.size());
    for (size_t i = 0; i < options.rows.size(); ++i) {
      const double from =
          each * static_cast<double>(number * options.rows.size() + i);
      const int64_t rows = std::min(options.rows[i], config.maxPositions);
      KF_RETURN_IF_ERROR(evaluator.addStep(
          config, source, compiler, {StepPart::Body, rows}, from, from + each));
      // Of the row behind which a text goes on.
      KF_RETURN_IF_ERROR(evaluator.addStep(config, source, compiler,
                                           {StepPart::Head, 1}, from + each,
                                           from + each));
    }
    return Status();
  };
  if (!flags.model.empty()) {
    KF_ASSIGN_OR_RETURN(ModelFiles model,
                        openModel(flags.modelChoice(), false));
    KF_RETURN_IF_ERROR(addModel(model.config, *model.weights, 0, 1));
    return evaluator.take();
  }
  KF_ASSIGN_OR_RETURN(const ModelConfig config, layerConfig());
  for (size_t i = 0; i < options.types.size(); ++i) {
    KF_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source,
                        randomWeights(config, options.types[i]));
    KF_RETURN_IF_ERROR(addModel(config, *source, i, options.types.size()));
  }
  return evaluator.take();
}
