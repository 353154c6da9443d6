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

struct AdapterWeights::Entry : Tensor {
  const PeftAdapter *adapter = nullptr; ///< null: all zeros
  std::vector<Piece> pieces;            ///< the rest is zeros

  Status make(const WeightSource &source, const std::string &name,
              std::byte *dst) const override;
  Status fill(std::vector<float> &values) const;
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
    : MadeWeights(std::move(source)), adapters(std::move(adapters)) {}
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
    made.emplace(tensor.name, std::move(entry));
  }
  auto entryOf = [&](const std::string &name) -> Entry & {
    return static_cast<Entry &>(*made.at(name));
  };
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
                entryOf(adapterKeyOfA(begin + std::string(group.name), at));
            a.adapter = &adapters[number - 1];
            a.pieces.push_back({it->second.module, first, nullptr});
            Entry &b = entryOf(adapterKeyOfB(product, at));
            b.adapter = &adapters[number - 1];
            b.pieces.push_back(it->second);
          }
          first += rank;
        }
      }
    }
  }
}

/// Values [rows, columns], which are zeros before.
Status AdapterWeights::Entry::fill(std::vector<float> &values) const {
  for (const Piece &piece : pieces) {
    const AdaptedModule &module = *piece.module;
    if (!piece.part) {
      KF_ASSIGN_OR_RETURN(const std::vector<float> a, adapter->a(module));
      std::ranges::copy(a, values.begin() + piece.first * module.module.in);
      continue;
    }
    KF_ASSIGN_OR_RETURN(const std::vector<float> b, adapter->b(module));
    const auto scale = static_cast<float>(module.scale);
    const int64_t columns = shape[1];
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
          .in(adapter->tensorsFile());
  }
  return Status();
}

Status AdapterWeights::Entry::make(const WeightSource &, const std::string &,
                                   std::byte *dst) const {
  const int64_t count = shape[0] * shape[1];
  std::vector<float> values(static_cast<size_t>(count));
  KF_RETURN_IF_ERROR(fill(values));
  return convertFromFloat(type, values.data(), count, dst);
}

std::vector<std::string> AdapterWeights::names() const {
  std::vector<std::string> names = source->names();
  for (const auto &[name, tensor] : made)
    names.push_back(name);
  std::ranges::sort(names);
  return names;
}
