//===- KFVectorOps.td - Ops on vectors of bytes ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What conversions emit where machines have one instruction and upstream
// dialects no op. A target lowers them.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_KFVECTOROPS_TD
#define KF_DIALECT_KF_IR_KFVECTOROPS_TD

def KF_IntVector : FixedVectorOfRankAndType<[1], [I32]>;
def KF_ByteVector : FixedVectorOfRankAndType<[1], [I8]>;

def KF_Dp4aOp : KF_Op<"dp4a", [Pure, AllTypesMatch<["a", "b"]>,
                               AllTypesMatch<["sum", "result"]>]> {
  let summary = "four products of bytes, added up in each lane";
  let description = [{
    `result[i] = sum[i] + a[4 i] * b[4 i] + ... + a[4 i + 3] * b[4 i + 3]`, the
    bytes of `a` without a sign, those of `b` with one. Sums wrap around.

    - C1: `a` and `b` have four times the lanes of `sum`.

    ```mlir
    %0 = kf.dp4a %sum, %a, %b : vector<16xi32>, vector<64xi8>
    ```
  }];
  let arguments = (ins KF_IntVector:$sum, KF_ByteVector:$a, KF_ByteVector:$b);
  let results = (outs KF_IntVector:$result);
  let assemblyFormat = [{
    $sum `,` $a `,` $b attr-dict `:` type($sum) `,` type($a)
  }];
  let hasVerifier = 1;
}

def KF_LookUpOp : KF_Op<"look_up", [Pure, SameOperandsAndResultType]> {
  let summary = "entries of a table of 16 bytes";
  let description = [{
    `result[i] = table[codes[i]]`; codes are from 0 to 15.

    - C1: `table` has 16 entries.

    ```mlir
    %0 = kf.look_up %codes [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
        : vector<64xi8>
    ```
  }];
  let arguments = (ins KF_ByteVector:$codes, DenseI8ArrayAttr:$table);
  let results = (outs KF_ByteVector:$result);
  let assemblyFormat = "$codes $table attr-dict `:` type($codes)";
  let hasVerifier = 1;
}

#endif // KF_DIALECT_KF_IR_KFVECTOROPS_TD
