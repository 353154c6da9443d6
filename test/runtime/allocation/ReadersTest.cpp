//===- ReadersTest.cpp - Reading files without memory ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Wherever an allocation fails, the outcome is an error or a success: nothing
// is thrown, nothing ends the process, nothing leaks (with the asan preset).
//
//===----------------------------------------------------------------------===//

#include "FailingAllocations.h"

#include "runtime/batch/BatchFile.h"
#include "runtime/chat/ChatTemplate.h"
#include "runtime/client/AnswerReader.h"
#include "runtime/core/Exceptions.h"
#include "runtime/io/Gguf.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Nvfp4Weights.h"
#include "runtime/io/Safetensors.h"
#include "runtime/model/ChatConfig.h"
#include "runtime/model/DummyWeights.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/model/TiedEmbeddings.h"
#include "runtime/program/ExecutableCache.h"
#include "runtime/serve/ApiRequest.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/tuning/TuningDatabase.h"
#include "test/runtime/GgufBuilder.h"
#include "test/runtime/TempFile.h"
#include "test/runtime/TestExecutable.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace kf;
using namespace kf::test;

namespace {

const std::string kRuntime = KF_SOURCE_DIR "/test/runtime/";
const std::string kGolden = KF_SOURCE_DIR "/test/golden/";

std::string contents(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(file) << path;
  return text.str();
}

Status findAll(const WeightSource &weights,
               const std::vector<std::string> &names) {
  for (const std::string &name : names) {
    KF_RETURN_IF_ERROR(weights.describe(name).status());
    KF_RETURN_IF_ERROR(weights.find(name).status());
  }
  return Status();
}

TEST(Allocation, Gguf) {
  const std::string path =
      KF_SOURCE_DIR "/models/kf-stories-gguf/kf-stories-Q4_0.gguf";
  const std::vector<std::string> names = Gguf::open(path).take()->names();
  failEverywhere([&] {
    KF_ASSIGN_OR_RETURN(auto gguf, Gguf::open(path));
    KF_ASSIGN_OR_RETURN(ModelConfig config, readGgufConfig(*gguf));
    KF_ASSIGN_OR_RETURN(ChatConfig chat, readChatConfig(*gguf));
    return findAll(*gguf, names);
  });
}

TEST(Allocation, Safetensors) {
  // One file, and an index.
  const TempFolder sharded;
  const std::string one = kGolden + "gpt2-own-head";
  const std::vector<std::string> names = openSafetensors(one).take()->names();
  for (const char *file : {"config.json", "model.safetensors"})
    std::filesystem::copy(one + "/" + file,
                          sharded.path("one-" + std::string(file)));
  std::filesystem::rename(sharded.path("one-config.json"),
                          sharded.path("config.json"));
  std::string index = R"({"metadata": {"total_size": 1}, "weight_map": {)";
  for (const std::string &name : names)
    index += (name == names.front() ? "\"" : ", \"") + name +
             "\": \"one-model.safetensors\"";
  sharded.write("model.safetensors.index.json", index + "}}");
  for (const std::string &folder : {one, sharded.path()}) {
    SCOPED_TRACE(folder);
    failEverywhere([&] {
      KF_ASSIGN_OR_RETURN(ModelConfig config, loadModelConfig(folder));
      KF_ASSIGN_OR_RETURN(ChatConfig chat, loadChatConfig(folder));
      KF_ASSIGN_OR_RETURN(auto weights, openSafetensors(folder));
      KF_RETURN_IF_ERROR(settleTiedEmbeddings(config, *weights));
      return findAll(*weights, names);
    });
  }
}

TEST(Allocation, ScaledWeights) {
  const std::string header = R"({
    "x.weight": {"dtype": "F8_E4M3", "shape": [2, 4], "data_offsets": [0, 8]},
    "x.weight_scale": {"dtype": "F32", "shape": [2, 1],
                       "data_offsets": [8, 16]}})";
  std::string bytes(1, static_cast<char>(header.size()));
  bytes.resize(8);
  bytes += header + std::string(8, '\x38') + std::string("\0\0\x80\x3f", 4) +
           std::string("\0\0\0\x40", 4);
  const TempFolder folder;
  const std::string path = folder.write("model.safetensors", bytes);
  failEverywhere([&] {
    KF_ASSIGN_OR_RETURN(auto weights, openSafetensors(path));
    const std::string name = "x.weight"; // no memory of its own
    KF_RETURN_IF_ERROR(weights->describe(name).status());
    KF_RETURN_IF_ERROR(weights->find(name).status());
    weights->release(name);
    KF_RETURN_IF_ERROR(weights->keepFloat8(name).status());
    return weights->find(name).status();
  });
}

