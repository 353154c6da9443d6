//===- KFScheduleInterface.td - What passes ask of schedules
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFSCHEDULEINTERFACE_TD
#define KF_DIALECT_KF_IR_KFSCHEDULEINTERFACE_TD

include "mlir/IR/OpBase.td"

def KF_ScheduleAttrInterface : AttrInterface<"ScheduleAttrInterface"> {
  let cppNamespace = "::mlir::kf";
  let description = [{
    What passes that know no algorithm ask of a kernel's schedule.
  }];
  let methods = [
    InterfaceMethod<[{
        Tile of each parallel loop of the kernel's root op that one workgroup
        computes; 0, or nothing, leaves the loop whole.
      }],
      "::llvm::ArrayRef<int64_t>", "getWorkgroup">,
    InterfaceMethod<[{
        Threads of a workgroup along x, y, z; empty where that is one, or
        follows from other fields.
      }],
      "::llvm::ArrayRef<int64_t>", "getThreads">,
    InterfaceMethod<[{
        Workgroups that compute a tile together: where there are several, they
        are the last dimension of the grid.
      }],
      "int64_t", "getParts", (ins), "", "return 1;">
  ];
}

#endif // KF_DIALECT_KF_IR_KFSCHEDULEINTERFACE_TD
