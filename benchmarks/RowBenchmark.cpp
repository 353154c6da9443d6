//===- RowBenchmark.cpp - Norms and softmax against peers -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread. The rows are in a cache, as those of a step are, so that the
// ceiling, which is reading them from memory, can be exceeded.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/CeilingLoops.h"
#include "benchmarks/CoreTypes.h"
#include "benchmarks/Operations.h"
#include "benchmarks/Peers/Peer.h"

using namespace kf;
using namespace kf::bench;

namespace {

Result<std::vector<Entry>> contenders(const Peers &peers,
                                      RowOperation operation) {
  operation.x = randomNumbers(operation.rows * operation.columns, 1);
  operation.weight = randomNumbers(operation.columns, 2);
  operation.bias = randomNumbers(operation.columns, 3);
  return allContenders(
      peers, [&] { return compileRows(operation); },
      [&](Peer &peer) { return peer.rows(operation); },
      [] { return readCeiling(1); });
}

} // namespace

int main(int argc, char **argv) {
  forceCoreTypes(argv);
  const Peers peers = openPeers();
  using Kind = RowOperation::Kind;
  for (auto [kind, name] : {std::pair(Kind::RmsNorm, "rms_norm"),
                            {Kind::LayerNorm, "layer_norm"},
                            {Kind::Softmax, "softmax"}})
    for (auto [rows, columns] :
         {std::pair<int64_t, int64_t>(1, 2048), {512, 2048}, {512, 4096}}) {
      RowOperation operation;
      operation.kind = kind;
      operation.rows = rows;
      operation.columns = columns;
      addCase({.name = std::string(name) + "/" + std::to_string(rows) + "x" +
                       std::to_string(columns),
               .unit = Unit::Bytes,
               .amount = static_cast<double>(rows * columns) * sizeof(float),
               .tolerance = 1e-5,
               .prepare = [&peers, operation] {
                 return contenders(peers, operation);
               }});
    }
  return runCases(argc, argv, namesOf(peers));
}
