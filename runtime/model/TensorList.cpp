//===- TensorList.cpp - The tensors that a model implies ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/TensorList.h"

#include "runtime/core/Quote.h"
#include "runtime/core/ShapeText.h"
#include "runtime/model/GgufRope.h"

#include <algorithm>
#include <set>

using namespace kf;

namespace {

using Role = ListedTensor::Role;

class ListBuilder {
public:
  explicit ListBuilder(const ModelConfig &config)
      : config(config), names(tensorNames(config)) {}

  std::vector<ListedTensor> build() {
    const int64_t hidden = config.hiddenSize;
    if (config.stage.isFirst())
      addTable(names.embedding, config.vocabSize, hidden);
    if (config.stage.isFirst() && !names.positions.empty())
      addTable(names.positions, config.maxPositions, hidden);
    if (const int64_t width = config.tokenInputWidth) {
      addTable(names.tokenInputs, config.tokenInputVocab,
               config.layers * width);
      addLinear(std::string(names.tokenInputProjection), config.layers * width,
                hidden, /*bias=*/false);
      addScale(std::string(names.tokenInputNorm), width);
    }
    for (int64_t i = 1; i < config.streams.count; ++i)
      for (std::string_view part : {names.streamProjections, names.streamEnds})
        addLinear(TensorNames::ofStream(part, i), hidden, hidden,
                  /*bias=*/false);
    for (int64_t i = 0; i < config.layers; ++i) {
      const std::string layer =
          std::string(names.layer) + "." + std::to_string(i) + ".";
      const size_t first = tensors.size();
      addLayer(layer, i);
      if (config.adapters.count > 0)
        addAdapters(layer, first);
    }
    if (config.stage.isLast())
      addNorm(std::string(names.finalNorm), hidden);
    const auto layer =
        std::ranges::find_if(config.layerConfigs, [](const LayerConfig &layer) {
          return layer.rope && layer.rope->frequencyFactors;
        });
    if (layer != config.layerConfigs.end())
      add(std::string(names.ropeFactors) + ".weight", {layer->rope->dim / 2},
          Role::RopeFactors);
    if (config.contextRanks > 1) {
      add(std::string(kRankNumber), {1}, Role::RankNumber);
      tensors.back().name = tensors.back().key;
    }
    if (config.stage.isLast() && !config.tiedEmbeddings) {
      add(std::string(names.head) + ".weight",
          {config.sharedRows(config.vocabSize), hidden});
      tensors.back().name = tensors.back().key;
    }
    return std::move(tensors);
  }

private:
  void addLayer(const std::string &layer, int64_t number) {
    const int64_t hidden = config.hiddenSize;
    const LayerConfig own = config.layer(number);
    auto in = [&](std::string_view part) { return layer + std::string(part); };
    const bool input = config.normPlaces != NormPlaces::Outputs;
    const bool output = config.normPlaces != NormPlaces::Inputs;
    if (input)
      addNorm(in(names.attentionNorm), hidden);
    if (own.isLinear)
      addLinearAttention(layer);
    else
      addAttention(layer, own);
    if (output)
      addNorm(in(names.attentionOutputNorm), hidden);
    if (const int64_t rank = config.narrowWidth) {
      addLinear(in(names.narrowIn), rank, hidden, /*bias=*/false);
      addLinear(in(names.narrowOut), hidden, rank, /*bias=*/false);
      addNorm(in(names.narrowNorm), hidden);
    }
    if (input && !config.parallelBlocks)
      addNorm(in(names.mlpNorm), hidden);
    if (!own.hasExperts || config.experts.besideBlock)
      addBlock(layer, {names.gate, names.up, names.down}, own.intermediateSize);
    if (own.hasExperts)
      addExperts(layer);
    if (output)
      addNorm(in(names.mlpOutputNorm), hidden);
    if (const int64_t width = config.tokenInputWidth) {
      addLinear(in(names.tokenGate), width, hidden, /*bias=*/false);
      addLinear(in(names.tokenOutput), hidden, width, /*bias=*/false);
      addNorm(in(names.tokenOutputNorm), hidden);
    }
    if (const int64_t count = config.streams.count; count > 1) {
      addNorm(in(names.streamNorm), hidden);
      addLinear(in(names.streamRouter), count, hidden, /*bias=*/false);
      addLinear(in(names.streamPredictions), count * count, count,
                /*bias=*/false);
      addLinear(in(names.streamCorrections), count, count, /*bias=*/false);
      add(in(names.streamScale), {hidden}, Role::NormWeight);
    }
    if (config.layerScales)
      add(in(names.layerScale), {1}, Role::NormWeight);
  }

