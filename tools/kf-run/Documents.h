//===- Documents.h - Files of texts -----------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_DOCUMENTS_H
#define KF_TOOLS_KF_RUN_DOCUMENTS_H

#include "runtime/core/Status.h"

#include <string>
#include <vector>

namespace kf {

/// The texts of a file: a .json file is an array of them, any other file is one
/// text. Errors name the file.
Result<std::vector<std::string>> readDocuments(const std::string &path);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_DOCUMENTS_H
