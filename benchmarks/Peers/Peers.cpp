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

Peers bench::openPeers() {
  Peers all;
  for (auto *open :
       {openOpenBlas, openBlis, openOneDnn, openOnnxRuntime, openGgml})
    if (std::unique_ptr<Peer> peer = open()) {
      benchmark::AddCustomContext(peer->name(), peer->description());
      all.push_back(std::move(peer));
    }
  return all;
}

std::vector<std::string> bench::namesOf(const Peers &peers) {
  std::vector<std::string> names;
  for (const auto &peer : peers)
    names.push_back(peer->name());
  return names;
}

Result<std::vector<Entry>> bench::allContenders(
    const Peers &peers,
    const std::function<Result<std::unique_ptr<Contender>>()> &ours,
    const std::function<Result<std::unique_ptr<Contender>>(Peer &)> &ask,
    const std::function<Result<Entry>()> &ceiling) {
  std::vector<Entry> entries;
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Contender> own, ours());
  entries.push_back({"kf", std::move(own)});
  for (const auto &peer : peers) {
    Result<std::unique_ptr<Contender>> other = ask(*peer);
    if (!other.ok())
      return other.status().in(peer->name());
    if (*other)
      entries.push_back({peer->name(), other.take()});
  }
  KF_ASSIGN_OR_RETURN(Entry highest, ceiling());
  entries.push_back(std::move(highest));
  return entries;
}
