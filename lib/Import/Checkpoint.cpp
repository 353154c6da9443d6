//===- Checkpoint.cpp - The tensors of a model ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint.h"

#include "mlir/IR/Builders.h"
#include "runtime/io/Quote.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::kf;
using ::kf::Architecture;
using ::kf::DataType;
using ::kf::ModelConfig;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static TensorNames llamaNames(bool qkNorm) {
  TensorNames names;
  names.prefix = "model.";
  names.layer = "layers";
  names.embedding = "embed_tokens";
  names.finalNorm = "norm";
  names.head = "lm_head";
  names.attentionNorm = "input_layernorm";
  names.mlpNorm = "post_attention_layernorm";
  names.query = "self_attn.q_proj";
  names.key = "self_attn.k_proj";
  names.value = "self_attn.v_proj";
  names.output = "self_attn.o_proj";
  if (qkNorm) {
    names.queryNorm = "self_attn.q_norm";
    names.keyNorm = "self_attn.k_norm";
  }
  names.gate = "mlp.gate_proj";
  names.up = "mlp.up_proj";
  names.down = "mlp.down_proj";
  return names;
}

static TensorNames gpt2Names() {
  TensorNames names;
  names.prefix = "transformer.";
  names.layer = "h";
  names.embedding = "wte";
  names.positions = "wpe";
  names.finalNorm = "ln_f";
  names.head = "lm_head";
  names.attentionNorm = "ln_1";
  names.mlpNorm = "ln_2";
  names.fusedQkv = "attn.c_attn";
  names.output = "attn.c_proj";
  names.up = "mlp.c_fc";
  names.down = "mlp.c_proj";
  names.transposed = true;
  return names;
}

/// GGUF's names, which architectures share but for what they lack.
static TensorNames ggufNames(bool fusedQkv, bool qkNorm) {
  TensorNames names;
  names.layer = "blk";
  names.embedding = "token_embd";
  names.finalNorm = "output_norm";
  names.head = "output";
  names.attentionNorm = "attn_norm";
  names.mlpNorm = "ffn_norm";
  if (fusedQkv) { // gpt2, which learns its positions besides
    names.positions = "position_embd";
    names.fusedQkv = "attn_qkv";
  } else {
    names.query = "attn_q";
    names.key = "attn_k";
    names.value = "attn_v";
    names.gate = "ffn_gate";
    names.ropeFactors = "rope_freqs";
  }
  if (qkNorm) {
    names.queryNorm = "attn_q_norm";
    names.keyNorm = "attn_k_norm";
  }
  names.output = "attn_output";
  names.up = "ffn_up";
  names.down = "ffn_down";
  return names;
}

static const TensorNames &getGgufNames(Architecture architecture) {
  static const TensorNames llama = ggufNames(/*fusedQkv=*/false, false);
  static const TensorNames qwen3 = ggufNames(/*fusedQkv=*/false, true);
  static const TensorNames gpt2 = ggufNames(/*fusedQkv=*/true, false);
  return architecture == Architecture::Gpt2    ? gpt2
         : architecture == Architecture::Qwen3 ? qwen3
                                               : llama;
}

const TensorNames &mlir::kf::getTensorNames(const ModelConfig &config) {
  if (config.naming == ::kf::TensorNaming::Gguf)
    return getGgufNames(config.architecture);
  static const TensorNames llama = llamaNames(/*qkNorm=*/false);
  static const TensorNames qwen3 = llamaNames(/*qkNorm=*/true);
  static const TensorNames gpt2 = gpt2Names();
  switch (config.architecture) {
  case Architecture::Llama:
  case Architecture::Mistral:
  case Architecture::Qwen2:
    return llama;
  case Architecture::Qwen3:
    return qwen3;
  case Architecture::Gpt2:
    return gpt2;
  }
  llvm_unreachable("unknown architecture");
}

//===----------------------------------------------------------------------===//
// What a model implies
//===----------------------------------------------------------------------===//

namespace {

struct ExpectedTensor {
  std::string name;
  SmallVector<int64_t> shape; ///< logical
  bool transposed = false;
};

/// Lists the tensors of a model, their shapes following from its sizes.
class TensorList {
public:
  explicit TensorList(const ModelConfig &config)
      : config(config), names(getTensorNames(config)) {
    const int64_t hidden = config.hiddenSize;
    add(names.embedding + ".weight", {config.vocabSize, hidden});
    if (!names.positions.empty())
      add(names.positions + ".weight", {config.maxPositions, hidden});
    for (int64_t i = 0; i < config.layers; ++i)
      addLayer((names.layer + "." + Twine(i) + ".").str());
    addNorm(names.finalNorm, config.norm, hidden);
    if (config.rope && config.rope->frequencyFactors)
      add(names.ropeFactors + ".weight", {config.headDim / 2});
    if (!config.tiedEmbeddings)
      add(names.head + ".weight", {config.vocabSize, hidden});
  }

