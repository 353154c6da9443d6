//===- CompiledTrainingModel.cpp - A decoder that is trained --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/CompiledTrainingModel.h"

#include "runtime/adapter/PeftAdapter.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/core/SamplingMath.h"
#include "runtime/core/UsableThreads.h"
#include "runtime/io/Safetensors.h"
#include "runtime/io/SafetensorsWriter.h"
#include "runtime/model/RopeFactors.h"
#include "runtime/model/TensorList.h"
#include "runtime/session/PackingProgress.h"
#include "runtime/train/ResultFiles.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

using namespace kf;

/// Names of the moments of a tensor, behind its own.
static std::string momentName(const std::string &tensor, size_t moment) {
  return tensor + (moment == 0 ? ".first_moment" : ".second_moment");
}

CompiledTrainingModel::~CompiledTrainingModel() = default;

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<CompiledTrainingModel>>
CompiledTrainingModel::open(TrainingOptions options,
                            const TrainingSources &sources) try {
  std::unique_ptr<CompiledTrainingModel> made(
      new CompiledTrainingModel(std::move(options)));
  KF_RETURN_IF_ERROR(made->openAll(sources));
  return made;
} catch (...) {
  return statusOfException();
}

static TrainingShape shapeOf(const TrainingOptions &options,
                             TrainingPart part) {
  return {part,         options.rows,      options.length,
          options.lora, options.optimizer, options.recompute};
}

TrainingShape CompiledTrainingModel::shapeOf(TrainingPart part) const {
  return ::shapeOf(options, part);
}

Status kf::checkTrainsOn(std::string_view device) {
  return device == "vulkan"
             ? Status::error("models are not trained on vulkan yet; use "
                             "--device=cpu or cuda")
             : Status();
}

/// Files of all weights have the names that a model lists: an error where the
/// checkpoint has others, by which alone they would be found again.
static Status checkStoredNames(const ModelFiles &model,
                               const TrainingOptions &options) {
  if (options.lora || options.model.dummy.used())
    return Status();
  KF_ASSIGN_OR_RETURN(const ModelKind kind, findModelKind(options.model.path));
  if (kind != ModelKind::Folder)
    return Status();
  KF_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> stored,
                      openSafetensors(options.model.path));
  KF_ASSIGN_OR_RETURN(const std::vector<ListedTensor> found,
                      findTensors(model.config, *model.weights));
  for (const ListedTensor &tensor : found)
    if (!stored->describe(tensor.name).ok())
      return nameModel(
          model, Status::error("its checkpoint has " + inQuotes(tensor.name) +
                               " under another name or within another tensor, "
                               "as which it would not be saved; train an "
                               "adapter"));
  return Status();
}

Status kf::checkTraining(const TrainingOptions &options) {
  if (!options.lora && options.model.float8 != Float8Weights::Rounded)
    return Status::error("weights that are kept in 8 bits (--float8=f8) cannot "
                         "be trained; leave it out, or train an adapter");
  return checkTrainsOn(options.device.device);
}

Status kf::checkTraining(const TrainingOptions &options,
                         const ModelFiles &model) try {
  if (Status status = checkTrains(model.config); !status.ok())
    return nameModel(model, status);
  if (Status status = checkSaves(model.config); !options.lora && !status.ok())
    return nameModel(model, status);
  const Status listed =
      listTrained(model.config, shapeOf(options, TrainingPart::Gradient))
          .status();
  return listed.ok() ? checkStoredNames(model, options)
                     : nameModel(model, listed);
} catch (...) {
  return statusOfException();
}

Status CompiledTrainingModel::openAll(const TrainingSources &sources) {
  KF_RETURN_IF_ERROR(checkTraining(options));
  KF_ASSIGN_OR_RETURN(model, openModel(options.model, options.withTokenizer,
                                       sources.embedded, options.observer));
  settleContext(model.config, options.length);
  KF_RETURN_IF_ERROR(checkTraining(options, model));
  KF_ASSIGN_OR_RETURN(
      tensors, listTrained(model.config, shapeOf(TrainingPart::Gradient)));
  KF_ASSIGN_OR_RETURN(target, sources.device(options.device, options.observer));
  KF_RETURN_IF_ERROR(checkTrainsOn(target->name()));
  const int64_t threads =
      options.device.threads
          ? options.device.threads
          : std::clamp<int64_t>(usableThreads(), 1, ThreadPool::maxThreads);
  if (target->name() != "reference" && threads > 1) {
    KF_ASSIGN_OR_RETURN(pool, ThreadPool::create(static_cast<int>(threads)));
  }
  KF_ASSIGN_OR_RETURN(provide, sources.programs(model, *target, options));
  weights = std::make_unique<WeightStore>(
      *target, model.weights.get(),
      PackOptions{.pool = pool.get(), .cancelled = options.cancelled});
  showPacking(*weights, options.observer);
  cache = std::make_unique<KVCache>(*target, /*pages=*/1, kCachePage);
  KF_ASSIGN_OR_RETURN(stream, target->createStream());
  KF_RETURN_IF_ERROR(allocate());
  KF_ASSIGN_OR_RETURN(gradient, make(TrainingPart::Gradient));
  KF_ASSIGN_OR_RETURN(optimizer, make(TrainingPart::Update));
  return initialize();
}

