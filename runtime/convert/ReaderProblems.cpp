//===- ReaderProblems.cpp - What llama.cpp does not read ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/ReaderProblems.h"

#include "runtime/convert/ModelMetadata.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/GgufExperts.h"
#include "runtime/model/ModelFamily.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <tuple>

using namespace kf;

namespace {

/// Most layers, and experts of one, that llama.cpp has room for.
constexpr int64_t kReaderLayers = 512, kReaderExperts = 1024;

/// What llama.cpp's architecture of that name has: see its src/models.
struct ReaderArchitecture {
  Architecture architecture;
  bool outputBias = false, mlpBias = false;
  bool alwaysOutputBias = false;
  bool llama3 = false;   ///< rope_freqs.weight
  bool ownHeads = false; ///< heads need not make up the hidden size
  bool tied = true, untied = true;
  bool windows = false;      ///< heeds attention.sliding_window
  bool alwaysSlides = false; ///< some layer has a window
};

using enum Architecture;
constexpr ReaderArchitecture kReader[] = {
    {.architecture = Llama,
     .outputBias = true,
     .mlpBias = true,
     .llama3 = true,
     .ownHeads = true},
    {.architecture = Qwen2},
    {.architecture = Qwen3, .ownHeads = true},
    {.architecture = Gpt2, .outputBias = true, .mlpBias = true},
    {.architecture = Granite,
     .outputBias = true,
     .mlpBias = true,
     .llama3 = true,
     .ownHeads = true},
    {.architecture = GraniteMoe,
     .outputBias = true,
     .llama3 = true,
     .ownHeads = true},
    {.architecture = Qwen2Moe, .tied = false},
    {.architecture = Qwen3Moe, .ownHeads = true},
    {.architecture = Olmoe, .tied = false},
    {.architecture = GptOss,
     .outputBias = true,
     .alwaysOutputBias = true,
     .ownHeads = true,
     .tied = false,
     .windows = true,
     .alwaysSlides = true},
    {.architecture = Gemma3n, .ownHeads = true, .windows = true},
    {.architecture = Gemma4, .ownHeads = true, .windows = true},
    {.architecture = Llama4, .llama3 = true, .ownHeads = true, .windows = true},
    {.architecture = DeepseekV3, .ownHeads = true},
    {.architecture = Qwen3Next, .ownHeads = true},
    {.architecture = Qwen3_5, .ownHeads = true},
    {.architecture = SmolLm3, .ownHeads = true},
    {.architecture = Olmo2, .tied = false, .windows = true},
    {.architecture = Starcoder2, .outputBias = true, .mlpBias = true},
    {.architecture = Gemma2,
     .ownHeads = true,
     .untied = false,
     .windows = true,
     .alwaysSlides = true},
    {.architecture = Gemma3, .ownHeads = true, .windows = true},
    {.architecture = Phi3},
    {.architecture = StableLm, .tied = false},
    {.architecture = Cohere, .untied = false},
    {.architecture = Cohere2,
     .untied = false,
     .windows = true,
     .alwaysSlides = true},
};

/// Of how many layers of Gemma 3n llama.cpp takes it that they have keys of
/// their own, and that gates are cut off.
constexpr int64_t kReaderKeys = 20, kReaderCuts = 10;
/// At how many deviations: .95 of a normal distribution are below.
constexpr double kReaderCutoff = 1.6448533535003662;

/// Sizes of Gemma 3n that are constants there.
void listOtherSizes(const ModelConfig &config,
                    std::vector<std::string> &missing) {
  for (auto [name, value, constant] :
       {std::tuple("altup.num_inputs", config.streams.count, int64_t(4)),
        std::tuple("embedding_length_per_layer_input", config.tokenInputWidth,
                   int64_t(256)),
        std::tuple("rows of laurel_l", config.narrowWidth, int64_t(64))})
    if (value != constant)
      missing.push_back(std::to_string(constant) + " as " + name + ", not " +
                        std::to_string(value));
}

/// Whether layers attend to the keys of those that llama.cpp takes, which goes
/// by their number.
bool sharesReadersKeys(const ModelConfig &config) {
  const auto sharing =
      std::ranges::count_if(config.layerConfigs, [](const LayerConfig &layer) {
        return layer.keysOf.has_value();
      });
  const int64_t first = config.layers - sharing;
  if (config.architecture == Gemma3n && first != kReaderKeys)
    return false;
  return std::ranges::all_of(config.layerConfigs, [&](const LayerConfig &own) {
    return !own.keysOf || own.keysOf == first - (own.window > 0 ? 2 : 1);
  });
}

/// Whether gates are cut off as llama.cpp does it.
bool cutsReadersGates(const ModelConfig &config) {
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::optional<double> cutoff = config.layerConfigs[i].gateCutoff;
    if (cutoff.has_value() != (i < kReaderCuts) ||
        (cutoff && std::fabs(*cutoff - kReaderCutoff) > 1e-6))
      return false;
  }
  return true;
}

