//===- GgufJoiner.h - The files of a model that is split --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_GGUFJOINER_H
#define KF_RUNTIME_IO_GGUFJOINER_H

#include "runtime/io/Gguf.h"

namespace kf {

/// Opens what belongs to a file that was opened.
class GgufJoiner {
public:
  /// `first` is parsed, and named by its path.
  explicit GgufJoiner(Gguf &first) : first(first) {}
  /// Adds the tensors of the other files, where there are any.
  Status join();

private:
  /// "part 2 of 3" of the file `number`.
  std::string part(uint64_t number) const;
  /// What its name ends with.
  std::string suffix(uint64_t number) const;
  /// That the file can be opened by itself.
  Status checkFirst();
  /// Opens the file `number`, which has to say that it is the one.
  Result<std::unique_ptr<Gguf>> open(uint64_t number) const;
  Status add(std::unique_ptr<Gguf> other);

  Gguf &first;
  uint64_t count = 1;   ///< files
  uint64_t tensors = 0; ///< in all of them
  std::string prefix;   ///< of their paths
};

} // namespace kf

#endif // KF_RUNTIME_IO_GGUFJOINER_H
