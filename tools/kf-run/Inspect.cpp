//===- Inspect.cpp - kf-run inspect ---------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "JsonDocument.h"
#include "LayerPattern.h"
#include "ModelArgument.h"
#include "ModelFacts.h"
#include "ModelFlags.h"
#include "OptionParser.h"
#include "Report.h"
#include "TextTable.h"

#include "runtime/core/ShapeText.h"
#include "runtime/text/Utf8.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

using namespace kf;
using nlohmann::ordered_json;

namespace {

/// Elements of an array that are shown, and characters of a text.
constexpr uint64_t kShownElements = 6;
constexpr size_t kShownText = 72;

/// `text` from a file, fit for a terminal: valid UTF-8 without control
/// characters.
std::string printable(std::string_view text) {
  std::string result;
  const std::string valid = toValidUtf8(text);
  for (std::string_view rest = valid; !rest.empty();) {
    const Utf8Step step = stepUtf8(rest);
    const bool control = step.character < 0x20 ||
                         (step.character >= 0x7f && step.character < 0xa0);
    result += control ? "?" : std::string(rest.substr(0, step.length));
    rest.remove_prefix(step.length);
  }
  return result;
}

/// The same in quotes and cut off at kShownText bytes.
std::string quoted(std::string_view text) {
  auto inQuotes = [](std::string_view part) {
    std::string result = "\"";
    for (char c : printable(part))
      result += c == '"' ? "\\\"" : std::string(1, c);
    return result + "\"";
  };
  if (text.size() <= kShownText)
    return inQuotes(text);
  std::string_view start = text.substr(0, kShownText);
  // A character that the cut falls into would look like a broken one.
  for (int i = 0; i < 3 && (text[start.size()] & 0xc0) == 0x80; ++i)
    start.remove_suffix(1);
  return inQuotes(start) + "... (" + std::to_string(text.size()) + " bytes)";
}

//===----------------------------------------------------------------------===//
// Metadata
//===----------------------------------------------------------------------===//

std::string typeOf(const GgufValue &value) {
  if (value.type() != GgufValueType::Array)
    return std::string(nameOf(value.type()));
  return "array of " + std::string(nameOf(value.elementType()));
}

/// A number or bool as JSON writes it; nothing for texts and arrays.
std::optional<std::string> scalarText(const GgufValue &value) {
  if (std::optional<bool> flag = value.toBool())
    return *flag ? "true" : "false";
  if (std::optional<uint64_t> number = value.toUnsigned())
    return std::to_string(*number);
  if (std::optional<int64_t> number = value.toSigned())
    return std::to_string(*number);
  if (std::optional<double> number = value.toFloat())
    return value.type() == GgufValueType::F32
               ? jsonNumber(static_cast<float>(*number))
               : jsonNumber(*number);
  return std::nullopt;
}

std::string valueText(const GgufValue &value) {
  if (std::optional<std::string> scalar = scalarText(value))
    return *scalar;
  if (std::optional<std::string_view> text = value.toString())
    return quoted(*text);
  std::string out = "[";
  for (const GgufValue &element : value.elements(kShownElements))
    out += (out.size() > 1 ? ", " : "") +
           (element.type() == GgufValueType::Array
                ? std::to_string(element.size()) + " elements"
                : valueText(element));
  if (value.size() > kShownElements)
    out += ", ... " + std::to_string(value.size()) + " in all";
  return out + "]";
}

ordered_json valueJson(const GgufValue &value) {
  if (std::optional<std::string> scalar = scalarText(value))
    return readDocument(*scalar);
  if (std::optional<std::string_view> text = value.toString())
    return *text;
  ordered_json list = ordered_json::array();
  for (const GgufValue &element : value.elements(kShownElements))
    list.push_back(valueJson(element));
  return list;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

int64_t layersWithExperts(const ModelConfig &config) {
  int64_t layers = 0;
  for (int64_t i = 0; i < config.layers; ++i)
    layers += config.hasExperts(i) ? 1 : 0;
  return layers;
}

/// "64 of width 1024, 8 for a token", and what other blocks there are; empty
/// without experts.
std::string expertsText(const ModelConfig &config) {
  const ExpertsConfig &experts = config.experts;
  if (experts.count == 0)
    return {};
  std::string text = std::to_string(experts.count) + " of width " +
                     std::to_string(experts.width) + ", " +
                     std::to_string(experts.chosen) + " for a token";
  if (experts.sharedWidth)
    text += ", and one of width " + std::to_string(experts.sharedWidth) +
            " for all";
  if (const int64_t layers = layersWithExperts(config); layers < config.layers)
    text += ", in " + std::to_string(layers) + " layers";
  return text;
}

std::string configText(const ModelConfig &config) {
  std::string text = std::to_string(config.layers) + " layers, hidden size " +
                     std::to_string(config.hiddenSize);
  if (layersWithExperts(config) < config.layers || config.experts.besideBlock)
    text += ", feed-forward " + std::to_string(config.intermediateSize);
  text += ", " + std::to_string(config.heads) + " heads of ";
  if (const LatentConfig &latent = config.latent; latent.width)
    return text + std::to_string(latent.plainDim + latent.turnedDim) +
           ", with keys and values made of " + std::to_string(latent.width) +
           " and " + std::to_string(latent.turnedDim);
  text += std::to_string(config.headDim);
  if (config.kvHeads != config.heads)
    text += ", " + std::to_string(config.kvHeads) + " for keys and values";
  return text;
}

/// Adds a list with commas as rows that fit a terminal of 100 columns.
void addList(TextTable &table, std::string name, std::string_view list) {
  constexpr size_t columns = 100 - std::string_view("  chat template  ").size();
  while (list.size() > columns) {
    const size_t comma = list.rfind(", ", columns - 1);
    if (comma == std::string_view::npos)
      break;
    table.add({std::move(name), std::string(list.substr(0, comma + 1))});
    name.clear();
    list.remove_prefix(comma + 2);
  }
  table.add({std::move(name), std::string(list)});
}

/// Rows with the sizes of all layers, of experts, and of layers that differ.
void addSizes(TextTable &table, const ModelConfig &config) {
  addList(table, "sizes", configText(config));
  if (const std::string experts = expertsText(config); !experts.empty())
    addList(table, "experts", experts);
  std::string name = "layers";
  for (const std::string &line : layerPattern(config))
    addList(table, std::exchange(name, ""), line);
}

std::string overview(const ModelFacts &facts) {
  TextTable table(/*right=*/false);
  table.add({"format", facts.format});
  table.add({"architecture", facts.architecture.empty()
                                 ? "not stated"
                                 : printable(facts.architecture)});
  if (const auto &config = facts.config) {
    addSizes(table, *config);
    table.add({"vocabulary",
               std::to_string(config->vocabSize) + " rows" +
                   (config->tiedEmbeddings ? ", the output matrix too" : "")});
    table.add({"context", std::to_string(config->maxPositions) + " positions"});
  } else {
    table.add({"cannot run", printable(facts.configProblem)});
  }
  table.add({"parameters", std::to_string(facts.parameters())});
  std::string tokenizer = "none";
  if (!facts.tokenizer.empty())
    tokenizer = printable(facts.tokenizer) + ", " +
                std::to_string(facts.tokens) + " tokens";
  if (!facts.tokenizerProblem.empty())
    tokenizer += "; " + printable(facts.tokenizerProblem);
  table.add({"tokenizer", tokenizer});
  table.add({"chat template", facts.chatTemplate ? "yes" : "no"});
  return table.text();
}

std::string typesText(const ModelFacts &facts) {
  TextTable table(/*right=*/true);
  table.add({"type", "tensors", "parameters", "bytes"});
  for (const auto &[name, type] : facts.types())
    table.add({name.empty() ? "other" : name, std::to_string(type.tensors),
               std::to_string(type.elements), std::to_string(type.bytes)});
  table.add({"all", std::to_string(facts.tensors.size()),
             std::to_string(facts.parameters()),
             std::to_string(facts.tensorBytes())});
  std::string out = "\ntensors\n" + table.text();
  if (!facts.tensorProblem.empty())
    out += "  " + printable(facts.tensorProblem) + "\n";
  return out;
}

std::string tensorsText(const ModelFacts &facts) {
  TextTable table(/*right=*/false);
  for (const TensorFacts &tensor : facts.tensors)
    table.add({printable(tensor.name),
               tensor.type.empty() ? "other" : tensor.type,
               shapeText(tensor.shape), std::to_string(tensor.bytes)});
  return "\ntensors by name: type, shape, bytes\n" + table.text();
}

std::string memoryText(uint64_t weights, std::span<const MemoryFacts> rows) {
  TextTable table(/*right=*/true);
  table.add(
      {"context", "cache f16", "with weights", "cache f32", "with weights"});
  for (const MemoryFacts &row : rows)
    table.add({std::to_string(row.context), bytesText(row.cacheF16),
               bytesText(weights + row.cacheF16), bytesText(row.cacheF32),
               bytesText(weights + row.cacheF32)});
  return "estimated memory, weights " + bytesText(weights) + "\n" +
         table.text();
}

/// Bytes of a row of a rank's part.
uint64_t rowBytesOf(const StepCollectives &collectives) {
  return static_cast<uint64_t>(collectives.columns) * sizeof(float);
}

std::string ranksText(const RankFacts &facts) {
  const StageConfig &stage = facts.config.stage;
  const std::string each =
      facts.rank ? "\nrank " + std::to_string(*facts.rank) + ", stage " +
                       std::to_string(stage.number) + " of 0 to " +
                       std::to_string(stage.count - 1)
                 : "\neach of " + std::to_string(facts.ranks) + " ranks";
  TextTable sizes(/*right=*/false);
  addSizes(sizes, facts.config);
  if (facts.tokenF16 > 0)
    sizes.add({"cache", bytesText(facts.tokenF16) + " a token in f16, " +
                            bytesText(facts.tokenF32) + " in f32"});
  if (facts.config.contextRanks > 1)
    sizes.add({"context", std::to_string(facts.tokensOfGiBF16) +
                              " tokens in 1 GiB of each in f16, " +
                              std::to_string(facts.tokensOfGiBF32) +
                              " in f32"});
  if (facts.windowsF16 > 0)
    sizes.add({"windows", bytesText(facts.windowsF16) +
                              " a long text in f16, " +
                              bytesText(facts.windowsF32) + " in f32"});
  TextTable table(/*right=*/true);
  table.add({"collective", "a step", "bytes of a row", "rows"});
  for (const StepCollectives &alike : facts.collectives)
    table.add({std::string(nameOf(alike.kind)), std::to_string(alike.count),
               std::to_string(rowBytesOf(alike)),
               alike.ofWanted ? "wanted" : "all"});
  return each + "\n" + sizes.text() + each + ": " +
         memoryText(facts.weights, facts.memory) + each +
         ": messages of a step\n" + table.text();
}

std::string metadataText(const Gguf &gguf) {
  TextTable table(/*right=*/false);
  for (const GgufEntry &entry : gguf.metadata())
    table.add(
        {printable(entry.key), typeOf(entry.value), valueText(entry.value)});
  return "\nmetadata\n" + table.text();
}

std::string textOf(const ModelFacts &facts, std::span<const RankFacts> ofRanks,
                   bool tensors) {
  std::string out = printable(facts.name) + "\n" + overview(facts);
  if (!facts.tensors.empty() || !facts.tensorProblem.empty())
    out += typesText(facts);
  if (!facts.memory().empty())
    out += "\n" + memoryText(facts.tensorBytes(), facts.memory());
  for (const RankFacts &ofRank : ofRanks)
    out += ranksText(ofRank);
  if (facts.gguf && !facts.gguf->metadata().empty())
    out += metadataText(*facts.gguf);
  if (tensors && !facts.tensors.empty())
    out += tensorsText(facts);
  return out;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

/// What each layer does that others do otherwise.
ordered_json layersJson(const ModelConfig &config) {
  ordered_json layers = ordered_json::array();
  for (int64_t i = 0; i < config.layers; ++i) {
    const LayerConfig layer = config.layer(i);
    layers.push_back({{"window", layer.window},
                      {"head_dim", layer.headDim},
                      {"kv_heads", layer.kvHeads},
                      {"intermediate_size", layer.intermediateSize}});
    if (layer.chunked)
      layers.back()["chunked"] = true;
    if (layer.isLinear)
      layers.back()["linear_attention"] = true;
    if (layer.keysOf)
      layers.back()["keys_of"] = *layer.keysOf;
  }
  return layers;
}

ordered_json configJson(const ModelConfig &config) {
  ordered_json json = {{"layers", config.layers},
                       {"hidden_size", config.hiddenSize},
                       {"intermediate_size", config.intermediateSize},
                       {"heads", config.heads},
                       {"kv_heads", config.kvHeads},
                       {"head_dim", config.headDim},
                       {"vocab_size", config.vocabSize},
                       {"context_length", config.maxPositions},
                       {"tied_embeddings", config.tiedEmbeddings}};
  if (config.latent.width)
    json["latent"] = {{"width", config.latent.width},
                      {"query_width", config.latent.queryWidth},
                      {"plain_dim", config.latent.plainDim},
                      {"turned_dim", config.latent.turnedDim},
                      {"value_dim", config.latent.valueDim}};
  if (!layerPattern(config).empty())
    json["layer_pattern"] = layersJson(config);
  if (config.experts.count)
    json["experts"] = {{"count", config.experts.count},
                       {"per_token", config.experts.chosen},
                       {"size", config.experts.width},
                       {"shared_size", config.experts.sharedWidth},
                       {"sigmoid", config.experts.sigmoid},
                       {"normalized", config.experts.normalized},
                       {"layers", layersWithExperts(config)}};
  return json;
}

ordered_json memoryJson(uint64_t weights, std::span<const MemoryFacts> rows) {
  ordered_json memory = ordered_json::array();
  for (const MemoryFacts &row : rows)
    memory.push_back({{"context", row.context},
                      {"cache_f16", row.cacheF16},
                      {"cache_f32", row.cacheF32},
                      {"total_f16", weights + row.cacheF16},
                      {"total_f32", weights + row.cacheF32}});
  return memory;
}

ordered_json rankJson(const RankFacts &facts) {
  ordered_json collectives = ordered_json::array();
  for (const StepCollectives &alike : facts.collectives)
    collectives.push_back({{"kind", nameOf(alike.kind)},
                           {"count", alike.count},
                           {"bytes_per_row", rowBytesOf(alike)},
                           {"rows", alike.ofWanted ? "wanted" : "all"}});
  ordered_json json = {{"count", facts.ranks},
                       {"config", configJson(facts.config)},
                       {"weights", facts.weights},
                       {"token_f16", facts.tokenF16},
                       {"token_f32", facts.tokenF32},
                       {"windows_f16", facts.windowsF16},
                       {"windows_f32", facts.windowsF32},
                       {"memory", memoryJson(facts.weights, facts.memory)},
                       {"collectives", std::move(collectives)}};
  if (facts.config.contextRanks > 1) {
    json["tokens_of_gib_f16"] = facts.tokensOfGiBF16;
    json["tokens_of_gib_f32"] = facts.tokensOfGiBF32;
  }
  if (facts.rank) {
    json["rank"] = *facts.rank;
    json["stage"] = facts.config.stage.number;
  }
  return json;
}

std::string jsonOf(const ModelFacts &facts, std::span<const RankFacts> ofRanks,
                   bool tensors) {
  // Problems are only there where something could not be read.
  auto addProblem = [](ordered_json &object, const std::string &problem) {
    if (!problem.empty())
      object["problem"] = problem;
  };
  const uint64_t weights = facts.tensorBytes();
  ordered_json out = {{"name", facts.name},
                      {"format", facts.format},
                      {"architecture", facts.architecture}};
  out["config"] =
      facts.config ? configJson(*facts.config) : ordered_json::object();
  addProblem(out["config"], facts.configProblem);
  out["tokenizer"] = {{"kind", facts.tokenizer},
                      {"tokens", facts.tokens},
                      {"chat_template", facts.chatTemplate}};
  addProblem(out["tokenizer"], facts.tokenizerProblem);
  ordered_json summary = {{"count", facts.tensors.size()},
                          {"parameters", facts.parameters()},
                          {"bytes", weights}};
  addProblem(summary, facts.tensorProblem);
  ordered_json types = ordered_json::array();
  for (const auto &[name, type] : facts.types())
    types.push_back({{"type", name},
                     {"tensors", type.tensors},
                     {"parameters", type.elements},
                     {"bytes", type.bytes}});
  summary["types"] = std::move(types);
  if (tensors) {
    ordered_json list = ordered_json::array();
    for (const TensorFacts &tensor : facts.tensors)
      list.push_back({{"name", tensor.name},
                      {"type", tensor.type},
                      {"shape", tensor.shape},
                      {"bytes", tensor.bytes}});
    summary["list"] = std::move(list);
  }
  out["tensors"] = std::move(summary);
  out["memory"] = memoryJson(weights, facts.memory());
  for (const RankFacts &ofRank : ofRanks)
    if (ofRank.rank)
      out["stages"].push_back(rankJson(ofRank));
    else
      out["ranks"] = rankJson(ofRank);
  if (facts.gguf) {
    ordered_json metadata = ordered_json::array();
    for (const GgufEntry &entry : facts.gguf->metadata()) {
      ordered_json item = {{"key", std::string(entry.key)},
                           {"type", typeOf(entry.value)}};
      if (entry.value.type() == GgufValueType::Array)
        item["count"] = entry.value.size();
      item["value"] = valueJson(entry.value);
      metadata.push_back(std::move(item));
    }
    out["metadata"] = std::move(metadata);
  }
  return documentText(out) + "\n";
}

} // namespace

int kf::runInspect(Arguments arguments) {
  std::string model;
  DummyFlags dummy;
  bool tensors = false;
  int64_t ranks = 1, stages = 1, sharers = 1;
  std::optional<std::string> named;
  std::string json;
  OptionParser parser(
      "inspect [MODEL] [options]",
      "Shows what a model is made of: its sizes, its tokenizer, the types of "
      "its tensors, the memory that it takes by length of context, and a GGUF "
      "file's metadata. Also of models that cannot run here, and of files "
      "with a vocabulary alone.");
  addModelArgument(parser, model, named,
                   "a GGUF file, or a folder as Hugging Face lays it out; "
                   "without it, the embedded model, kf-stories");
  dummy.addTo(parser, model);
  parser.integer({"tensor-parallel", 0, "N"}, ranks, 1, kMaxRanks,
                 "what each of N ranks would have of the model, and what they "
                 "would put together in a step");
  parser.integer({"pipeline-parallel", 0, "P"}, stages, 1, kMaxRanks,
                 "what each of P ranks would have of the model's layers, and "
                 "what they would send to one another in a step");
  parser.integer({"context-parallel", 0, "N"}, sharers, 1, kMaxRanks,
                 "what each of N ranks would have of the cache, where they "
                 "share the positions of each text, and what they would put "
                 "together in a step");
  auto ways = [&] {
    return std::array{RanksGiven(Parallelism::Tensor, ranks),
                      RanksGiven(Parallelism::Pipeline, stages),
                      RanksGiven(Parallelism::Context, sharers)};
  };
  parser.addCheck([&] { return checkOneWay(ways()); });
  parser.flag({"tensors"}, tensors, "lists every tensor");
  parser.json(json, "the same, of arrays the first elements");
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  Result<ModelFacts> facts = collectFacts(model, dummy);
  if (!facts.ok())
    return report(facts.status());
  std::vector<RankFacts> ofRanks;
  for (const auto &[kind, count] : ways()) {
    if (*count == 1)
      continue;
    Result<std::vector<RankFacts>> collected =
        collectRankFacts(model, dummy, *count, kind);
    if (!collected.ok())
      return report(collected.status());
    ofRanks = collected.take();
  }
  if (!json.empty())
    return report(writeOutput(json, jsonOf(*facts, ofRanks, tensors)));
  return report(writeStdout(textOf(*facts, ofRanks, tensors)));
}
