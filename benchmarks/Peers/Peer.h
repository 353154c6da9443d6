//===- Peer.h - A library that computes what we compute ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_BENCHMARKS_PEERS_PEER_H
#define KF_BENCHMARKS_PEERS_PEER_H

#include "benchmarks/Operations.h"

#include <memory>
#include <string>
#include <vector>

namespace kf::bench {

/// A library in this process. What it makes refers to it, and to the operation
/// only during the call. One thread.
class Peer {
public:
  virtual ~Peer() = default;
  /// That of its column: "OpenBLAS".
  virtual std::string name() const = 0;
  /// Its version, and the kernels that it chose for this CPU.
  virtual std::string description() const = 0;

  /// A contender with operands of its own, as the library likes them best:
  /// whatever a program does once, as packing weights, is done. Null where the
  /// library lacks the operation.
  virtual Result<std::unique_ptr<Contender>> product(const Product &) {
    return std::unique_ptr<Contender>();
  }
  virtual Result<std::unique_ptr<Contender>> rows(const RowOperation &) {
    return std::unique_ptr<Contender>();
  }
  virtual Result<std::unique_ptr<Contender>> attention(const Attention &) {
    return std::unique_ptr<Contender>();
  }
};

/// Each is null where the library, or what the build needs of it, is missing.
std::unique_ptr<Peer> openOpenBlas();
std::unique_ptr<Peer> openBlis();
std::unique_ptr<Peer> openOneDnn();
/// From the library that KF_ONNXRUNTIME in the environment names, or else from
/// an installed one.
std::unique_ptr<Peer> openOnnxRuntime();
std::unique_ptr<Peer> openGgml();

using Peers = std::vector<std::unique_ptr<Peer>>;

/// Those that are there, with their descriptions in Google Benchmark's context.
Peers openPeers();
std::vector<std::string> namesOf(const Peers &peers);

/// A case's entries: what `ours` makes, what `ask` has from each of `peers`,
/// and the ceiling.
Result<std::vector<Entry>> allContenders(
    const Peers &peers,
    const std::function<Result<std::unique_ptr<Contender>>()> &ours,
    const std::function<Result<std::unique_ptr<Contender>>(Peer &)> &ask,
    const std::function<Result<Entry>()> &ceiling);

} // namespace kf::bench

#endif // KF_BENCHMARKS_PEERS_PEER_H