  void addAttention(const std::string &layer, const LayerConfig &own) {
    const int64_t hidden = config.hiddenSize;
    const int64_t queries =
        config.heads *
        (config.latent.width ? config.latent.valueDim : own.headDim);
    const int64_t keys = own.kvHeads * own.headDim;
    auto in = [&](std::string_view part) { return layer + std::string(part); };
    if (config.latent.width) {
      addLatent(layer);
    } else if (!names.fusedQkv.empty()) {
      addLinear(in(names.fusedQkv), queries + 2 * keys, hidden, config.qkvBias);
    } else {
      addLinear(in(names.query), config.gatedAttention ? 2 * queries : queries,
                hidden, config.qkvBias);
      if (!own.keysOf)
        addLinear(in(names.key), keys, hidden, config.qkvBias);
      if (!own.keysOf && !own.valuesAreKeys)
        addLinear(in(names.value), keys, hidden, config.qkvBias);
    }
    if (config.qkNorm == QkNorm::Heads || config.qkNorm == QkNorm::Width) {
      const bool heads = config.qkNorm == QkNorm::Heads;
      addScale(in(names.queryNorm), heads ? own.headDim : queries);
      if (!own.keysOf)
        addScale(in(names.keyNorm), heads ? own.headDim : keys);
    }
    if (config.attentionSinks)
      add(in(names.sinks), {config.heads}, Role::Bias);
    if (config.outputByRows)
      addLinear(in(names.output), config.sharedRows(hidden),
                queries * config.ranks, config.attentionOutputBias);
    else
      addLinear(in(names.output), hidden, queries, config.attentionOutputBias);
  }

  void addLinearAttention(const std::string &layer) {
    const LinearAttentionConfig &linear = config.linear;
    const int64_t hidden = config.hiddenSize, heads = linear.valueHeads;
    const int64_t values = heads * linear.valueDim;
    auto in = [&](std::string_view part) { return layer + std::string(part); };
    auto addMatrix = [&](std::string_view name, int64_t rows) {
      addLinear(in(name), rows, hidden, /*bias=*/false);
    };
    if (names.joinsQkvz(linear)) {
      addMatrix(names.linearQkvz, linear.channels() + values);
    } else {
      addMatrix(names.linearQkv, linear.channels());
      addMatrix(names.linearZ, values);
    }
    if (linear.byKeyHeads) {
      addMatrix(names.linearBa, 2 * heads);
    } else {
      addMatrix(names.linearB, heads);
      addMatrix(names.linearA, heads);
    }
    const int64_t channels = names.tiledHeads
                                 ? heads * (2 * linear.keyDim + linear.valueDim)
                                 : linear.channels();
    add(in(names.convolution) + ".weight", {channels, 1, linear.taps},
        Role::Convolution);
    add(in(names.linearDecay), {heads}, Role::Bias);
    add(in(names.linearBias), {heads}, Role::Bias);
    addScale(in(names.linearNorm), linear.valueDim);
    addLinear(in(names.linearOutput), hidden, values, /*bias=*/false);
  }

  struct BlockNames {
    std::string_view gate, up, down;
  };
  void addBlock(const std::string &layer, const BlockNames &block,
                int64_t inner) {
    const int64_t hidden = config.hiddenSize;
    auto in = [&](std::string_view part) { return layer + std::string(part); };
    if (config.gatedMlp)
      addLinear(in(block.gate), inner, hidden, config.mlpBias);
    addLinear(in(block.up), inner, hidden, config.mlpBias);
    addLinear(in(block.down), hidden, inner, config.mlpBias);
  }

