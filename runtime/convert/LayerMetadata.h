//===- LayerMetadata.h - What layers do as GGUF metadata --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CONVERT_LAYERMETADATA_H
#define KF_RUNTIME_CONVERT_LAYERMETADATA_H

#include "runtime/io/GgufWriter.h"
#include "runtime/model/ModelConfig.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kf {

/// "a GGUF file cannot say that <what>".
Status inexpressible(const std::string &what);

/// Adds keys behind an architecture's name.
class MetadataAdder {
public:
  MetadataAdder(std::string architecture, GgufMetadata &metadata)
      : architecture(std::move(architecture)), metadata(metadata) {}

  void integer(const std::string &key, int64_t value) {
    metadata.addU32(architecture + "." + key, static_cast<uint32_t>(value));
  }
  void real(const std::string &key, double value) {
    metadata.addF32(architecture + "." + key, static_cast<float>(value));
  }
  void text(const std::string &key, const std::string &value) {
    metadata.addText(architecture + "." + key, value);
  }
  void flag(const std::string &key, bool value) {
    metadata.addBool(architecture + "." + key, value);
  }
  void integers(const std::string &key, const std::vector<int32_t> &values) {
    metadata.addI32s(architecture + "." + key, values);
  }
  void reals(const std::string &key, const std::vector<float> &values) {
    metadata.addF32s(architecture + "." + key, values);
  }
  void flags(const std::string &key, const std::vector<bool> &values) {
    metadata.addBools(architecture + "." + key, values);
  }

private:
  std::string architecture;
  GgufMetadata &metadata;
};

/// An error unless what layers do beside one another, windows and which have
/// experts, is what a file can say, or what goes without saying.
Status checkLayers(const ModelConfig &config);

/// Adds the sizes of heads and of feed-forward blocks, and whose keys layers
/// attend to.
void addSizes(const ModelConfig &config, MetadataAdder &add);
/// Adds latent attention's sizes, where there is one.
void addLatentMetadata(const ModelConfig &config, MetadataAdder &add);
/// Adds streams, cut gates and inputs of tokens, where there are such.
void addStreamMetadata(const ModelConfig &config, MetadataAdder &add);
/// Adds how experts are chosen, and which layers have them, where readers know
/// such keys.
void addRouterMetadata(const ModelConfig &config, MetadataAdder &add);
/// Adds which layers have linear attention, and of what sizes, where some have.
void addLinearMetadata(const ModelConfig &config, MetadataAdder &add);

} // namespace kf

#endif // KF_RUNTIME_CONVERT_LAYERMETADATA_H
