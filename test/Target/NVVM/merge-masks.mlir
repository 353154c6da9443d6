// RUN: kf-run emit-mlir %s --function masked --device cuda --compile-to=binary -o %t
// RUN: %ptx print %t | FileCheck %s --check-prefix=MASKED
// RUN: kf-run emit-mlir %s --function parts --device cuda --compile-to=binary -o %t
// RUN: %ptx print %t | FileCheck %s --check-prefix=PARTS
// RUN: kf-run emit-mlir %s --function kept --device cuda --compile-to=binary -o %t
// RUN: %ptx print %t | FileCheck %s --check-prefix=KEPT

// A mask and a constant are one instruction.
// MASKED-NOT: {{(and|or)\.b32}}
// MASKED:     lop3.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, 0xF00F, 0x640, 0xEA;
// MASKED-NOT: {{(and|or)\.b32}}
// MASKED:     st.global
func.func @masked(%x: tensor<?x32xi32>) -> tensor<?x32xi32> {
  %mask = arith.constant dense<0xf00f> : tensor<1xi32>
  %bits = arith.constant dense<0x0640> : tensor<1xi32>
  %masks = kf.broadcast %mask : tensor<1xi32> to tensor<?x32xi32>
  %all = kf.broadcast %bits : tensor<1xi32> to tensor<?x32xi32>
  %0 = arith.andi %x, %masks : tensor<?x32xi32>
  %1 = arith.ori %0, %all : tensor<?x32xi32>
  return %1 : tensor<?x32xi32>
}

// Of two parts, the constant goes with one; the assembler joins the other.
// PARTS:     lop3.b32 {{.*}}, 0xF00F, 0x640000, 0xEA;
// PARTS:     and.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, 4080;
// PARTS:     or.b32
// PARTS:     st.global
func.func @parts(%x: tensor<?x32xi32>, %y: tensor<?x32xi32>) -> tensor<?x32xi32> {
  %mask = arith.constant dense<0xf00f> : tensor<1xi32>
  %other = arith.constant dense<0x0ff0> : tensor<1xi32>
  %bits = arith.constant dense<0x640000> : tensor<1xi32>
  %masks = kf.broadcast %mask : tensor<1xi32> to tensor<?x32xi32>
  %others = kf.broadcast %other : tensor<1xi32> to tensor<?x32xi32>
  %all = kf.broadcast %bits : tensor<1xi32> to tensor<?x32xi32>
  %0 = arith.andi %x, %masks : tensor<?x32xi32>
  %1 = arith.andi %y, %others : tensor<?x32xi32>
  %2 = arith.ori %0, %1 : tensor<?x32xi32>
  %3 = arith.ori %2, %all : tensor<?x32xi32>
  return %3 : tensor<?x32xi32>
}

// What is masked is wanted by itself as well, or its bits are no constant.
// KEPT-NOT: lop3.b32
// KEPT:     st.global
func.func @kept(%x: tensor<?x32xi32>, %y: tensor<?x32xi32>) -> (tensor<?x32xi32>, tensor<?x32xi32>) {
  %mask = arith.constant dense<0xf00f> : tensor<1xi32>
  %bits = arith.constant dense<0x0640> : tensor<1xi32>
  %masks = kf.broadcast %mask : tensor<1xi32> to tensor<?x32xi32>
  %all = kf.broadcast %bits : tensor<1xi32> to tensor<?x32xi32>
  %0 = arith.andi %x, %masks : tensor<?x32xi32>
  %1 = arith.ori %0, %all : tensor<?x32xi32>
  %2 = arith.muli %0, %1 : tensor<?x32xi32>
  %3 = arith.ori %0, %y : tensor<?x32xi32>
  return %2, %3 : tensor<?x32xi32>, tensor<?x32xi32>
}