/// What its architecture lacks, without which it refuses the file.
std::vector<std::string> listMissing(const ModelConfig &config,
                                     const ReaderArchitecture &reader) {
  std::vector<std::string> missing;
  if (config.attentionOutputBias && !reader.outputBias)
    missing.emplace_back("no biases of the attention's output (such as "
                         "blk.0.attn_output.bias)");
  if (!config.attentionOutputBias && reader.alwaysOutputBias)
    missing.emplace_back("always biases of the attention's output (such as "
                         "blk.0.attn_output.bias)");
  if (config.mlpBias && !reader.mlpBias)
    missing.emplace_back("no biases of the feed-forward's products (such as "
                         "blk.0.ffn_down.bias)");
  if (isScaledAsLlama3(config) && !reader.llama3)
    missing.emplace_back(
        "no RoPE scaling of Llama 3's kind (rope_freqs.weight)");
  if (config.heads * config.headDim != config.hiddenSize && !reader.ownHeads)
    missing.emplace_back("no size of heads of its own (attention.key_length)");
  if (config.tiedEmbeddings && !reader.tied)
    missing.emplace_back("always an output matrix of its own (output.weight)");
  if (!config.tiedEmbeddings && !reader.untied)
    missing.emplace_back("no output matrix of its own (output.weight)");
  if (familyOf(config.architecture).linear.areRead && !config.hasStates())
    missing.emplace_back("always some layers with linear attention "
                         "(ssm.conv_kernel)");
  if (config.hasStates() && config.linear.keyDim != config.linear.valueDim)
    missing.emplace_back("keys and values of one size in linear attention "
                         "(ssm.state_size)");
  if (constexpr int64_t lite[] = {26, 27};
      config.latent.width && !config.latent.queryWidth &&
      std::ranges::find(lite, config.layers) == std::end(lite))
    missing.emplace_back("always a row that queries are made of "
                         "(attention.q_lora_rank)");
  if (reader.architecture == Gemma3n)
    listOtherSizes(config, missing);
  if (reader.alwaysSlides && std::ranges::max(config.windows()) == 0)
    missing.emplace_back(
        "always some layers with a window (attention.sliding_window_pattern)");
  return missing;
}

/// Keys that it does not heed, each with what follows its name.
std::vector<std::string> listUnheeded(const ModelConfig &config,
                                      const ReaderArchitecture &reader) {
  const std::string otherwise = ": its results are not the model's";
  std::vector<std::string> keys;
  const int64_t window =
      config.layerConfigs.empty() ? 0 : config.layerConfigs.front().window;
  if (window > 0 && window < config.maxPositions && !reader.windows)
    keys.push_back("attention.sliding_window: past " + std::to_string(window) +
                   " positions, its results are not the model's");
  if (reader.windows && std::ranges::max(config.windows()) > 0 &&
      !slidingPeriod(config) && !familyOf(config.architecture).sizes.sharing)
    keys.push_back("attention.sliding_window_pattern, since its layers with a "
                   "window have no period" +
                   otherwise);
  if (familyOf(config.architecture).sizes.sharing && !sharesReadersKeys(config))
    keys.push_back("attention.shared_kv_layers: it takes the keys of other "
                   "layers" +
                   otherwise);
  if (reader.architecture == Gemma3n && !cutsReadersGates(config))
    keys.push_back("activation_sparsity_scale" + otherwise);
  if (!familyOf(config.architecture).logitDivisor && !config.latent.width &&
      !isUsualScale(config))
    keys.push_back("attention.scale" + otherwise);
  const GgufRopePlan ropes = ggufRopes(config);
  if (!ropes.full)
    return keys;
  const RopeConfig usual;
  if (ropes.full->scaling == RopeConfig::Scaling::Yarn &&
      (ropes.full->betaFast != usual.betaFast ||
       ropes.full->betaSlow != usual.betaSlow))
    keys.push_back("rope.scaling.yarn_beta_fast and yarn_beta_slow" +
                   otherwise);
  if (reader.architecture == Olmo2 && ropes.sliding->theta != ropes.full->theta)
    keys.push_back("rope.freq_base_swa" + otherwise);
  return keys;
}

} // namespace

std::vector<std::string> kf::listReaderProblems(const ModelConfig &config) {
  const Architecture architecture = ggufArchitecture(config);
  const std::string name(ggufNameOf(architecture));
  const auto *reader = std::ranges::find(kReader, architecture,
                                         &ReaderArchitecture::architecture);
  std::vector<std::string> problems;
  if (reader == std::end(kReader))
    return problems;
  for (const std::string &what : listMissing(config, *reader))
    problems.push_back("llama.cpp will not load the file: its " + name +
                       " has " + what);
  if (config.layers > kReaderLayers)
    problems.push_back("llama.cpp will not load the file: " + name +
                       ".block_count is " + std::to_string(config.layers) +
                       ", of which it takes " + std::to_string(kReaderLayers));
  if (config.experts.count > kReaderExperts)
    problems.push_back("llama.cpp will not load the file: " + name + "." +
                       std::string(kGgufExpertCount) + " is " +
                       std::to_string(config.experts.count) +
                       ", of which it takes " + std::to_string(kReaderExperts));
  for (const std::string &key : listUnheeded(config, *reader))
    problems.push_back("llama.cpp will not heed " + name + "." + key);
  if (constexpr double latentEps = 1e-6;
      config.latent.width && config.normEps != latentEps)
    problems.push_back("llama.cpp takes " + name +
                       ".attention.layer_norm_rms_epsilon for norms of latent "
                       "rows, too, of which it is 1e-6: its results are not "
                       "quite the model's");
  if (const RopeConfig *rope = ggufRopes(config).full;
      rope && rope->scaling == RopeConfig::Scaling::Yarn && !rope->truncate)
    problems.emplace_back("llama.cpp rounds yarn's bounds to whole numbers: "
                          "its results are not quite the model's");
  return problems;
}
