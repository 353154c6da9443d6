// RUN: kf-run emit-mlir %s --device cuda --target-cpu sm_86 --compile-to=binary -o %t
// RUN: %ptx print %t | FileCheck %s
// RUN: not kf-run emit-mlir %s --device cuda --target-cpu sm_88 --compile-to=binary -o %t 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// More shared memory than code may ask for is its launch's.

// CHECK:     kernel @product threads [32, 8, 1] shared 66560 of its launch
// CHECK-NOT: .shared .align 4
// CHECK:     .extern .shared .align 1024 .b8 kf_shared[];
// CHECK:     mov.b64 %{{.*}}, kf_shared;
// CHECK:     st.shared.b32
// UNKNOWN:   error: {{.*}}it needs 66560 bytes of workgroup memory, the device has 49152
kf.kernel @product(%x: tensor<?x64xf32>, %w: tensor<40x64xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.simt<workgroup = [128, 128], threads = [32, 8], tile = [16, 4], reduction = 64>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<40x64xf32>
  kf.yield %0 : tensor<?x40xf32>
}
kf.program @f(%x: tensor<?x64xf32>) -> tensor<?x40xf32> attributes {max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x64xf32>
  %0 = kf.dispatch @product(%x, %w) : (tensor<?x64xf32>, tensor<40x64xf32>) -> tensor<?x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}
