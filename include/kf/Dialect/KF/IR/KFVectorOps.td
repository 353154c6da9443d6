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
    bytes of `a` without a sign, those of `b` with one. Sums wrap around. With
    `signed` the bytes of `a` have a sign, too. Without, they are at most
    `most`: CPUs without an instruction for all of this need fewer where that is
    small. No byte of `b` is -128.

    - C1: `a` and `b` have four times the lanes of `sum`.
    - C2: `most` is from 1 to 255, and stays out where `a` is signed.

    ```mlir
    %0 = kf.dp4a %sum, %a, %b : vector<16xi32>, vector<64xi8>
    %1 = kf.dp4a %sum, %a, %b most(15) : vector<16xi32>, vector<64xi8>
    %2 = kf.dp4a %sum, %a, %b signed : vector<16xi32>, vector<64xi8>
    ```
  }];
  let arguments = (ins KF_IntVector:$sum, KF_ByteVector:$a, KF_ByteVector:$b,
                       DefaultValuedOptionalAttr<I32Attr, "255">:$most,
                       UnitAttr:$is_signed);
  let results = (outs KF_IntVector:$result);
  let assemblyFormat = [{
    $sum `,` $a `,` $b (`most` `(` $most^ `)`)? (`signed` $is_signed^)?
    attr-dict `:` type($sum) `,` type($a)
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
