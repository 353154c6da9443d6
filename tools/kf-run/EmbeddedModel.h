//===- EmbeddedModel.h - The model inside kf-run ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_EMBEDDEDMODEL_H
#define KF_TOOLS_KF_RUN_EMBEDDEDMODEL_H

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

#endif // KF_TOOLS_KF_RUN_EMBEDDEDMODEL_H
