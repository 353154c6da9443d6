//===- WeightSource.h - Where a checkpoint's tensors come from --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checkpoint seen as named tensors that lie in memory somewhere: a mapped
// safetensors file, several of them, bytes embedded in the binary. Packing and
// the reference read weights through it and never learn the file format.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_WEIGHTSOURCE_H
#define KF_RUNTIME_WEIGHTS_WEIGHTSOURCE_H

#include "runtime/core/FileIdentity.h"
#include "runtime/core/Tensor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kf {

/// A dense row-major tensor in memory that its WeightSource owns. `data` may
/// be unaligned for `type`: files place tensors at any byte.
struct TensorView {
  DataType type = DataType::F32;
  std::vector<int64_t> shape;
  const void *data = nullptr;
  uint64_t bytes = 0; ///< checkedByteCount(type, shape)
};

/// Named tensors. Views stay valid as long as the source. Any number of
/// threads may call the const functions at once.
class WeightSource {
public:
  virtual ~WeightSource() = default;
  /// The tensor called `name`; an error that names it if there is none or its
  /// element type has no DataType.
  virtual Result<TensorView> find(const std::string &name) const = 0;
  /// The same but for `data`, which may be null: sources that make tensors when
  /// they are asked for do not make one for this.
  virtual Result<TensorView> describe(const std::string &name) const {
    return find(name);
  }
  /// Says that the tensor's bytes were read for the last time, as far as is
  /// known. A mapped file gives its pages back; views stay valid, and reading
  /// them reads the file again. A source that makes tensors may free this one:
  /// its views end, and find() makes it anew.
  virtual void release(const std::string &name) const { (void)name; }
  /// The same of the tensor's `bytes` bytes from number `first` on, for sources
  /// that give back parts; release() follows when the last part was read.
  virtual void releasePart(const std::string &name, uint64_t first,
                           uint64_t bytes) const {
    (void)name, (void)first, (void)bytes;
  }
  /// Asks for the matrix `name` as it is stored, where that is in F8E4M3 with
  /// no more than a factor for each row: it is F8E4M3 from then on, and
  /// scaleName(name) a tensor of f32 [rows] with the factors, which names()
  /// does not list. Matrices that are stored as one are kept so together.
  /// Before other calls, beside none. False: it stays what it is. An error
  /// where there is no memory.
  virtual Result<bool> keepFloat8(const std::string &name) {
    (void)name;
    return false;
  }
  /// The files that all tensors are read from, as they were when they were
  /// mapped; none where it takes more than files to know the tensors.
  virtual std::vector<FileIdentity> mappedFiles() const { return {}; }
  /// Every tensor's name, sorted.
  virtual std::vector<std::string> names() const = 0;
};

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_WEIGHTSOURCE_H
