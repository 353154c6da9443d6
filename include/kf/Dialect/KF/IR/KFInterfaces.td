//===- KFInterfaces.td - Interfaces of kf ops
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFINTERFACES_TD
#define KF_DIALECT_KF_IR_KFINTERFACES_TD

include "mlir/IR/OpBase.td"

def KF_LoopOpInterface : OpInterface<"LoopOpInterface"> {
  let cppNamespace = "::mlir::kf";
  let description = [{
    An op that a perfect loop nest computes. The TilingInterface of every kf op
    derives from these two methods.
  }];
  let methods = [
    InterfaceMethod<[{
        Iterator type of each loop; only parallel loops are tiled across
        workgroups.
      }],
      "::llvm::SmallVector<::mlir::utils::IteratorType>", "getLoopTypes">,
    InterfaceMethod<[{
        One map from the loops to each operand, then to each result. A result
        expression `d<i>` means that the dimension is sliced by loop i; `0` means
        that it is taken whole. Operands that are not tensors have a map without
        results.
      }],
      "::llvm::SmallVector<::mlir::AffineMap>", "getLoopMaps">
  ];
}

#endif // KF_DIALECT_KF_IR_KFINTERFACES_TD