TEST(Allocation, Nvfp4Weights) {
  const TempFolder folder;
  // A matrix of two experts, and their factors.
  const std::string path =
      folder.write("m.gguf", GgufBuilder()
                                 .tensorEntry("x.weight", {64, 1, 2}, 40, 0)
                                 .tensorEntry("x.scale", {2}, 0, 96)
                                 .append(std::string(72 + 24, '\x38'))
                                 .append(raw(0.5f) + raw(2.0f))
                                 .bytes());
  failEverywhere([&] {
    KF_ASSIGN_OR_RETURN(auto gguf, Gguf::open(path));
    const Gguf &file = *gguf;
    KF_ASSIGN_OR_RETURN(auto weights,
                        Nvfp4Weights::create(std::move(gguf), file));
    const std::string name = "x.weight"; // no memory of its own
    KF_RETURN_IF_ERROR(weights->describe(name).status());
    KF_RETURN_IF_ERROR(weights->find(name).status());
    weights->release(name);
    return weights->find(name).status();
  });
}

TEST(Allocation, DummyWeights) {
  const ModelConfig config = loadModelConfig(kGolden + "llama2-mha").take();
  const std::string name = "model.layers.1.mlp.down_proj.weight";
  for (DataType type : {DataType::BF16, DataType::Q4_0}) {
    failEverywhere([&] {
      KF_ASSIGN_OR_RETURN(auto weights, DummyWeights::create(config, type, 1));
      KF_RETURN_IF_ERROR(weights->describe(name).status());
      return weights->find(name).status();
    });
  }
}

TEST(Allocation, QuantizedConfigurations) {
  const std::string sizes = R"("model_type": "llama", "hidden_size": 64,
      "intermediate_size": 128, "num_hidden_layers": 2,
      "num_attention_heads": 4, "vocab_size": 32,
      "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
      "hidden_act": "silu", "quantization_config": )";
  for (const char *field :
       {R"({"quant_method": "fp8", "weight_block_size": [128, 128]})",
        R"({"quant_method": "compressed-tensors", "format": "int-quantized",
            "sparsity_config": {"format": "dense"}, "config_groups": {
            "group_0": {"weights": {"num_bits": 8, "symmetric": true,
                                    "strategy": "channel"}}}})"}) {
    SCOPED_TRACE(field);
    const std::string config = "{" + sizes + field + "}";
    failEverywhere([&] { return parseModelConfig(config, "").status(); });
  }
}

TEST(Allocation, Npy) {
  const TempFolder folder;
  const std::string from = kRuntime + "data/blocks/q4_1.values.npy";
  const std::string to = folder.path("values.npy");
  failEverywhere(
      [&] {
        KF_ASSIGN_OR_RETURN(HostTensor tensor, readNpy(from));
        return writeNpy(to, tensor);
      },
      {Failing::One, Failing::Rest},
      [&] {
        for (const auto &entry :
             std::filesystem::directory_iterator(folder.path()))
          EXPECT_EQ(entry.path(), to);
      });
}

TEST(Allocation, Tokenizers) {
  for (const char *name :
       {"gpt2.json", "llama3.json", "llama-metaspace.json", "metaspace.json",
        "llama-prepend.json", "llama.model", "unigram-rules.model",
        "llama3.gguf", "llama-prepend.gguf"}) {
    SCOPED_TRACE(name);
    const std::string path = kRuntime + "text/data/" + name;
    failEverywhere([&] {
      KF_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::open(path));
      return tokenizer.encode("Some words, 123 and more.", true).status();
    });
  }
}

TEST(Allocation, ChatTemplates) {
  const std::vector<ChatMessage> messages = {
      {"system", "Answer in the words of a sailor."},
      {"user", "How deep is the sea?"},
      {"assistant", "Deeper than a ship is high."},
      {"user", "And in \"fathoms\"?"}};
  ChatRenderOptions options;
  options.addGenerationPrompt = true;
  options.bosToken = "<|begin_of_text|>";
  options.eosToken = "<|end_of_text|>";
  options.variables["tools"] = R"([{"type": "function", "function":
      {"name": "measure_the_depth", "parameters": {"where": ["here", "there"],
      "times": [1, 2.5, null, true]}}}])";
  for (const char *name :
       {"llama3.1.jinja", "qwen3.jinja", "mistral-v3.jinja"}) {
    SCOPED_TRACE(name);
    const std::string source = contents(kRuntime + "chat/templates/" + name);
    failEverywhere([&] {
      KF_ASSIGN_OR_RETURN(ChatTemplate chat, ChatTemplate::parse(source));
      return chat.render(messages, options).status();
    });
  }
}

TEST(Allocation, Executables) {
  const std::string bytes = sampleExecutable().serialize();
  failEverywhere([&]() -> Status {
    KF_ASSIGN_OR_RETURN(Executable executable, Executable::deserialize(bytes));
    try {
      (void)executable.serialize();
    } catch (const std::bad_alloc &) { // which ends nothing on its way
      return Status::outOfMemory();
    }
    return Status();
  });
}