Status CompiledTrainingModel::allocate() {
  moments.resize(static_cast<size_t>(options.optimizer.states()));
  for (const TrainedTensor &tensor : tensors) {
    KF_ASSIGN_OR_RETURN(const int64_t bytes,
                        checkedByteCount(DataType::F32, tensor.shape));
    auto add = [&](Buffers &list) -> Status {
      KF_ASSIGN_OR_RETURN(
          std::unique_ptr<Buffer> buffer,
          target->allocate(std::max<int64_t>(bytes, KF_BUFFER_ALIGNMENT)));
      list.push_back(std::move(buffer));
      return Status();
    };
    KF_RETURN_IF_ERROR(add(values));
    KF_RETURN_IF_ERROR(add(gradients));
    for (Buffers &list : moments)
      KF_RETURN_IF_ERROR(add(list));
  }
  return Status();
}

/// Where arguments and results of a program lie, as runtime/model/Training.h
/// has them.
OutsideBuffers CompiledTrainingModel::outsideOf(TrainingPart part) const {
  OutsideBuffers outside;
  size_t input = shapeOf(part).batchInputs(), output = 1;
  auto read = [&](const Buffers &list) {
    for (const std::unique_ptr<Buffer> &buffer : list)
      outside.inputs[input++] = buffer.get();
  };
  auto update = [&](const Buffers &list) {
    for (const std::unique_ptr<Buffer> &buffer : list)
      outside.inputs[input++] = outside.outputs[output++] = buffer.get();
  };
  switch (part) {
  case TrainingPart::Gradient:
    read(values);
    update(gradients);
    break;
  case TrainingPart::Loss:
    read(values);
    break;
  case TrainingPart::Update:
    input = options.optimizer.kind == OptimizerOptions::Kind::AdamW ? 3 : 2;
    read(gradients);
    update(values);
    for (const Buffers &list : moments)
      update(list);
    break;
  }
  return outside;
}

Result<std::unique_ptr<CompiledTrainingModel::Program>>
CompiledTrainingModel::make(TrainingPart part) {
  KF_ASSIGN_OR_RETURN(const Executable executable, provide(shapeOf(part)));
  auto made = std::make_unique<Program>();
  KF_ASSIGN_OR_RETURN(made->loaded, target->load(executable));
  KF_ASSIGN_OR_RETURN(made->runner, ProgramRunner::create(
                                        *made->loaded, *target, *weights,
                                        *cache, stream.get(), outsideOf(part)));
  made->runner->setProfile(options.profile.get());
  return made;
}

//===----------------------------------------------------------------------===//
// First values
//===----------------------------------------------------------------------===//

Status CompiledTrainingModel::initialize() {
  return options.lora ? initializeAdapters() : initializeWeights();
}

/// As PEFT does: A by Kaiming's rule with a = sqrt(5), whose bound is 1 /
/// sqrt(in), and B of zeros, which buffers have.
Status CompiledTrainingModel::initializeAdapters() {
  for (size_t i = 0; i < tensors.size(); i += 2) {
    KF_ASSIGN_OR_RETURN(HostTensor a,
                        HostTensor::zeros(DataType::F32, tensors[i].shape));
    const double bound = 1 / std::sqrt(static_cast<double>(a.shape[1]));
    auto *data = a.data<float>();
    const int64_t elements = a.elementCount();
    for (int64_t first = 0; first < elements; first += 4) {
      const auto at = static_cast<uint64_t>(first);
      const auto words =
          philox({static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32),
                  static_cast<uint32_t>(i), 0},
                 {static_cast<uint32_t>(options.seed),
                  static_cast<uint32_t>(options.seed >> 32)});
      for (int64_t k = 0; k < std::min<int64_t>(4, elements - first); ++k)
        data[first + k] = static_cast<float>(
            bound * (static_cast<double>(words[k]) * 0x1p-31 - 1));
    }
    KF_RETURN_IF_ERROR(write(*values[i], a));
  }
  return Status();
}

