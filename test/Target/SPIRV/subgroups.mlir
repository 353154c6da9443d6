// Kernels whose subgroups multiply matrices state how many threads these have,
// and no other kernel does.
// RUN: kf-run emit-mlir %s --device vulkan --target-cpu h200 --compile-to=binary -o %t
// RUN: grep -ao '"name":"[a-z_0-9]*"\|"subgroup_threads":[0-9]*' %t | FileCheck %s --check-prefixes=CHECK,H200
// RUN: kf-run emit-mlir %s --device vulkan --target-cpu rdna3 --compile-to=binary -o %t
// RUN: grep -ao '"name":"[a-z_0-9]*"\|"subgroup_threads":[0-9]*' %t | FileCheck %s --check-prefixes=CHECK,RDNA3
// RUN: kf-run emit-mlir %s --device vulkan --target-cpu lavapipe --compile-to=binary -o %t
// RUN: grep -ao '"name":"[a-z_0-9]*"\|"subgroup_threads":[0-9]*' %t | FileCheck %s --check-prefixes=CHECK,PLAIN

// CHECK:      "name":"rms_norm{{.*}}"
// CHECK-NEXT: "subgroup_threads":0
// CHECK:      "name":"matmul_0"
// H200-NEXT:  "subgroup_threads":32
// RDNA3-NEXT: "subgroup_threads":64
// PLAIN-NEXT: "subgroup_threads":0
func.func @f(%x: tensor<?x256xf32>, %g: tensor<256xf32>) -> tensor<?x512xf32> {
  %w = kf.weight ["w"] : tensor<512x256xf16>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x256xf32>, tensor<256xf32>
  %1 = kf.matmul %0, %w : tensor<?x256xf32>, tensor<512x256xf16>
  return %1 : tensor<?x512xf32>
}
