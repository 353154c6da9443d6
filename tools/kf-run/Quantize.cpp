//===- Quantize.cpp - kf-run quantize -------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Interrupt.h"
#include "ModelFlags.h"
#include "OptionParser.h"
#include "Progress.h"
#include "Report.h"

#include "runtime/convert/TensorTypes.h"
#include "runtime/convert/WriteGguf.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"
#include "runtime/io/Gguf.h"
#include "runtime/model/ChatConfig.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/GgufOddities.h"
#include "runtime/session/EmbeddedModel.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>

using namespace kf;
namespace fs = std::filesystem;

namespace {

struct QuantizeOptions {
  std::string model; ///< empty: the embedded one
  DummyFlags dummy;
  std::string out;
  DataType type = DataType::F32;
  std::optional<int64_t> threads; ///< without it, and with 0: one per CPU
  bool force = false;
};

/// `value` with `digits` digits after the point.
std::string fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*f", digits, value);
  return buffer;
}

std::string mebibytes(uint64_t bytes) {
  return fixed(static_cast<double>(bytes) / (1 << 20), 2) + " MiB";
}

std::string summaryOf(const WriteSummary &summary,
                      const QuantizeOptions &options, double seconds) {
  std::string text =
      "wrote " + quotePath(options.out) + ": " + mebibytes(summary.fileBytes) +
      " from " + mebibytes(summary.sourceBytes) + ", " +
      fixed(8.0 * static_cast<double>(summary.tensorBytes) /
                static_cast<double>(std::max<int64_t>(summary.elements, 1)),
            2) +
      " bits per weight; tensors:";
  std::string separator = " ";
  for (auto [type, count] : summary.tensors) {
    text += separator + std::to_string(count) + " " + std::string(nameOf(type));
    separator = ", ";
  }
  return text + "; " + fixed(seconds, 2) + " s, " +
         fixed(static_cast<double>(summary.sourceBytes) / 1e6 / seconds, 1) +
         " MB/s\n";
}

/// The file's text; nothing if there is no such file.
Result<std::optional<MappedFile>> openIfThere(const fs::path &path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    return std::optional<MappedFile>();
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path.string()));
  return std::optional<MappedFile>(std::move(file));
}

/// Refuses an OUT that is `path`, a file of the model.
Status checkIsOther(const QuantizeOptions &options, const fs::path &path) {
  std::error_code ignored;
  if (!fs::equivalent(path, options.out, ignored))
    return Status();
  return Status::error(quotePath(options.out) +
                       " is the model itself; give another name");
}

/// Refuses an OUT that is there, or that is a part of the model.
Status checkOutput(const QuantizeOptions &options) {
  std::error_code ignored;
  if (!fs::exists(options.out, ignored))
    return Status();
  if (!options.model.empty())
    KF_RETURN_IF_ERROR(checkIsOther(options, options.model));
  if (fs::is_directory(options.model, ignored))
    for (const fs::directory_entry &entry :
         fs::directory_iterator(options.model, ignored))
      KF_RETURN_IF_ERROR(checkIsOther(options, entry.path()));
  if (!options.force)
    return Status::error(quotePath(options.out) +
                         " exists already; --force replaces it");
  return Status();
}

Result<WriteSummary> write(const GgufPlan &plan, const WeightSource &weights,
                           const QuantizeOptions &options) {
  for (const std::string &warning : plan.warnings)
    printWarning(warning);
  for (const std::string &note : plan.notes)
    printNote(note);
  KF_ASSIGN_OR_RETURN(
      std::unique_ptr<ThreadPool> pool,
      ThreadPool::create(static_cast<int>(options.threads.value_or(0))));
  // They finish the work instead of the process: no temporary file stays.
  catchEveryInterrupt({SIGTERM, SIGHUP});
  Progress progress("writing " + quotePath(options.out));
  return writeGguf(
      plan, weights, options.out, *pool,
      {.replace = options.force, .progress = [&](int64_t done, int64_t all) {
         progress.update(all > 0 ? static_cast<double>(done) /
                                       static_cast<double>(all)
                                 : 1);
         return !interruptFlag();
       }});
}

Result<WriteSummary> quantizeGguf(const QuantizeOptions &options) {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> source, Gguf::open(options.model));
  for (const Gguf *file : source->files())
    KF_RETURN_IF_ERROR(checkIsOther(options, file->source()));
  // Which keys another architecture has is not known.
  const Result<std::string_view> architecture =
      source->getString("general.architecture");
  if (architecture.ok() && isGgufArchitecture(*architecture))
    for (const std::string &line : findGgufOddities(*source, *architecture))
      printWarning("model " + quotePath(options.model) + ": " + line);
  KF_ASSIGN_OR_RETURN(GgufPlan plan, planFromGguf(*source, options.type));
  return write(plan, *source, options);
}

/// What a GGUF file holds beside weights, and the files that it lies in.
struct TokenizerFiles {
  std::optional<MappedFile> json, sentencePiece;
  ChatConfig chat;

  TokenizerTexts texts() const {
    return {.json = json ? json->text() : "",
            .sentencePiece = sentencePiece ? sentencePiece->text() : "",
            .chatTemplate = chat.chatTemplate};
  }
};

/// Opens the files of the folder `path`, or of the folder that the file `path`
/// lies in.
Result<TokenizerFiles> openTokenizerFiles(const fs::path &path) {
  std::error_code ignored;
  const fs::path folder =
      fs::is_directory(path, ignored) ? path : path.parent_path();
  TokenizerFiles files;
  KF_ASSIGN_OR_RETURN(files.json, openIfThere(folder / "tokenizer.json"));
  KF_ASSIGN_OR_RETURN(files.sentencePiece,
                      openIfThere(folder / "tokenizer.model"));
  KF_ASSIGN_OR_RETURN(files.chat, loadChatConfig(folder.string()));
  return files;
}