/// `rows` x `columns` -> the transposed matrix.
static HostTensor transposed(const HostTensor &matrix) {
  const int64_t rows = matrix.shape[0], columns = matrix.shape[1];
  HostTensor result{matrix.type, {columns, rows}, matrix.bytes};
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      result.data<float>()[j * rows + i] =
          matrix.data<float>()[i * columns + j];
  return result;
}

/// What the files have, in f32.
Status CompiledTrainingModel::initializeWeights() {
  Result<std::vector<ListedTensor>> found =
      findTensors(model.config, *model.weights);
  if (!found.ok())
    return nameModel(model, found.status());
  std::map<std::string, const ListedTensor *> listed;
  for (const ListedTensor &tensor : *found)
    listed[tensor.key] = &tensor;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ListedTensor &own = *listed.at(tensors[i].key);
    KF_ASSIGN_OR_RETURN(const TensorView view, model.weights->find(own.name));
    KF_ASSIGN_OR_RETURN(HostTensor value,
                        HostTensor::zeros(DataType::F32, own.storedShape()));
    if (Status status = convertToFloat(
            view.type, view.data, value.elementCount(), value.data<float>());
        !status.ok())
      return nameModel(model, status.in("tensor " + inQuotes(own.name)));
    model.weights->release(own.name);
    if (own.transposed)
      value = transposed(value);
    KF_RETURN_IF_ERROR(write(*values[i], value));
  }
  return Status();
}

Status CompiledTrainingModel::write(Buffer &buffer, const HostTensor &value) {
  KF_RETURN_IF_ERROR(stream->upload(buffer, 0, value.bytes));
  return stream->synchronize();
}

