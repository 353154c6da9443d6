//===- WriteFile.h - Bytes to a file ----------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_WRITEFILE_H
#define KF_RUNTIME_IO_WRITEFILE_H

#include "runtime/Status.h"

#include <string>
#include <string_view>

namespace kf {

/// Writes `bytes` to the file `path`, which becomes theirs alone. What is there
/// has to be a regular file or a character device such as /dev/null; of pipes,
/// which may wait for a reader for ever, only those that the process has open
/// already: /dev/stdout, /dev/stderr, /dev/fd/N. Errors name the file.
Status writeFile(const std::string &path, std::string_view bytes);

} // namespace kf

#endif // KF_RUNTIME_IO_WRITEFILE_H
