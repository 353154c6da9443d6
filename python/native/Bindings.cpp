//===- Bindings.cpp - What kernelforge's Python code calls ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The package's Python code checks and names arguments; what is here takes few
// types, converts none, and waits for work without the GIL.
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"
#include "Errors.h"
#include "Function.h"
#include "Interrupts.h"
#include "ServedModel.h"
#include "Training.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <cstring>
#include <tuple>

#include <unistd.h>

namespace nb = nanobind;
using namespace nb::literals;
using namespace kf;
using namespace kf::python;

namespace {

/// Texts up to this size take less time than anybody waits to be asked.
constexpr size_t kShortText = size_t(1) << 16;

/// Returns fn(flag), which is quick if the `bytes` that it reads are few.
template <typename Fn>
auto read(size_t bytes, Fn &&fn) -> decltype(fn(CancelFlag())) {
  std::atomic<bool> cancelled = false;
  if (bytes > kShortText)
    return runInterruptibly(cancelled, [&] { return fn(&cancelled); });
  return withoutGil(
      [&] { return catchExceptions([&] { return fn(nullptr); }); });
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

/// A token, the logarithm of its probability, and the likeliest tokens with
/// theirs.
using TokenLogProbs =
    std::tuple<int32_t, double, std::vector<std::pair<int32_t, double>>>;

TokenLogProbs logProbsOf(const ChosenLogProbs &given) {
  std::vector<std::pair<int32_t, double>> top;
  top.reserve(given.top.size());
  for (const LogProb &token : given.top)
    top.emplace_back(token.id, token.value);
  return {given.chosen.id, given.chosen.value, std::move(top)};
}

/// A text that is being generated. One thread at a time, which others wait for.
class Text {
public:
  /// `hasLogProbs`: they were asked for.
  Text(std::unique_ptr<TextHandle> handle, bool hasLogProbs)
      : handle(std::move(handle)) {
    if (hasLogProbs)
      logProbs.emplace();
  }

  /// Of the tokens of a text or a piece; none: they are not asked for.
  using LogProbs = std::optional<std::vector<TokenLogProbs>>;
  using Piece = std::tuple<std::string, std::vector<int32_t>, LogProbs>;
  /// What is new; waits until something is. Nothing at the end.
  std::optional<Piece> next() {
    const Turn turn(*this);
    const size_t before = logProbs ? logProbs->size() : 0;
    TextPiece piece = wait();
    if (!hasNews(piece))
      return std::nullopt;
    LogProbs added;
    if (logProbs)
      added.emplace(logProbs->begin() + static_cast<ptrdiff_t>(before),
                    logProbs->end());
    return Piece(std::move(piece.text), std::move(piece.ids), std::move(added));
  }

  /// Text, ids, why it ended, tokens of the prompt, those of them that were in
  /// the cache, seconds until the first token, and after it, and
  /// log-probabilities.
  using Whole = std::tuple<std::string, std::vector<int32_t>, std::string,
                           int64_t, int64_t, double, double, LogProbs>;
  /// The whole text; waits until it has ended.
  Whole result() {
    const Turn turn(*this);
    while (!end)
      (void)wait();
    raiseIfError(end->status());
    const GenerationResult &whole = **end;
    return {whole.text,
            whole.ids,
            std::string(nameOf(whole.reason)),
            whole.promptTokens,
            whole.reusedTokens,
            whole.prefillSeconds,
            whole.decodeSeconds,
            logProbs};
  }

  /// The embedding, where one was asked for: float32 of numpy's. Waits for it.
  nb::object embedding() {
    const Turn turn(*this);
    while (!end)
      (void)wait();
    raiseIfError(end->status());
    if ((*end)->reason == StopReason::Cancelled)
      raise(Status::error("the embedding was ended: its model was closed, or "
                          "an interrupt came",
                          StatusCode::Cancelled));
    const std::vector<float> &values = (*end)->embedding;
    HostTensor tensor = valueOf(catchExceptions([&] {
      return HostTensor::zeros(DataType::F32,
                               {static_cast<int64_t>(values.size())});
    }));
    std::ranges::copy(values, tensor.data<float>());
    return arrayOf(std::move(tensor));
  }

  void cancel() { handle->cancel(); }

private:
  /// Holds the text's mutex, for which it waits without the GIL.
  struct Turn {
    explicit Turn(Text &text) : lock(text.reading, std::try_to_lock) {
      while (!lock.owns_lock()) {
        waitForTurn();
        (void)lock.try_lock();
      }
    }
    std::unique_lock<std::mutex> lock;
  };

  static bool hasNews(const TextPiece &piece) {
    return !piece.text.empty() || !piece.ids.empty() || !piece.logProbs.empty();
  }

  /// The next piece; empty after the end, an exception where that is an error.
  TextPiece wait() {
    TextPiece piece;
    while (!end && piece.isEmpty()) {
      // The exception may keep this object for as long as it is looked at.
      if (hasRaised()) {
        handle->cancel();
        nb::raise_python_error();
      }
      piece = withoutGil([&] {
        return handle->wait(std::chrono::steady_clock::now() + kSignalInterval);
      });
      if (piece.end)
        end = std::move(piece.end);
    }
    if (logProbs)
      for (const TextLogProbs &token : piece.logProbs)
        logProbs->push_back(logProbsOf(token));
    if (end && !hasNews(piece))
      raiseIfError(end->status());
    return piece;
  }

  std::unique_ptr<TextHandle> handle;
  std::mutex reading; ///< of what follows
  LogProbs logProbs;
  std::optional<Result<GenerationResult>> end;
};

/// Asks for a text when there is no reservation any more.
std::unique_ptr<Text> submit(ServedModel &model, const TextRequest &request) {
  for (;;) {
    auto tried = withoutGil([&] {
      return catchExceptions([&] { return model.trySubmit(request); });
    });
    if (auto handle = valueOf(std::move(tried)))
      return std::make_unique<Text>(std::move(*handle),
                                    request.topLogProbs.has_value());
    waitForTurn();
  }
}

std::unique_ptr<Text> generate(ServedModel &model, const std::string &json,
                               bool isChat) {
  return submit(
      model,
      valueOf(read(isChat ? SIZE_MAX : json.size(), [&](CancelFlag cancelled) {
        return model.readRequest(json, isChat, cancelled);
      })));
}

/// Of `text`, or of `ids` where there is none; an empty `pooling` is not said.
std::unique_ptr<Text>
embed(ServedModel &model, const std::optional<std::string> &text,
      const std::vector<int32_t> &ids, const std::string &pooling,
      std::optional<bool> normalizes, int64_t dimensions) {
  const EmbeddingChoice choice = {.pooling = poolingOfName(pooling),
                                  .normalizes = normalizes};
  return submit(
      model, valueOf(read(text ? text->size() : 0, [&](CancelFlag cancelled) {
        return model.embeddingRequest(text, ids, choice, dimensions, cancelled);
      })));
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

/// A path, which need not be Unicode.
std::string textOf(const nb::bytes &path) {
  return std::string(path.c_str(), path.size());
}

std::unique_ptr<ServedModel>
load(const nb::bytes &path, const std::string &device, int64_t threads,
     std::optional<int64_t> context, const std::string &cacheType,
     const std::string &activationType, uint64_t cacheMemory, int64_t parallel,
     const nb::bytes &templateFile,
     const std::vector<std::tuple<std::string, nb::bytes>> &adapters) {
  ServedModelOptions options;
  options.session.model.path = textOf(path);
  for (const auto &[name, folder] : adapters)
    options.session.model.adapters.push_back({name, textOf(folder)});
  options.session.device = {.device = device, .threads = threads};
  options.session.context = context.value_or(0);
  options.session.wholeContext = context == 0;
  options.session.cacheMemory = cacheMemory;
  options.compile.cacheType = cacheType;
  options.compile.activationType = activationType;
  options.templateFile = textOf(templateFile);
  options.parallel = parallel;
  auto model = std::make_unique<ServedModel>(std::move(options));
  raiseIfError(
      runInterruptibly(model->cancelFlag(), [&] { return model->open(); }));
  return model;
}

/// -log p of all tokens of the text, their number, and the standard error of
/// the mean.
std::tuple<double, int64_t, double> lossOf(ServedModel &model,
                                           const std::string &text) {
  ServedModel::Reservation reservation(model);
  for (;;) {
    auto tried = withoutGil(
        [&] { return catchExceptions([&] { return reservation.tryTake(); }); });
    if (valueOf(std::move(tried)))
      break;
    waitForTurn();
  }
  const TextLoss loss = valueOf(runInterruptibly(
      model.cancelFlag(), [&] { return reservation.loss(text); }));
  return {loss.sum, loss.tokens, loss.error()};
}

void close(auto &object) {
  withoutGil([&] { object.close(); });
}

void bindModel(nb::module_ &m) {
  nb::class_<Text>(m, "Text", "A text that is being generated.")
      .def("next", &Text::next,
           "What is new of the text, its token ids, and log-probabilities if "
           "they were asked for; None at the end.")
      .def("result", &Text::result,
           "Text, ids, why it ended, tokens of the prompt, those of them that "
           "were in the cache, the seconds of the prompt and after it, and "
           "log-probabilities if they were asked for.")
      .def("embedding", &Text::embedding,
           nb::sig("def embedding(self) -> "
                   "typing.Any"),
           "The embedding that was asked for, an array of float32.")
      .def("cancel", &Text::cancel, "Ends it after the step that runs.");

  nb::class_<ServedModel>(m, "Model", "A model, and the thread that runs it.")
      .def("submit", &generate, "json"_a, "is_chat"_a.noconvert(),
           "Asks for a text: a request of OpenAI's API.")
      .def("embed", &embed, "text"_a.none(), "ids"_a.noconvert(), "pooling"_a,
           "normalize"_a.none().noconvert(), "dimensions"_a.noconvert(),
           "Asks for the embedding of a text, or of ids.")
      .def("loss", &lossOf, "text"_a,
           "-log p of a text, its tokens, and the mean's standard error.")
      .def(
          "tokenize",
          [](const ServedModel &model, const std::string &text, bool addSpecial,
             bool parseSpecial) {
            return valueOf(read(text.size(), [&](CancelFlag cancelled) {
              return model.tokenize(text, addSpecial, parseSpecial, cancelled);
            }));
          },
          "text"_a, "add_special"_a.noconvert(), "parse_special"_a.noconvert())
      .def(
          "detokenize",
          [](const ServedModel &model, const std::vector<int32_t> &ids,
             bool skipSpecial) {
            return valueOf(read(ids.size(), [&](CancelFlag) {
              return model.detokenize(ids, skipSpecial);
            }));
          },
          "ids"_a.noconvert(), "skip_special"_a.noconvert())
      .def(
          "render",
          [](const ServedModel &model, const std::string &json,
             bool forAnswer) {
            return valueOf(read(SIZE_MAX, [&](CancelFlag cancelled) {
              return model.render(json, forAnswer, cancelled);
            }));
          },
          "json"_a, "for_answer"_a.noconvert(),
          "The prompt of a chat, given as a request for one.")
      .def("close", &close<ServedModel>)
      .def("messages",
           [](ServedModel &model) { return model.messages().take(); })
      .def_prop_ro("name",
                   [](const ServedModel &model) { return model.facts().name; })
      .def_prop_ro(
          "device",
          [](const ServedModel &model) { return model.facts().device; })
      .def_prop_ro(
          "context",
          [](const ServedModel &model) { return model.facts().context; })
      .def_prop_ro(
          "vocabulary",
          [](const ServedModel &model) { return model.facts().vocabulary; })
      .def_prop_ro(
          "hidden_size",
          [](const ServedModel &model) { return model.facts().hiddenSize; })
      .def_prop_ro(
          "eos_ids",
          [](const ServedModel &model) { return model.facts().eosIds; })
      .def_prop_ro(
          "has_tokenizer",
          [](const ServedModel &model) { return model.facts().hasTokenizer; })
      .def_prop_ro("has_template", [](const ServedModel &model) {
        return model.facts().hasTemplate;
      });

  m.def("load", &load, "path"_a, "device"_a, "threads"_a.noconvert(),
        "context"_a.none().noconvert(), "cache_type"_a, "activation_type"_a,
        "cache_memory"_a.noconvert(), "parallel"_a.noconvert(),
        "chat_template"_a, "adapters"_a);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

std::unique_ptr<Function> compile(const std::string &text,
                                  const std::string &name,
                                  const std::string &device, int64_t threads,
                                  const nb::bytes &weights, int64_t maxTokens) {
  auto function = std::make_unique<Function>(
      FunctionOptions{.text = text,
                      .name = name,
                      .device = {.device = device, .threads = threads},
                      .weights = textOf(weights),
                      .maxTokens = maxTokens});
  raiseIfError(runInterruptibly(function->cancelFlag(),
                                [&] { return function->open(); }));
  return function;
}

std::vector<nb::object> call(Function &function, const nb::args &arrays) {
  std::vector<HostTensor> tensors;
  tensors.reserve(arrays.size());
  for (nb::handle array : arrays)
    tensors.push_back(
        tensorOf(array, "input " + std::to_string(tensors.size())));
  // A run is short and ends by itself; signals are handled after it. CUDA's
  // current context is that of a thread, which the caller's keeps.
  std::atomic<bool> ignored = false;
  auto run = [&] { return function.run(tensors); };
  std::vector<HostTensor> results =
      valueOf(function.deviceName() == "cuda"
                  ? runInterruptibly(ignored, run)
                  : read(0, [&](CancelFlag) { return run(); }));
  std::vector<nb::object> made;
  made.reserve(results.size());
  for (HostTensor &result : results)
    made.push_back(arrayOf(std::move(result)));
  return made;
}

/// Type and extents of each; -1 is one that inputs decide.
std::vector<std::pair<std::string, std::vector<int64_t>>>
typesOf(std::span<const TensorSpec> specs) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> types;
  for (const TensorSpec &spec : specs) {
    std::vector<int64_t> shape;
    shape.reserve(spec.shape.size());
    for (int64_t extent : spec.shape)
      shape.push_back(isSizeExtent(extent) ? -1 : extent);
    types.emplace_back(nameOf(spec.type), std::move(shape));
  }
  return types;
}

void bindFunction(nb::module_ &m) {
  nb::class_<Function>(m, "Function", "A compiled function of kf ops.")
      .def("call", &call,
           nb::sig("def call(self, *arrays: object) -> list[typing.Any]"))
      .def("close", &close<Function>)
      .def("messages",
           [](Function &function) { return function.messages().take(); })
      .def_prop_ro("name", &Function::name)
      .def_prop_ro("device", &Function::deviceName)
      .def_prop_ro(
          "inputs",
          [](const Function &function) { return typesOf(function.inputs()); })
      .def_prop_ro("outputs", [](const Function &function) {
        return typesOf(function.outputs());
      });
  m.def("compile", &compile, "text"_a, "name"_a, "device"_a,
        "threads"_a.noconvert(), "weights"_a, "max_tokens"_a.noconvert());
}

//===----------------------------------------------------------------------===//
// What ends the process
//===----------------------------------------------------------------------===//

/// LLVM and MLIR cannot return an error there, and no exception may pass
/// through them. Uses no memory.
[[noreturn]] void endProcess(const char *why) {
  for (const char *part :
       {"kernelforge: the compiler cannot go on, and the process ends: ", why,
        "\n"})
    (void)!::write(STDERR_FILENO, part, std::strlen(part));
  std::abort();
}

} // namespace

NB_MODULE(_kernelforge, m) {
  prepareToStay();
  nb::set_leak_warnings(false); // nothing is printed
  m.doc() = "What the Python code of kernelforge calls; not for others.";
  m.attr("version") = KF_VERSION;
  installCompilerErrorHandlers(
      {.onOutOfMemory = [] { endProcess("there is not enough memory"); },
       .onFatalError = [](const char *reason) { endProcess(reason); }});
  bindModel(m);
  bindFunction(m);
  bindTraining(m);
  m.def("end", &Worker::endAll,
        "Ends what goes on on other threads, and waits for that.");
}