/// The cache of programs may be lost, but nothing else: what it holds stays,
/// and want of memory is a warning.
TEST(Allocation, ExecutableCache) {
  const TempFolder folder;
  std::filesystem::permissions(folder.path(),
                               std::filesystem::perms::owner_all);
  bool warned = false;
  const ExecutableCache cache(folder.path(),
                              [&](const std::string &) { warned = true; });
  const Executable executable = sampleExecutable();
  const std::string key = "12ab";
  ASSERT_TRUE(cache.store(key, executable).ok());
  const std::string entry = folder.path(key + ".kfexec");
  const auto check = [&] {
    EXPECT_TRUE(std::filesystem::exists(entry));
    EXPECT_TRUE(cache.lookup(key)->has_value());
  };
  failEverywhere(
      [&]() -> Status {
        const Result<std::optional<Executable>> found = cache.lookup(key);
        if (!found.ok())
          ADD_FAILURE() << found.message();
        return found.ok() && *found ? Status() : Status::error("not found");
      },
      {Failing::One, Failing::Rest}, check);
  failEverywhere(
      [&]() -> Status {
        warned = false;
        const Status stored = cache.store(key, executable);
        if (!stored.ok())
          ADD_FAILURE() << stored.message();
        return warned ? Status::error("not stored") : Status();
      },
      {Failing::One}, check);
}

TEST(Allocation, BatchRequests) {
  failEverywhere([] {
    BatchReader reader(
        "{\"prompt\": \"What a long text for a short string.\", \"id\": 1}\n"
        "{\"ids\": [1, 2], \"logit_bias\": {\"1\": 2}, \"stop\": \"a\"}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}\n");
    while (std::optional<Result<BatchRequest>> request = reader.next())
      KF_RETURN_IF_ERROR(request->status());
    return Status();
  });
  // An error is that of the line, or of the memory.
  failEverywhere([]() -> Status {
    const auto request =
        BatchReader("{\"prompt\": \"a\", \"temp\": -1}").next();
    if (request->message().ends_with("1e+06 is expected"))
      return Status();
    return request->status();
  });
}

TEST(Allocation, ServerRequests) {
  failEverywhere([] {
    return parseChatRequest(R"({"messages": [
        {"role": "user", "content": [{"type": "text", "text": "Hello there, you"}]},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name":
          "a tool with a long name", "arguments": "{\"a\": [1, 2]}"}}]}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "chat_template_kwargs": {"enable_thinking": false}, "stop": ["a"]})")
        .status();
  });
  // What it makes is the same wherever memory was short before.
  failEverywhere([]() -> Status {
    Result<GenerationRequest> request = parseCompletionRequest(
        R"({"prompt": ["a text that is not short", [1, 2]], "n": 2})");
    if (request.ok())
      EXPECT_EQ(request->prompts.size(), 2u);
    return request.status();
  });
}

TEST(Allocation, OtherServersAnswers) {
  const auto read = [](int status, std::string_view type,
                       std::string_view body) {
    return catchExceptions([&]() -> Result<Answer> {
      AnswerReader reader(status, type);
      KF_RETURN_IF_ERROR(reader.push(body, 1));
      return reader.finish(2);
    });
  };
  failEverywhere([&] {
    return read(200, "text/event-stream",
                "data: {\"choices\":[{\"delta\":{\"content\":\"A text that is "
                "longer than a short string\"},\"finish_reason\":\"stop\"}],"
                "\"usage\":{\"prompt_tokens\":3}}\n\ndata: [DONE]\n\n")
        .status();
  });
  // An error is the server's, or of the memory.
  failEverywhere([&]() -> Status {
    const Result<Answer> answer =
        read(400, "application/json",
             R"({"error": {"message": "what a long message, which is cut"}})");
    if (answer.message() == "answered 400: what a long message, which is cut")
      return Status();
    return answer.status();
  });
}

TEST(Allocation, TuningDatabase) {
  const TempFolder folder;
  std::filesystem::permissions(folder.path(),
                               std::filesystem::perms::owner_all);
  const std::string path = folder.path("tuning.json");
  TuningEntry entry;
  entry.key = {std::string(32, 'a'), 1, {"cpu", "", "some processor", "1.0"}};
  entry.subject = {"matmul", {{-1, 2048}, {2048, 2048}}, {"f32", "bf16"}};
  entry.schedule = "#kf.vector<tile = [1, 64]>";
  entry.seconds = 0.125;
  entry.date = "2026-01-31";
  failEverywhere(
      [&]() -> Status {
        KF_ASSIGN_OR_RETURN(TuningDatabase database,
                            TuningDatabase::load(path));
        KF_RETURN_IF_ERROR(catchExceptions([&] { // for the argument's copy
          return database.insert(entry);
        }));
        return database.save(path);
      },
      {Failing::One, Failing::Rest},
      [&] {
        for (const auto &file :
             std::filesystem::directory_iterator(folder.path()))
          EXPECT_TRUE(file.path() == path || file.path() == path + ".lock")
              << file.path();
        EXPECT_EQ(TuningDatabase::load(path)->size(), 1u);
      });
}

} // namespace