  /// Of latent attention: what makes queries, keys and values.
  void addLatent(const std::string &layer) {
    const LatentConfig &latent = config.latent;
    const int64_t hidden = config.hiddenSize;
    const int64_t queries = config.heads * (latent.plainDim + latent.turnedDim);
    auto in = [&](std::string_view part) { return layer + std::string(part); };
    if (latent.queryWidth) {
      addLinear(in(names.queryLatent), latent.queryWidth, hidden,
                config.qkvBias);
      addScale(in(names.queryLatentNorm), latent.queryWidth);
      addLinear(in(names.queryOfLatent), queries, latent.queryWidth,
                /*bias=*/false);
    } else {
      addLinear(in(names.query), queries, hidden, /*bias=*/false);
    }
    addLinear(in(names.keyLatent), latent.width + latent.turnedDim, hidden,
              config.qkvBias);
    addScale(in(names.keyLatentNorm), latent.width);
    for (int64_t head = 0; head < config.heads; ++head) {
      // Queries are multiplied by it, in the keys' place.
      addLinear(layer + names.ofHead("keys", head), latent.width,
                latent.plainDim, /*bias=*/false);
      tensors.back().transposed = names.stackedKeys.empty();
      tensors.back().ofHead = true;
      addLinear(layer + names.ofHead("values", head), latent.valueDim,
                latent.width, /*bias=*/false);
      tensors.back().ofHead = true;
    }
  }

  void addExperts(const std::string &layer) {
    const ExpertsConfig &experts = config.experts;
    const int64_t hidden = config.hiddenSize;
    if (experts.besideBlock)
      for (std::string_view norm :
           {names.blockOutputNorm, names.expertNorm, names.expertOutputNorm})
        addNorm(layer + std::string(norm), hidden);
    if (experts.routerNorm)
      add(layer + std::string(names.routerNorm), {hidden}, Role::NormWeight);
    if (experts.scales)
      add(layer + std::string(names.expertScales), {experts.count},
          Role::NormWeight);
    add(layer + std::string(names.router) + ".weight", {experts.count, hidden},
        Role::Router);
    if (experts.choiceBias)
      add(layer + std::string(names.choiceBias), {experts.count}, Role::Bias);
    if (experts.bias)
      add(layer + std::string(names.router) + ".bias", {experts.count},
          Role::Bias);
    for (int64_t i = 0; i < experts.count; ++i) {
      auto addOf = [&](std::string_view part, int64_t out, int64_t in) {
        const size_t first = tensors.size();
        addLinear(layer + names.ofExpert(part, i), out, in, experts.bias);
        for (size_t k = first; k < tensors.size(); ++k)
          tensors[k].ofExpert = true;
      };
      addOf(names.expertGate, experts.width, hidden);
      addOf(names.expertUp, experts.width, hidden);
      addOf(names.expertDown, hidden, experts.width);
    }
    if (experts.sharedWidth)
      addBlock(layer, {names.sharedGate, names.sharedUp, names.sharedDown},
               experts.sharedWidth);
    if (experts.sharedGate)
      add(layer + std::string(names.sharedRouter) + ".weight", {1, hidden},
          Role::Router);
  }

