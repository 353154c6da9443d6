//===- EmbeddedModel.h - The model inside a program -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library of its own, kf_embedded_model: the files of models/kf-stories, 13
// MB, become part of the program that links it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_EMBEDDEDMODEL_H
#define KF_RUNTIME_SESSION_EMBEDDEDMODEL_H

#include "runtime/engine/ModelFiles.h"

#include <string>
#include <string_view>

/// Declares what EmbeddedModel.S defines for one file.
#define KF_EMBEDDED_FILE(name)                                                 \
  extern "C" const char kf_embedded_##name[];                                  \
  extern "C" const char kf_embedded_##name##_end[];

KF_EMBEDDED_FILE(config)
KF_EMBEDDED_FILE(generation_config)
KF_EMBEDDED_FILE(tokenizer)
KF_EMBEDDED_FILE(tokenizer_config)
KF_EMBEDDED_FILE(chat_template)
KF_EMBEDDED_FILE(weights)
#undef KF_EMBEDDED_FILE

/// The file's bytes, as a std::string_view.
#define KF_EMBEDDED(name)                                                      \
  std::string_view(kf_embedded_##name, kf_embedded_##name##_end)

namespace kf {

/// Opens it; the tokenizer and the chat template come `withTokenizer`.
Result<ModelFiles> openEmbeddedModel(bool withTokenizer);

/// Writes what it has beside its configuration and weights, the tokenizer for
/// one, to `folder`.
Status saveEmbeddedFiles(const std::string &folder);

} // namespace kf

#endif // KF_RUNTIME_SESSION_EMBEDDEDMODEL_H