Result<HostTensor> CompiledTrainingModel::read(Buffer &buffer,
                                               const TrainedTensor &tensor) {
  KF_ASSIGN_OR_RETURN(HostTensor value,
                      HostTensor::zeros(DataType::F32, tensor.shape));
  KF_RETURN_IF_ERROR(stream->download(buffer, 0, value.bytes));
  KF_RETURN_IF_ERROR(stream->synchronize());
  return value;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Status CompiledTrainingModel::checkBatch(const TrainingBatch &batch) const {
  const auto tokens = static_cast<size_t>(options.rows * options.length);
  if (batch.rows != options.rows || batch.length != options.length)
    return Status::error("a batch of " + std::to_string(batch.rows) +
                         " rows of " + std::to_string(batch.length) +
                         " tokens, where the model is trained by " +
                         std::to_string(options.rows) + " rows of " +
                         std::to_string(options.length));
  for (const std::vector<int32_t> *list :
       {&batch.ids, &batch.positions, &batch.examples, &batch.labels})
    if (list->size() != tokens)
      return Status::error("a batch with " + std::to_string(list->size()) +
                           " numbers for " + std::to_string(tokens) +
                           " tokens");
  auto isToken = [&](int32_t id) {
    return id >= 0 && id < model.config.vocabSize;
  };
  for (const int32_t id : batch.ids)
    if (!isToken(id))
      return Status::error("a batch with id " + std::to_string(id) +
                           ", and the vocabulary has " +
                           std::to_string(model.config.vocabSize) + " tokens");
  for (const int32_t label : batch.labels)
    if (label != kNoLabel && !isToken(label))
      return Status::error("a batch with label " + std::to_string(label) +
                           ", which is no token and not " +
                           std::to_string(kNoLabel));
  for (const int32_t position : batch.positions)
    if (position < 0 || position >= options.length)
      return Status::error("a batch with position " + std::to_string(position) +
                           " in rows of " + std::to_string(options.length));
  return Status();
}

Result<TrainingLoss> CompiledTrainingModel::run(Program &program,
                                                const TrainingBatch &batch,
                                                CancelFlag cancelled) {
  size_t input = 0;
  for (const std::vector<int32_t> *list :
       {&batch.ids, &batch.positions, &batch.examples, &batch.labels})
    KF_RETURN_IF_ERROR(program.runner->write(input++, list->data(),
                                             list->size() * sizeof(int32_t)));
  if (&program == gradient.get() &&
      shapeOf(TrainingPart::Gradient).dropsOut()) {
    const auto draw = nextDraw();
    KF_RETURN_IF_ERROR(program.runner->write(input, draw.data(), sizeof(draw)));
  }
  KF_RETURN_IF_ERROR(program.runner->execute(StepSizes(1), cancelled));
  KF_ASSIGN_OR_RETURN(const void *sum,
                      program.runner->read(0, 0, sizeof(float)));
  TrainingLoss result;
  result.sum = *static_cast<const float *>(sum);
  result.labels =
      std::ranges::count_if(batch.labels, [](int32_t x) { return x >= 0; });
  if (!std::isfinite(result.sum))
    return Status::error("the loss is not finite; lower the learning rate, or "
                         "look for NaNs in the weights");
  return result;
}

/// It follows from the seed, from how many updates there were, and from which
/// batch of the next one it is, so that a training that goes on draws the same.
/// Each module of a batch has a stream of its own (Training.h). Those of the
/// upper half are none that first values are drawn from.
std::array<uint32_t, kDrawWords> CompiledTrainingModel::nextDraw() {
  const auto modules = static_cast<uint32_t>(tensors.size() / 2);
  return {static_cast<uint32_t>(count), (uint32_t(1) << 31) + modules * added++,
          static_cast<uint32_t>(options.seed),
          static_cast<uint32_t>(options.seed >> 32)};
}

Status CompiledTrainingModel::clearGradients() {
  added = 0;
  for (const std::unique_ptr<Buffer> &buffer : gradients)
    KF_RETURN_IF_ERROR(stream->fill(*buffer, 0, buffer->size() / 4 * 4, 0));
  return Status();
}

Result<TrainingLoss>
CompiledTrainingModel::accumulate(const TrainingBatch &batch,
                                  CancelFlag cancelled) try {
  KF_RETURN_IF_ERROR(checkBatch(batch));
  Result<TrainingLoss> result = [&]() -> Result<TrainingLoss> {
    try {
      return run(*gradient, batch, cancelled);
    } catch (...) {
      return statusOfException();
    }
  }();
  // The first error is the one that tells; what fails next says the second.
  if (!result.ok() && clearGradients().ok())
    (void)stream->synchronize();
  return result;
} catch (...) {
  return statusOfException();
}

Result<TrainingLoss> CompiledTrainingModel::evaluate(const TrainingBatch &batch,
                                                     CancelFlag cancelled) try {
  KF_RETURN_IF_ERROR(checkBatch(batch));
  if (!loss) {
    KF_ASSIGN_OR_RETURN(loss, make(TrainingPart::Loss));
  }
  return run(*loss, batch, cancelled);
} catch (...) {
  return statusOfException();
}

Result<double> CompiledTrainingModel::update(const TrainingUpdate &update) try {
  if (update.labels < 1)
    return Status::error("an update of " + std::to_string(update.labels) +
                         " labels; 1 or more are expected");
  if (!std::isfinite(update.learningRate) || update.learningRate < 0)
    return Status::error("an update with learning rate " +
                         spellNumber(update.learningRate) +
                         "; a finite number of at least 0 is expected");
  ProgramRunner &runner = *optimizer->runner;
  const float rate = update.learningRate;
  const auto share = static_cast<float>(1 / static_cast<double>(update.labels));
  KF_RETURN_IF_ERROR(runner.write(0, &rate, sizeof(rate)));
  KF_RETURN_IF_ERROR(runner.write(1, &share, sizeof(share)));
  const OptimizerOptions &own = options.optimizer;
  if (own.kind == OptimizerOptions::Kind::AdamW) {
    auto correction = [&](double beta) {
      const auto steps = static_cast<double>(count + 1);
      return static_cast<float>(1 / (1 - std::pow(beta, steps)));
    };
    const float step[2] = {correction(own.beta1), correction(own.beta2)};
    KF_RETURN_IF_ERROR(runner.write(2, step, sizeof(step)));
  }
  KF_RETURN_IF_ERROR(runner.execute(StepSizes(1)));
  KF_RETURN_IF_ERROR(clearGradients());
  KF_RETURN_IF_ERROR(stream->synchronize());
  KF_ASSIGN_OR_RETURN(const void *norm, runner.read(0, 0, sizeof(float)));
  const double result = *static_cast<const float *>(norm);
  if (!std::isfinite(result))
    return Status::error("the norm of the gradients is not finite; lower the "
                         "learning rate");
  ++count;
  return result;
} catch (...) {
  return statusOfException();
}

uint64_t CompiledTrainingModel::arenaBytes() const {
  uint64_t bytes = 0;
  for (const Program *program : {gradient.get(), loss.get(), optimizer.get()})
    bytes += program ? program->runner->arenaBytes() : 0;
  return bytes;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

std::vector<std::string> CompiledTrainingModel::stateNames() const {
  std::vector<std::string> names;
  for (const TrainedTensor &tensor : tensors) {
    names.push_back(tensor.name);
    for (size_t moment = 0; moment < moments.size(); ++moment)
      names.push_back(momentName(tensor.name, moment));
  }
  return names;
}

std::pair<Buffer *, const TrainedTensor *>
CompiledTrainingModel::findState(const std::string &name) const {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!name.starts_with(tensors[i].name))
      continue;
    if (name == tensors[i].name)
      return {values[i].get(), &tensors[i]};
    for (size_t moment = 0; moment < moments.size(); ++moment)
      if (name == momentName(tensors[i].name, moment))
        return {moments[moment][i].get(), &tensors[i]};
  }
  return {nullptr, nullptr};
}

