//===- Peers.cpp - The peers that are there -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Peers/Peer.h"

#include <benchmark/benchmark.h>

using namespace kf;
using namespace kf::bench;

#ifndef KF_HAVE_ONEDNN
std::unique_ptr<Peer> bench::openOneDnn() { return nullptr; }
#endif
#ifndef KF_HAVE_GGML
std::unique_ptr<Peer> bench::openGgml() { return nullptr; }
#endif

std::vector<std::unique_ptr<Peer>> bench::openPeers() {
  std::vector<std::unique_ptr<Peer>> all;
  for (auto *open :
       {openOpenBlas, openBlis, openOneDnn, openOnnxRuntime, openGgml})
    if (std::unique_ptr<Peer> peer = open()) {
      benchmark::AddCustomContext(peer->name(), peer->description());
      all.push_back(std::move(peer));
    }
  return all;
}
