//===- AdapterWeights.cpp - A model's tensors and its adapters' -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/adapter/AdapterWeights.h"

#include "runtime/core/AlignedBuffer.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/model/TensorList.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <mutex>
#include <optional>
#include <set>

using namespace kf;

/// Of A of a group: lines [first, first + rank) are the module's A. Of B of a
/// product: its rows are some of the module's B.
struct AdapterWeights::Piece {
  const AdaptedModule *module = nullptr;
  int64_t first = 0;                      ///< line, of A
  const LoraModule::Part *part = nullptr; ///< of B
};

struct AdapterWeights::Entry {
  DataType type = DataType::F32;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  size_t adapter = 0;                  ///< number; 0: all zeros
  std::vector<Piece> pieces;           ///< the rest is zeros
  std::mutex making;                   ///< guards `memory`
  std::optional<AlignedBuffer> memory; ///< none: not made, or released

  TensorView view() const {
    return {type, shape, memory ? memory->data() : nullptr, bytes};
  }
};

namespace {

/// "layers.0.mlp.up_proj" of "layers.0.mlp.up_proj.weight".
std::string productOf(const std::string &key) {
  constexpr std::string_view suffix = ".weight";
  assert(key.ends_with(suffix) && "a matrix's key");
  return key.substr(0, key.size() - suffix.size());
}

/// The row of the module that row `row` of a part is.
int64_t moduleRow(const LoraModule::Part &part, int64_t row) {
  if (part.pairedRows == 0)
    return part.firstRow + row;
  const int64_t head = row / part.pairedRows, inHead = row % part.pairedRows;
  return part.firstRow + head * part.pairedRows +
         inHead % 2 * (part.pairedRows / 2) + inHead / 2;
}

} // namespace

AdapterWeights::AdapterWeights(std::unique_ptr<WeightSource> source,
                               std::vector<PeftAdapter> adapters)
    : source(std::move(source)), adapters(std::move(adapters)) {}
AdapterWeights::~AdapterWeights() = default;

Result<std::unique_ptr<AdapterWeights>>
AdapterWeights::create(ModelConfig &model, std::unique_ptr<WeightSource> source,
                       std::vector<PeftAdapter> adapters) try {
  if (adapters.empty())
    return Status::error("a model is opened with one adapter or more");
  std::unique_ptr<AdapterWeights> weights(
      new AdapterWeights(std::move(source), std::move(adapters)));
  KF_ASSIGN_OR_RETURN(const DataType type, weights->typeFor(model));
  weights->addRanks(model);
  weights->addEntries(model, type);
  return weights;
} catch (...) {
  return statusOfException();
}

Result<DataType> AdapterWeights::typeFor(const ModelConfig &model) const {
  KF_ASSIGN_OR_RETURN(const std::vector<ListedTensor> tensors,
                      findTensors(model, *source));
  std::set<std::string> keys;
  for (const PeftAdapter &adapter : adapters)
    for (const AdaptedModule &module : adapter.modules())
      for (const LoraModule::Part &part : module.module.parts)
        keys.insert(part.key);
  for (const ListedTensor &tensor : tensors) {
    if (!keys.contains(tensor.key))
      continue;
    KF_ASSIGN_OR_RETURN(const TensorView view, source->describe(tensor.name));
    if (view.type == DataType::F32)
      return DataType::F32;
  }
  return DataType::BF16;
}

void AdapterWeights::addRanks(ModelConfig &model) const {
  model.adapters = {static_cast<int64_t>(adapters.size())};
  for (const PeftAdapter &adapter : adapters)
    for (const AdaptedModule &module : adapter.modules())
      for (const LoraModule::Part &part : module.module.parts) {
        int64_t &rank = model.adapters.ranks[productOf(part.key)];
        rank = std::max(rank, module.rank);
      }
}