  /// Of the layer whose tensors begin with number `first`. Under the same names
  /// wherever the others have a prefix or not: no checkpoint has them.
  void addAdapters(const std::string &layer, size_t first) {
    const size_t end = tensors.size();
    auto shapeOf = [&](const std::string &product) {
      for (size_t i = first; i < end; ++i)
        if (tensors[i].key == product + ".weight")
          return tensors[i].shape;
      return std::vector<int64_t>();
    };
    auto addMatrix = [&](const std::string &key, int64_t rows,
                         int64_t columns) {
      add(key, {rows, columns}, Role::Adapter);
      tensors.back().name = tensors.back().key;
    };
    for (const AdapterGroup &group : adapterGroups(names)) {
      int64_t lines = 0, in = 0;
      for (std::string_view part : group.products) {
        const std::string product = layer + std::string(part);
        const std::vector<int64_t> shape = shapeOf(product);
        const int64_t rank = config.adapters.rankOf(product);
        if (rank == 0 || shape.empty())
          continue;
        lines += rank;
        in = shape[1];
        for (int64_t i = 0; i <= config.adapters.count; ++i)
          addMatrix(adapterKeyOfB(product, i), shape[0], rank);
      }
      for (int64_t i = 0; lines > 0 && i <= config.adapters.count; ++i)
        addMatrix(adapterKeyOfA(layer + std::string(group.name), i), lines, in);
    }
  }

  void addTable(std::string_view name, int64_t rows, int64_t columns) {
    add(std::string(name) + ".weight", {rows, columns});
    tensors.back().isTable = true;
  }

  void addLinear(const std::string &base, int64_t out, int64_t in, bool bias) {
    add(base + ".weight", {out, in});
    tensors.back().transposed = names.transposed;
    if (bias)
      add(base + ".bias", {out}, Role::Bias);
  }

  void addNorm(const std::string &base, int64_t size) {
    addScale(base, size);
    if (config.normBias)
      add(base + ".bias", {size}, Role::Bias);
  }

  void addScale(const std::string &base, int64_t size) {
    add(base + ".weight", {size}, Role::NormWeight);
  }

  void add(const std::string &key, std::vector<int64_t> shape,
           Role role = Role::Matrix) {
    tensors.push_back(
        {key, std::string(names.prefix) + key, role, std::move(shape)});
  }

  const ModelConfig &config;
  const TensorNames &names;
  std::vector<ListedTensor> tensors;
};

/// The output matrix, in the checkpoint.
std::string headName(const ModelConfig &config) {
  return std::string(tensorNames(config).head) + ".weight";
}

bool isLongRope(const ModelConfig &config) {
  return std::ranges::any_of(config.layerConfigs, [](const auto &layer) {
    return layer.rope && layer.rope->scaling == RopeConfig::Scaling::LongRope;
  });
}

/// Whether `name` makes keys or values of a layer that attends to another's.
bool isOfUnusedKeys(const ModelConfig &config, std::string_view name) {
  const TensorNames &names = tensorNames(config);
  for (int64_t i = 0; i < config.layers; ++i) {
    if (!config.layer(i).keysOf)
      continue;
    const std::string layer =
        std::string(names.layer) + "." + std::to_string(i) + ".";
    std::string_view rest = name;
    if (rest.starts_with(names.prefix))
      rest.remove_prefix(names.prefix.size());
    if (!rest.starts_with(layer))
      continue;
    rest.remove_prefix(layer.size());
    for (const std::string_view kind : {".weight", ".bias"})
      if (rest.ends_with(kind)) {
        rest.remove_suffix(kind.size());
        return rest == names.key || rest == names.value ||
               rest == names.keyNorm;
      }
    return false;
  }
  return false;
}

/// Whether `name` is of a layer behind the model's last one.
bool isOfGuessingLayer(const ModelConfig &config, std::string_view name) {
  const TensorNames &names = tensorNames(config);
  if (name.starts_with(names.prefix))
    name.remove_prefix(names.prefix.size());
  for (int64_t i = 0; i < config.guessingLayers; ++i)
    if (name.starts_with(std::string(names.layer) + "." +
                         std::to_string(config.layers + i) + "."))
      return true;
  return false;
}

/// Whether `name` is a layer's scale of keys or values in a cache, of modelopt
/// or of compressed-tensors.
bool isCacheScale(std::string_view name) {
  constexpr std::string_view ends[] = {
      ".self_attn.k_proj.k_scale", ".self_attn.v_proj.v_scale",
      ".self_attn.k_scale", ".self_attn.v_scale"};
  return std::ranges::any_of(
      ends, [&](std::string_view end) { return name.ends_with(end); });
}

/// Tensors that a model does not read although its checkpoint may have them:
/// buffers that older versions of Hugging Face's code stored, an output matrix
/// that equals the embedding table (see settleTiedEmbeddings), keys of layers
/// that attend to others', layers that guess further tokens, scales of a cache
/// that the configuration speaks of, and GGUF's tables that it has the numbers
/// of.
bool isIgnorable(const ModelConfig &config, const std::string &name) {
  if (isOfUnusedKeys(config, name) || isOfGuessingLayer(config, name))
    return true;
  if (config.hasCacheScales && isCacheScale(name))
    return true;
  if (const std::string_view beginning = tensorNames(config).guesses;
      !beginning.empty() && name.starts_with(beginning))
    return true;
  if (name == kGgufLongFactors || name == kGgufShortFactors)
    return config.naming == TensorNaming::Gguf && isLongRope(config);
  return name.ends_with(".rotary_emb.inv_freq") ||
         name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         (config.tiedEmbeddings && name == headName(config));
}

} // namespace

