//===- TerminalObserver.cpp - The runtime's work on a terminal ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TerminalObserver.h"

#include "Progress.h"
#include "Report.h"

#include <list>

using namespace kf;

namespace {

class TerminalObserver : public Observer {
public:
  void onBegin(const std::string &work) override { works.emplace_back(work); }
  void onProgress(double share) override { works.back().update(share); }
  void onEnd() override { works.pop_back(); }
  void onWarning(const std::string &line) override { printWarning(line); }
  void onNote(const std::string &line) override { printNote(line); }

private:
  std::list<Progress> works; ///< the innermost last
};

} // namespace

Observer &kf::terminal() {
  // Never destroyed: errors may end the process within work.
  static auto *observer = new TerminalObserver;
  return *observer;
}
