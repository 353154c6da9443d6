//===- MatmulBenchmark.cpp - Products against peers and ceilings ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// y = x W^T with W packed when it is loaded. Products of many rows are compared
// by operations, those of few by the bytes of W, which comes from memory.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/CeilingLoops.h"
#include "benchmarks/CoreTypes.h"
#include "benchmarks/Operations.h"
#include "benchmarks/Peers/Peer.h"
#include "runtime/core/BlockFormat.h"

#include <algorithm>

using namespace kf;
using namespace kf::bench;

namespace {

/// Products of at most so many rows are bound by reading W.
constexpr int64_t fewRows = 16;

struct Shape {
  int64_t rows, outputs, inputs;
};

Result<HostTensor> weightsOf(const Shape &shape, DataType type) {
  const std::vector<float> values =
      randomNumbers(shape.outputs * shape.inputs, 2);
  KF_ASSIGN_OR_RETURN(HostTensor weights,
                      HostTensor::zeros(type, {shape.outputs, shape.inputs}));
  const int64_t count = weights.elementCount();
  if (isBlock(type))
    quantizeBlocks(type, values.data(), count / elementsPerBlock(type),
                   weights.bytes.data());
  else
    KF_RETURN_IF_ERROR(
        convertFromFloat(type, values.data(), count, weights.bytes.data()));
  return weights;
}

Result<std::vector<Entry>> contenders(const Peers &peers, const Shape &shape,
                                      DataType type, int threads) {
  Product product;
  product.rows = shape.rows;
  product.outputs = shape.outputs;
  product.inputs = shape.inputs;
  product.threads = threads;
  product.x = randomNumbers(shape.rows * shape.inputs, 1);
  KF_ASSIGN_OR_RETURN(product.weights, weightsOf(shape, type));
  const bool readsMemory = shape.rows <= fewRows;
  if (readsMemory)
    product.copies =
        copiesBeyondCaches(static_cast<double>(product.weights.bytes.size()));
  return allContenders(
      peers, [&] { return compileProduct(product); },
      [&](Peer &peer) { return peer.product(product); },
      [&] {
        return readsMemory     ? readCeiling(threads)
               : isBlock(type) ? i8Ceiling(threads)
                               : f32Ceiling(threads);
      });
}

void addProducts(const Peers &peers, DataType type) {
  std::vector<Shape> shapes = {{1024, 1024, 1024},
                               {2048, 2048, 2048},
                               {4096, 1024, 4096},
                               {512, 5632, 2048},
                               {1000, 1001, 1003}};
  for (int64_t rows : {1, 2, 4, 8, 16})
    shapes.push_back({rows, 5632, 2048});
  for (const Shape &shape : shapes) {
    const double operations = 2.0 * static_cast<double>(shape.rows) *
                              static_cast<double>(shape.outputs) *
                              static_cast<double>(shape.inputs);
    const Result<int64_t> bytes =
        checkedByteCount(type, std::vector{shape.outputs, shape.inputs});
    if (!bytes.ok()) // rows that do not end with a block
      continue;
    const bool readsMemory = shape.rows <= fewRows;
    addCase({.name = "matmul/" + std::string(nameOf(type)) + "/" +
                     std::to_string(shape.rows) + "x" +
                     std::to_string(shape.outputs) + "x" +
                     std::to_string(shape.inputs),
             .unit = readsMemory ? Unit::Bytes : Unit::Operations,
             .amount = readsMemory ? static_cast<double>(*bytes) : operations,
             .tolerance = type == DataType::F32 ? 1e-5 : 1e-2,
             .prepare = [&peers, shape, type] {
               return contenders(peers, shape, type, 1);
             }});
  }
}

} // namespace

int main(int argc, char **argv) {
  forceCoreTypes(argv);
  const Peers peers = openPeers();
  for (DataType type :
       {DataType::F32, DataType::BF16, DataType::F16, DataType::Q8_0,
        DataType::Q4_0, DataType::Q4_K, DataType::Q6_K})
    addProducts(peers, type);
  return runCases(argc, argv, namesOf(peers));
}
