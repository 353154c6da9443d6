//===- Targets.cpp - The targets that there are ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Targets.h"

#include "kf/Target/TargetEntry.h"

#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

constexpr const TargetEntry *targets[] = {&cpuTarget, &cudaTarget,
                                          &referenceTarget, &vulkanTarget};

llvm::Expected<TargetAttrInterface> parseWritten(StringRef text,
                                                 MLIRContext *context) {
  std::string message;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  auto target = dyn_cast_if_present<TargetAttrInterface>(
      mlir::parseAttribute(text, context));
  if (target)
    return target;
  return llvm::createStringError(
      "target '" + text +
      "': " + (message.empty() ? std::string("is no target") : message));
}

} // namespace

void mlir::kf::registerTargetModels(DialectRegistry &registry) {
  for (const TargetEntry *target : targets)
    target->registerModel(registry);
}

llvm::Expected<TargetAttrInterface>
mlir::kf::parseTarget(StringRef text, MLIRContext *context, int64_t workers) {
  context->loadDialect<KFDialect>();
  if (text.starts_with("#"))
    return parseWritten(text, context);
  auto [device, chip] = text.split(':');
  std::string names;
  for (const TargetEntry *target : targets) {
    if (device == target->device) {
      llvm::Expected<Attribute> made = target->create(context, chip, workers);
      if (!made)
        return made.takeError();
      return cast<TargetAttrInterface>(*made);
    }
    names += (names.empty() ? "" : ", ") + target->device.str();
  }
  if (text.empty())
    return llvm::createStringError("no target is named, as target=cpu would; "
                                   "there are " +
                                   names);
  return llvm::createStringError("there is no target '" + device +
                                 "'; there are " + names);
}