static Status noState(const std::string &name) {
  return Status::error("there is no state " + inQuotes(name) +
                       " in what is trained");
}

Result<HostTensor>
CompiledTrainingModel::readState(const std::string &name) try {
  const auto [buffer, tensor] = findState(name);
  if (!buffer)
    return noState(name);
  return read(*buffer, *tensor);
} catch (...) {
  return statusOfException();
}

Status CompiledTrainingModel::writeState(const std::string &name,
                                         const HostTensor &value) try {
  const auto [buffer, tensor] = findState(name);
  if (!buffer)
    return noState(name);
  if (value.type != DataType::F32 || value.shape != tensor->shape)
    return Status::error("state " + inQuotes(name) + " is " +
                         describe(TensorSpec{DataType::F32, tensor->shape}) +
                         ", found " +
                         describe(TensorSpec{value.type, value.shape}));
  return write(*buffer, value);
} catch (...) {
  return statusOfException();
}

Result<HostTensor> CompiledTrainingModel::readGradient(size_t i) {
  return read(*gradients[i], tensors[i]);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Status CompiledTrainingModel::save(const std::string &path) try {
  return options.lora ? saveAdapter(path) : saveModel(path);
} catch (...) {
  return statusOfException();
}

Status CompiledTrainingModel::saveAdapter(const std::string &path) {
  std::map<std::string, HostTensor> written;
  for (size_t i = 0; i < tensors.size(); ++i) {
    KF_ASSIGN_OR_RETURN(written[tensors[i].name], read(*values[i], tensors[i]));
  }
  return writePeftAdapter(path, *options.lora, model.config, options.model.path,
                          written);
}

/// config.json of weights that are all f32, and that share an output matrix
/// with the embeddings where `isTied`.
static Result<std::string> configOfFloats(const std::string &text,
                                          bool isTied) {
  auto config = nlohmann::ordered_json::parse(text, nullptr,
                                              /*allow_exceptions=*/false);
  if (!config.is_object())
    return Status::error("the model's configuration is no JSON object, so that "
                         "no config.json can be written");
  config.erase("quantization_config");
  config.erase("compression_config");
  config.erase("dtype");
  config["torch_dtype"] = "float32";
  config["tie_word_embeddings"] = isTied;
  return config.dump(2) + "\n";
}

/// model.safetensors in f32, and what else the model's folder has beside its
/// weights.
Status CompiledTrainingModel::saveModel(const std::string &path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    return Status::error("cannot make the folder '" + path +
                         "': " + error.message());
  KF_ASSIGN_OR_RETURN(
      const std::string config,
      configOfFloats(model.configText, model.config.tiedEmbeddings));
  std::map<std::string, bool> isTransposed;
  for (const ListedTensor &listed : listTensors(model.config))
    isTransposed[listed.key] = listed.transposed;
  std::map<std::string, HostTensor> written;
  for (size_t i = 0; i < tensors.size(); ++i) {
    KF_ASSIGN_OR_RETURN(HostTensor value, read(*values[i], tensors[i]));
    written[tensors[i].name] =
        isTransposed[tensors[i].key] ? transposed(value) : std::move(value);
  }
  KF_RETURN_IF_ERROR(writeSafetensors(path + "/" + kWeightsFile, written,
                                      {.metadata = {{"format", "pt"}}}));
  namespace fs = std::filesystem;
  KF_RETURN_IF_ERROR(removeFilesOfOthers(path, options.model.path));
  if (!options.model.path.empty())
    for (const char *name : kFilesBesideWeights) {
      const fs::path from = fs::path(options.model.path) / name;
      const fs::path to = fs::path(path) / name;
      if (!fs::exists(from, error) || fs::equivalent(from, to, error))
        continue;
      fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
      if (error)
        return Status::error(to.string() + ": " + error.message());
    }
  return writeFile(path + "/config.json", config);
}
