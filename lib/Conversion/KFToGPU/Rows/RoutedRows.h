//===- RoutedRows.h - The experts of a row ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_ROWS_ROUTEDROWS_H
#define KF_LIB_CONVERSION_KFTOGPU_ROWS_ROUTEDROWS_H

#include "../GPUEmitter.h"

namespace mlir::kf {

/// The tile of a kernel of kf.route.
void emitGPURoute(GPUEmitter &emitter);

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_ROWS_ROUTEDROWS_H
