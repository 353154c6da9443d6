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
    if (view->type == ::kf::DataType::F8E4M3 &&
        ::kf::isFactor(config, listed)) {
      element = Float8E4M3FNType::get(&context);
      scales = ::kf::scaleName(listed.name);
    }
    bool mayHaveBlocks =
        listed.role == ListedTensor::Role::Matrix && !listed.transposed;
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
  return result;
}