std::string TensorNames::ofExpert(std::string_view part, int64_t expert) const {
  const std::string number = std::to_string(expert), name(part);
  return experts.empty() ? name + "." + number
                         : std::string(experts) + "." + number + "." + name;
}

std::string TensorNames::ggufStack(std::string_view part) {
  return std::string(part) + "_exps";
}

std::vector<int64_t> ListedTensor::storedShape() const {
  std::vector<int64_t> stored = shape;
  if (transposed)
    std::ranges::reverse(stored);
  return stored;
}

std::vector<ListedTensor> kf::listTensors(const ModelConfig &config) {
  return ListBuilder(config).build();
}

Status kf::checkShape(const std::string &name,
                      const std::vector<int64_t> &shape,
                      const std::vector<int64_t> &implied) {
  if (shape == implied)
    return Status();
  return Status::error("checkpoint tensor '" + name + "' has shape " +
                       shapeText(shape) + ", but the configuration implies " +
                       shapeText(implied));
}

Result<std::vector<ListedTensor>> kf::findTensors(const ModelConfig &config,
                                                  const WeightSource &source) {
  const std::vector<std::string> names = source.names();
  std::set<std::string> unused(names.begin(), names.end());
  std::vector<ListedTensor> tensors = listTensors(config);
  ListedTensor &table = tensors.front();
  const bool prefixed = !unused.contains(table.key);
  const std::string head = headName(config);
  // One matrix for both may have either's name.
  if (config.tiedEmbeddings && prefixed && !unused.contains(table.name) &&
      unused.contains(head))
    table.name = head;
  for (ListedTensor &tensor : tensors) {
    if (!prefixed)
      tensor.name = tensor.key;
    KF_ASSIGN_OR_RETURN(TensorView view, source.describe(tensor.name));
    KF_RETURN_IF_ERROR(
        checkShape(tensor.name, view.shape, tensor.storedShape()));
    unused.erase(tensor.name);
  }
  for (const std::string &name : unused)
    if (!isIgnorable(config, name))
      return Status::error("checkpoint tensor " + inQuotes(name) +
                           " is not part of the model that the configuration "
                           "describes");
  return tensors;
}

bool kf::isFactor(const ListedTensor &tensor) {
  return tensor.role == ListedTensor::Role::Matrix && !tensor.transposed &&
         !tensor.ofExpert && !tensor.ofHead && !tensor.isTable;
}

Result<int64_t> kf::keepFloat8(const ModelConfig &config,
                               WeightSource &source) {
  KF_ASSIGN_OR_RETURN(const std::vector<ListedTensor> tensors,
                      findTensors(config, source));
  int64_t count = 0;
  for (const ListedTensor &tensor : tensors)
    if (isFactor(tensor)) {
      KF_ASSIGN_OR_RETURN(const bool isKept, source.keepFloat8(tensor.name));
      count += isKept;
    }
  return count;
}
