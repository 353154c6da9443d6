//===- GgufParser.h - Checks a GGUF file ------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_GGUFPARSER_H
#define KF_RUNTIME_IO_GGUFPARSER_H

#include "runtime/io/Gguf.h"
#include "runtime/io/GgufCursor.h"

namespace kf {

/// Fills a Gguf from its image, checking everything that the file claims.
class GgufParser {
public:
  /// `gguf.image` is set.
  explicit GgufParser(Gguf &gguf);
  Status parse();

  /// Reads a value of the type with number `type`; `depth` arrays are around
  /// it.
  static Status readValue(GgufCursor &cursor, uint32_t type, GgufValue &out,
                          int depth = 0);

private:
  static Status readArray(GgufCursor &cursor, GgufValue &out, int depth);
  Status readHeader();
  Status readEntry(uint64_t index);
  Status readAlignment();
  Status readTensor(uint64_t index);
  Status checkTensor(GgufTensor &tensor);
  Status placeTensors();

  Gguf &gguf;
  GgufCursor cursor;
  uint64_t tensorCount = 0, entryCount = 0;
};

} // namespace kf

#endif // KF_RUNTIME_IO_GGUFPARSER_H
