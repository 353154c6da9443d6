//===- FuzzReference.cpp - Any JSON as the reference target's kernels -----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is the kernel code of an executable, an array of kernels. Around
// each kernel that can be read lies a program that gives it what it asks for;
// if that is small, the reference device runs it, on more and less sensible
// numbers.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Json.h"
#include "runtime/devices/Reference/KernelInterpreter.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "test/runtime/DeviceSteps.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

using namespace kf;
using reference::KernelInterpreter;
using reference::ValueType;

namespace {

constexpr int64_t maxTokens = 3;
constexpr uint64_t resultBytes = 1 << 14; // room for each result
/// Products of two tensors of this size still take milliseconds.
constexpr int64_t maxElements = 1024;

/// Whether every result that an op states is small.
bool isSmall(const nlohmann::json &kernel) {
  for (const nlohmann::json &op : kernel["ops"])
    for (const nlohmann::json &result : op["results"]) {
      int64_t elements = 1;
      for (const nlohmann::json &dim : result["type"]["shape"]) {
        int64_t extent = dim.get<int64_t>();
        elements *= extent < 0 ? maxTokens : std::min(extent, maxElements + 1);
        if (elements > maxElements)
          return false;
      }
    }
  return true;
}

/// A program of one dispatch of `kernel`: its arguments are the inputs and
/// caches, its results lie in the arena.
Executable makeProgram(const KernelInterpreter &kernel, std::string code) {
  Executable program;
  program.target = "reference";
  program.programName = "fuzz";
  program.maxTokens = maxTokens;
  program.kernels.resize(1);
  program.kernels[0].name = kernel.name();
  program.binary = std::move(code);
  std::vector<kf_binding> &bindings =
      program.dispatches.emplace_back().bindings;
  for (size_t i = 0; i < kernel.argumentCount(); ++i) {
    const ValueType &type = kernel.argumentType(i);
    kf_binding binding = {KF_BINDING_INPUT,
                          static_cast<uint32_t>(program.inputs.size()), 0};
    if (type.cache) {
      binding.kind = KF_BINDING_CACHE;
      binding.index = static_cast<uint32_t>(program.caches.size());
      program.caches.push_back(*type.cache);
    } else {
      program.inputs.push_back({type.type, type.shape});
    }
    bindings.push_back(binding);
  }
  for (size_t i = 0; i < kernel.resultCount(); ++i)
    bindings.push_back({KF_BINDING_ARENA, 0, i * resultBytes});
  program.arenaBytes = kernel.resultCount() * resultBytes;
  return program;
}

/// Bytes of any pattern, or numbers that ops have more to do with.
std::string makeContent(uint64_t bytes, DataType type, std::mt19937 &random) {
  std::string content(bytes, '\0');
  const bool wild = random() % 4 == 0;
  for (uint64_t i = 0; i + 4 <= bytes; i += 4) {
    uint32_t word = random();
    if (!wild && type == DataType::I32) {
      word = random() % 8;
    } else if (!wild && type == DataType::F32) {
      float number = static_cast<float>(static_cast<int32_t>(word)) * 0x1p-30f;
      std::memcpy(&word, &number, 4);
    }
    std::memcpy(content.data() + i, &word, 4);
  }
  return content;
}

/// The arena and the caches after a run on inputs that `seed` decides; empty if
/// the program needs more than a test can give, or does not run.
std::string run(const Executable &program, int64_t tokens, uint32_t seed) {
  std::unique_ptr<Device> device = createReferenceDevice();
  auto loaded = device->load(program);
  if (!loaded.ok())
    return "";
  std::mt19937 random(seed);
  std::vector<std::unique_ptr<Buffer>> buffers;
  auto allocate = [&](uint64_t bytes, DataType type) -> Buffer * {
    auto buffer = device->allocate(bytes);
    if (!buffer.ok())
      std::abort();
    std::string content = makeContent(bytes, type, random);
    if (!test::writeAndWait(*device, **buffer, 0, content.data(), bytes).ok())
      std::abort();
    buffers.push_back(buffer.take());
    return buffers.back().get();
  };

  BindingTable table;
  table.arena = allocate(program.arenaBytes, DataType::F32);
  std::vector<Buffer *> written = {table.arena};
  for (const TensorSpec &input : program.inputs) {
    std::vector<int64_t> shape = input.shape;
    std::ranges::replace(shape, -1, maxTokens);
    auto bytes = checkedByteCount(input.type, shape);
    if (!bytes.ok() || *bytes > 4 * maxElements)
      return "";
    table.inputs.push_back(allocate(*bytes, input.type));
  }
  const int64_t pages = 3;
  for (const CacheSpec &cache : program.caches) {
    auto bytes = cache.bytes(pages);
    if (!bytes.ok() || *bytes > 16 * maxElements)
      return "";
    table.caches.push_back(allocate(*bytes, cache.type));
    written.push_back(table.caches.back());
  }

  std::vector<int64_t> scalars(KF_SCALAR_COUNT, 0);
  scalars[KF_SCALAR_N_TOKENS] = tokens;
  scalars[KF_SCALAR_CACHE_PAGES] = pages;
  auto instance = (*loaded)->bind(table);
  if (!instance.ok() || !test::runAndWait(*device, **instance, scalars).ok())
    return "";
  std::string all;
  for (Buffer *buffer : written) {
    std::string content(buffer->size(), '\0');
    if (!test::readAndWait(*device, *buffer, 0, content.data(), content.size())
             .ok())
      std::abort();
    all += content;
  }
  return all;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto code =
      parseJson(std::string_view(reinterpret_cast<const char *>(data), size));
  if (!code.ok() || !(*code)->is_array())
    return 0;
  for (const nlohmann::json &json : **code) {
    auto kernel = KernelInterpreter::parse(json);
    if (!kernel.ok() || !isSmall(json) || kernel->resultCount() > 8)
      continue;
    Executable program =
        makeProgram(*kernel, nlohmann::json::array({json}).dump());
    for (int64_t tokens : {int64_t(1), maxTokens})
      // What runs once gives the same again.
      if (run(program, tokens, size) != run(program, tokens, size))
        std::abort();
  }
  return 0;
}