  ArrayRef<ExpectedTensor> get() const { return tensors; }

private:
  void addLayer(const std::string &layer) {
    const int64_t hidden = config.hiddenSize, inner = config.intermediateSize;
    const int64_t queries = config.heads * config.headDim;
    const int64_t keys = config.kvHeads * config.headDim;
    addNorm(layer + names.attentionNorm, config.norm, hidden);
    if (!names.fusedQkv.empty()) {
      addLinear(layer + names.fusedQkv, queries + 2 * keys, hidden,
                config.qkvBias);
    } else {
      addLinear(layer + names.query, queries, hidden, config.qkvBias);
      addLinear(layer + names.key, keys, hidden, config.qkvBias);
      addLinear(layer + names.value, keys, hidden, config.qkvBias);
    }
    if (config.qkNorm) {
      addNorm(layer + names.queryNorm, ::kf::Norm::Rms, config.headDim);
      addNorm(layer + names.keyNorm, ::kf::Norm::Rms, config.headDim);
    }
    addLinear(layer + names.output, hidden, queries,
              config.attentionOutputBias);
    addNorm(layer + names.mlpNorm, config.norm, hidden);
    if (config.gatedMlp)
      addLinear(layer + names.gate, inner, hidden, config.mlpBias);
    addLinear(layer + names.up, inner, hidden, config.mlpBias);
    addLinear(layer + names.down, hidden, inner, config.mlpBias);
  }

  void addLinear(const Twine &base, int64_t out, int64_t in, bool bias) {
    add(base + ".weight", {out, in}, names.transposed);
    if (bias)
      add(base + ".bias", {out});
  }

  void addNorm(const Twine &base, ::kf::Norm norm, int64_t size) {
    add(base + ".weight", {size});
    if (norm == ::kf::Norm::Layer)
      add(base + ".bias", {size});
  }

  void add(const Twine &name, ArrayRef<int64_t> shape,
           bool transposed = false) {
    tensors.push_back({name.str(), SmallVector<int64_t>(shape), transposed});
  }

  const ModelConfig &config;
  const TensorNames &names;
  std::vector<ExpectedTensor> tensors;
};

//===----------------------------------------------------------------------===//
// Checks against the checkpoint
//===----------------------------------------------------------------------===//

std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [i, dim] : llvm::enumerate(shape))
    text += (i ? ", " : "") + std::to_string(dim);
  return text + "]";
}

llvm::Error makeError(const Twine &message) {
  return llvm::createStringError(message.str());
}

/// Tensors that a model does not read although its checkpoint may have them:
/// buffers that older versions of Hugging Face's code stored, and an output
/// matrix beside the embedding table that takes its place.
bool isIgnorable(const ModelConfig &config, StringRef name) {
  return name.ends_with(".rotary_emb.inv_freq") ||
         name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         (config.tiedEmbeddings && name == "lm_head.weight");
}

} // namespace

llvm::Expected<Checkpoint> Checkpoint::read(MLIRContext &context,
                                            const ModelConfig &config,
                                            const ::kf::WeightSource &source) {
  const TensorNames &names = getTensorNames(config);
  llvm::StringSet<> unused;
  for (const std::string &name : source.names())
    unused.insert(name);
  // Checkpoints of the bare model lack the prefix.
  bool prefixed = !names.prefix.empty() &&
                  !unused.contains((names.embedding + ".weight").str());

  Checkpoint result;
  const std::string head = (names.head + ".weight").str();
  TensorList list(config);
  for (const ExpectedTensor &expected : list.get()) {
    Tensor tensor;
    tensor.name = expected.name;
    if (prefixed && expected.name != head)
      tensor.name = (names.prefix + expected.name).str();
    ::kf::Result<::kf::TensorView> view = source.describe(tensor.name);
    if (!view.ok())
      return makeError(view.message());
    SmallVector<int64_t> stored = expected.shape;
    if (expected.transposed)
      std::reverse(stored.begin(), stored.end());
    if (ArrayRef<int64_t>(view->shape) != ArrayRef<int64_t>(stored))
      return makeError("checkpoint tensor '" + tensor.name + "' has shape " +
                       shapeText(view->shape) +
                       ", but the configuration implies " + shapeText(stored));
    Type element = getElementType(&context, view->type);
    bool mayHaveBlocks = stored.size() == 2 && !expected.transposed;
    if (!element || (isa<QuantType>(element) && !mayHaveBlocks))
      return makeError("checkpoint tensor '" + tensor.name + "' has type " +
                       std::string(::kf::nameOf(view->type)) +
                       "; f32, f16 and bf16 are supported" +
                       (mayHaveBlocks ? " and block formats" : " here"));
    tensor.type = RankedTensorType::get(expected.shape, element);
    tensor.transposed = expected.transposed;
    unused.erase(tensor.name);
    result.tensors[expected.name] = std::move(tensor);
  }
  if (config.tiedEmbeddings)
    result.tensors[head] = result.tensors[(names.embedding + ".weight").str()];
  for (const std::string &name : source.names())
    if (unused.contains(name) && !isIgnorable(config, name))
      return makeError(
          "checkpoint tensor " + ::kf::inQuotes(name) +
          " is not part of the model that the configuration describes");
  return result;
}