Result<WriteSummary> quantizeModel(const QuantizeOptions &options) {
  KF_ASSIGN_OR_RETURN(
      ModelFiles model,
      openModel({.path = options.model, .dummy = options.dummy}, false));
  TokenizerFiles files;
  TokenizerTexts texts;
  std::string name = options.model;
  if (options.model.empty()) {
    name = "kf-stories";
    texts.json = KF_EMBEDDED(tokenizer);
    texts.chatTemplate = KF_EMBEDDED(chat_template);
  } else if (!options.dummy.used() || !options.dummy.tokenizer.empty()) {
    KF_ASSIGN_OR_RETURN(files, openTokenizerFiles(options.dummy.used()
                                                      ? options.dummy.tokenizer
                                                      : options.model));
    texts = files.texts();
  }
  if (!options.model.empty() && !options.dummy.used()) {
    std::error_code ignored;
    name = fs::canonical(options.model, ignored).filename().string();
  }
  Result<GgufPlan> plan = planFromModel(model.config, *model.weights, texts,
                                        name, options.type, model.pooling);
  if (!plan.ok())
    return nameModel(model, plan.status());
  return write(*plan, *model.weights, options);
}

Result<WriteSummary> quantize(const QuantizeOptions &options) {
  KF_RETURN_IF_ERROR(checkOutput(options));
  if (options.dummy.used())
    return quantizeModel(options);
  KF_ASSIGN_OR_RETURN(ModelKind kind, findModelKind(options.model));
  return kind == ModelKind::Gguf ? quantizeGguf(options)
                                 : quantizeModel(options);
}

} // namespace

int kf::runQuantize(Arguments arguments) {
  QuantizeOptions options;
  std::string type, typeBehind, threadsBehind;
  OptionParser parser(
      "quantize [MODEL] OUT.gguf --type TYPE [options]",
      "Writes a model as a GGUF file whose matrices are of another type, which "
      "may also stand behind OUT.gguf: quantize MODEL OUT.gguf q4_k. The K "
      "types are mixes that give some matrices more bits; vectors stay f32. "
      "Whatever happens, OUT is either complete or as it was.");
  parser.positional("MODEL", false, options.model,
                    "a folder as Hugging Face lays it out, or a GGUF file; "
                    "without it, the embedded model, kf-stories");
  parser.positional("OUT.gguf", false, options.out, "the file to write");
  parser.positional("TYPE", false, typeBehind,
                    "the same as --type, behind MODEL and OUT.gguf");
  parser.positional("THREADS", false, threadsBehind,
                    "the same as --threads, behind TYPE");
  parser.text(
      {"type", 0, "TYPE"}, type,
      "q8_0, q4_0, q4_1, q5_0, q5_1, q2_k, q3_k, q4_k, q5_k, q6_k, "
      "iq4_nl, iq4_xs, mxfp4, bf16, f16 or f32, in capitals or not. q3_k, q4_k "
      "and "
      "q5_k are llama.cpp's Q3_K_M, Q4_K_M and Q5_K_M, and may be "
      "called so");
  parser.integer({"threads", 't', "N"}, options.threads, 0,
                 ThreadPool::maxThreads,
                 "threads; 0, the default, is one per CPU that the process may "
                 "use");
  parser.flag({"force", 'f'}, options.force, "replaces OUT");
  options.dummy.addTo(parser, options.model);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  if (!typeBehind.empty()) {
    if (!type.empty())
      return parser.usageError(
          "the type is given twice: " + inQuotes(typeBehind) + " and --type " +
          inQuotes(type));
    type = typeBehind;
  }
  if (!threadsBehind.empty()) {
    if (options.threads)
      return parser.usageError(
          "the threads are given twice: " + inQuotes(threadsBehind) +
          " and --threads " + std::to_string(*options.threads));
    int64_t threads = 0;
    const char *last = threadsBehind.data() + threadsBehind.size();
    auto [end, code] = std::from_chars(threadsBehind.data(), last, threads);
    options.threads = threads;
    if (code != std::errc() || end != last || threads < 0 ||
        threads > ThreadPool::maxThreads)
      return parser.usageError("THREADS takes an integer from 0 to " +
                               std::to_string(ThreadPool::maxThreads) +
                               ", not " + inQuotes(threadsBehind));
  }
  if (type.empty() && parseFileType(options.out).ok())
    return parser.usageError("OUT.gguf is missing: give MODEL, OUT.gguf and " +
                             inQuotes(options.out));
  // One name is OUT.
  if (options.out.empty()) {
    std::swap(options.out, options.model);
    if (options.force)
      return parser.usageError("--force needs both MODEL and OUT.gguf, so that "
                               "the embedded model replaces no model by "
                               "mistake");
  }
  if (options.out.empty())
    return parser.usageError("OUT.gguf is missing");
  if (type.empty())
    return parser.usageError("--type is missing");
  Result<DataType> parsed = parseFileType(type);
  if (!parsed.ok())
    return parser.usageError("--type: " + parsed.message());
  options.type = *parsed;
  if (isMixName(type))
    printNote(type + " is " + std::string(nameOf(options.type)) +
              " here: the same mix of types by llama.cpp's rule, without an "
              "importance matrix");
  const auto start = std::chrono::steady_clock::now();
  Result<WriteSummary> summary = quantize(options);
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  if (!summary.ok() && interruptFlag())
    return reportInterrupt(quotePath(options.out) + " was not written");
  if (!summary.ok())
    return report(summary.status());
  return report(writeStdout(summaryOf(*summary, options, elapsed.count())));
}
