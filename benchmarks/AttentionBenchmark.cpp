//===- AttentionBenchmark.cpp - Attention against peers and ceilings ------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread, the heads of well-known models. A prompt's rows are compared by
// operations, one token's row by the bytes of the cache, which come from
// memory.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/CeilingLoops.h"
#include "benchmarks/CoreTypes.h"
#include "benchmarks/Operations.h"
#include "benchmarks/Peers/Peer.h"

using namespace kf;
using namespace kf::bench;

namespace {

Result<std::vector<Entry>> contenders(const Peers &peers, Attention attention) {
  const bool readsMemory = attention.rows == 1;
  if (readsMemory)
    attention.copies = copiesBeyondCaches(attention.bytes());
  const int64_t kvCount =
      attention.positions() * attention.kvHeads * attention.headDim;
  attention.q =
      randomNumbers(attention.rows * attention.heads * attention.headDim, 1);
  attention.k = randomNumbers(kvCount, 2);
  attention.v = randomNumbers(kvCount, 3);
  return allContenders(
      peers, [&] { return compileAttention(attention); },
      [&](Peer &peer) { return peer.attention(attention); },
      [&] { return readsMemory ? readCeiling(1) : f32Ceiling(1); });
}

void addAttention(const Peers &peers, const char *model,
                  const Attention &attention) {
  const bool readsMemory = attention.rows == 1;
  addCase({.name = std::string("attention/") + model + "/" +
                   std::string(nameOf(attention.cacheType)) + "/" +
                   std::to_string(attention.rows) + "_after_" +
                   std::to_string(attention.past),
           .unit = readsMemory ? Unit::Bytes : Unit::Operations,
           .amount = readsMemory ? attention.bytes() : attention.operations(),
           // ggml adds up values in f16.
           .tolerance = 5e-2,
           .prepare = [&peers, attention] {
             return contenders(peers, attention);
           }});
}

} // namespace

int main(int argc, char **argv) {
  forceCoreTypes(argv);
  const Peers peers = openPeers();
  for (auto [model, kvHeads] :
       {std::pair<const char *, int64_t>("tinyllama-1.1b", 4),
        {"llama-3.2-1b", 8}})
    for (auto [rows, past] : {std::pair<int64_t, int64_t>(512, 0),
                              {1, 511},
                              {1, 2047},
                              {1, 8191}}) {
      Attention attention;
      attention.rows = rows;
      attention.past = past;
      attention.heads = 32;
      attention.kvHeads = kvHeads;
      attention.headDim = 64;
      addAttention(peers, model, attention);
    }
  return runCases(argc, argv, namesOf(peers));
}
