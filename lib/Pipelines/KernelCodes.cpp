//===- KernelCodes.cpp - Code of kernels that programs share --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/KernelCodes.h"

using namespace mlir::kf;

std::shared_ptr<const KernelCodes::Code>
KernelCodes::lookup(const std::string &text) const {
  const ::kf::Digest key = ::kf::sha256(text);
  std::lock_guard<std::mutex> lock(mutex);
  auto known = codes.find(key);
  if (known == codes.end())
    return nullptr;
  ++found;
  return known->second;
}

void KernelCodes::add(const std::string &text, Code code) {
  auto kept = std::make_shared<const Code>(std::move(code));
  const ::kf::Digest key = ::kf::sha256(text);
  std::lock_guard<std::mutex> lock(mutex);
  codes.try_emplace(key, std::move(kept));
}

size_t KernelCodes::size() const {
  std::lock_guard<std::mutex> lock(mutex);
  return codes.size();
}

size_t KernelCodes::reused() const {
  std::lock_guard<std::mutex> lock(mutex);
  return found;
}
