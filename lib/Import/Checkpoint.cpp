//===- Checkpoint.cpp - The tensors of a model ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint.h"

#include "runtime/weights/RowScales.h"

using namespace mlir;
using namespace mlir::kf;
using ::kf::ListedTensor;

/// Products with experts read those of a layer as one weight.
llvm::Error Checkpoint::checkExperts(const ::kf::ModelConfig &config) const {
  const ::kf::TensorNames &names = ::kf::tensorNames(config);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    if (!config.hasExperts(layer))
      continue;
    for (std::string_view part :
         {names.expertGate, names.expertUp, names.expertDown})
      for (const char *suffix : {".weight", ".bias"}) {
        auto tensorOf = [&](int64_t expert) {
          return find((Twine(names.layer) + "." + Twine(layer) + "." +
                       names.ofExpert(part, expert) + suffix)
                          .str());
        };
        const Tensor *first = tensorOf(0); // null where there are no biases
        for (int64_t expert = 1; first && expert < config.experts.count;
             ++expert)
          if (const Tensor *other = tensorOf(expert);
              other->type != first->type)
            return llvm::createStringError(
                "checkpoint tensors '" + first->name + "' and '" + other->name +
                "' have different types; those of a layer's experts are "
                "expected to have one");
      }
  }
  return llvm::Error::success();
}

llvm::Expected<Checkpoint> Checkpoint::read(MLIRContext &context,
                                            const ::kf::ModelConfig &config,
                                            const ::kf::WeightSource &source) {
  auto found = ::kf::findTensors(config, source);
  if (!found.ok())
    return llvm::createStringError(found.message());
  Checkpoint result;
  for (const ListedTensor &listed : *found) {
    auto view = source.describe(listed.name);
    if (!view.ok())
      return llvm::createStringError(view.message());
    Type element = getElementType(&context, view->type);
    std::string scales;
    if (view->type == ::kf::DataType::F8E4M3 && ::kf::isFactor(listed)) {
      element = Float8E4M3FNType::get(&context);
      scales = ::kf::scaleName(listed.name);
    }
    bool mayHaveBlocks = (listed.role == ListedTensor::Role::Matrix ||
                          listed.role == ListedTensor::Role::Router) &&
                         !listed.transposed;
    if (!element || (isa<QuantType>(element) && !mayHaveBlocks))
      return llvm::createStringError(
          "checkpoint tensor '" + listed.name + "' has type " +
          std::string(::kf::nameOf(view->type)) +
          "; f32, f16 and bf16 are supported" +
          (mayHaveBlocks ? " and block formats" : " here"));
    result.tensors[listed.key] = {listed.name,
                                  RankedTensorType::get(listed.shape, element),
                                  listed.transposed, scales};
  }
  const ::kf::TensorNames &names = ::kf::tensorNames(config);
  if (config.tiedEmbeddings)
    result.tensors[std::string(names.head) + ".weight"] =
        result.tensors[std::string(names.embedding) + ".weight"];
  if (llvm::Error error = result.checkExperts(config))
    return std::move(error);
  return result;
}