void AdapterWeights::addEntries(const ModelConfig &model, DataType type) {
  for (const ListedTensor &tensor : listTensors(model)) {
    if (tensor.role != ListedTensor::Role::Adapter)
      continue;
    auto entry = std::make_unique<Entry>();
    entry->type = type;
    entry->shape = tensor.shape;
    entry->bytes =
        static_cast<uint64_t>(tensor.shape[0] * tensor.shape[1]) * sizeOf(type);
    entries.emplace(tensor.name, std::move(entry));
  }
  const TensorNames &names = tensorNames(model);
  for (size_t number = 1; number <= adapters.size(); ++number) {
    // Of each product the module that adds to it, and the part that it is.
    std::map<std::string, Piece> pieces;
    for (const AdaptedModule &module : adapters[number - 1].modules())
      for (const LoraModule::Part &part : module.module.parts)
        pieces[productOf(part.key)] = {&module, 0, &part};
    const auto at = static_cast<int64_t>(number);
    for (int64_t layer = 0; layer < model.layers; ++layer) {
      const std::string begin =
          std::string(names.layer) + "." + std::to_string(layer) + ".";
      for (const AdapterGroup &group : adapterGroups(names)) {
        int64_t first = 0;
        for (std::string_view part : group.products) {
          const std::string product = begin + std::string(part);
          const int64_t rank = model.adapters.rankOf(product);
          if (const auto it = pieces.find(product); it != pieces.end()) {
            Entry &a =
                *entries.at(adapterKeyOfA(begin + std::string(group.name), at));
            a.adapter = number;
            a.pieces.push_back({it->second.module, first, nullptr});
            Entry &b = *entries.at(adapterKeyOfB(product, at));
            b.adapter = number;
            b.pieces.push_back(it->second);
          }
          first += rank;
        }
      }
    }
  }
}

/// Values [rows, columns], which are zeros before.
Status AdapterWeights::fill(const Entry &entry,
                            std::vector<float> &values) const {
  for (const Piece &piece : entry.pieces) {
    const PeftAdapter &adapter = adapters[entry.adapter - 1];
    const AdaptedModule &module = *piece.module;
    if (!piece.part) {
      KF_ASSIGN_OR_RETURN(const std::vector<float> a, adapter.a(module));
      std::ranges::copy(a, values.begin() + piece.first * module.module.in);
      continue;
    }
    KF_ASSIGN_OR_RETURN(const std::vector<float> b, adapter.b(module));
    const auto scale = static_cast<float>(module.scale);
    const int64_t columns = entry.shape[1];
    for (int64_t row = 0; row < piece.part->rows; ++row) {
      const float *from = b.data() + moduleRow(*piece.part, row) * module.rank;
      for (int64_t i = 0; i < module.rank; ++i)
        values[static_cast<size_t>(row * columns + i)] = scale * from[i];
    }
    if (!std::ranges::all_of(values,
                             [](float value) { return std::isfinite(value); }))
      return Status::error("tensor " + inQuotes(module.module.nameOfB()) +
                           " times its factor, " + spellNumber(module.scale) +
                           ", exceeds f32; 'lora_alpha' is too large")
          .in(adapter.tensorsFile());
  }
  return Status();
}

Result<TensorView> AdapterWeights::find(const std::string &name) const try {
  const auto it = entries.find(name);
  if (it == entries.end())
    return source->find(name);
  Entry &entry = *it->second;
  std::lock_guard lock(entry.making);
  if (!entry.memory) {
    const int64_t count = entry.shape[0] * entry.shape[1];
    std::vector<float> values(static_cast<size_t>(count));
    KF_RETURN_IF_ERROR(fill(entry, values));
    Result<AlignedBuffer> memory = AlignedBuffer::allocate(entry.bytes);
    if (!memory.ok())
      return memory.status().in("tensor " + inQuotes(name));
    KF_RETURN_IF_ERROR(
        convertFromFloat(entry.type, values.data(), count, memory->data()));
    entry.memory = memory.take();
  }
  return entry.view();
} catch (...) {
  return statusOfException();
}

Result<TensorView> AdapterWeights::describe(const std::string &name) const try {
  const auto it = entries.find(name);
  if (it == entries.end())
    return source->describe(name);
  const Entry &entry = *it->second;
  return TensorView{entry.type, entry.shape, nullptr, entry.bytes};
} catch (...) {
  return statusOfException();
}

void AdapterWeights::release(const std::string &name) const {
  const auto it = entries.find(name);
  if (it == entries.end())
    return source->release(name);
  std::lock_guard lock(it->second->making);
  it->second->memory.reset();
}

void AdapterWeights::releasePart(const std::string &name, uint64_t first,
                                 uint64_t bytes) const {
  if (!entries.contains(name))
    source->releasePart(name, first, bytes);
}

Result<bool> AdapterWeights::keepFloat8(const std::string &name) {
  if (entries.contains(name))
    return false;
  return source->keepFloat8(name);
}

std::vector<std::string> AdapterWeights::names() const {
  std::vector<std::string> names = source->names();
  for (const auto &[name, entry] : entries)
    names.push_back(name);
  std::ranges::sort(names);
  return names;
}
