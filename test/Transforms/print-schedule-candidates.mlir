// RUN: kf-opt %s --kf-set-target="target=cpu:x86-64-v4 workers=1" --kf-set-layouts --kf-print-schedule-candidates \
// RUN:   | FileCheck %s
// RUN: kf-opt %s --kf-set-target="target=cpu:x86-64-v4 workers=1" --kf-set-layouts \
// RUN:     --kf-print-schedule-candidates=most=2 -o /dev/null | FileCheck %s --check-prefix=TWO
// RUN: kf-opt %s --kf-set-target="target=cpu:x86-64-v4 workers=1" --kf-set-layouts \
// RUN:     --kf-print-schedule-candidates="read=1e7 f32=1e11 i8=4e11 threads=1 most=1" -o /dev/null | FileCheck %s --check-prefix=SLOW
// RUN: kf-opt %s --kf-set-target=target=reference --kf-print-schedule-candidates -o /dev/null | count 0
// RUN: not kf-opt %s --kf-print-schedule-candidates -o /dev/null 2>&1 | FileCheck %s --check-prefix=NO-TARGET

// NO-TARGET: error: the module does not say what it is compiled for

// What should be the fastest comes first, and the default is marked.
// CHECK-LABEL: kernel @decode, up to 1 rows: {{[0-9]+}} candidates
// CHECK-NEXT:    {{[0-9.]+}}e-0{{[0-9]}} s #kf.vector<workgroup = [1, {{[0-9]+}}], tile = [1, 32], lanes = 16
// CHECK:         s #kf.vector<{{.*}}> (default)
// CHECK-LABEL: kernel @rows, up to 512 rows: {{[0-9]+}} candidates
// CHECK:         s #kf.vector<workgroup = [32], lanes = 16> (default)

// The module stays as it is.
// CHECK:         kf.kernel @decode(
// CHECK-NOT:     schedule
// CHECK:         kf.matmul

// The default is printed wherever it stands.
// TWO-LABEL: kernel @decode
// TWO-COUNT-2: s #kf.vector<
// TWO:         kernel @rows
// TWO:           (default)
// TWO-NOT:   kf.kernel

// The time to read 256 x 768 bf16 at 10 MB/s, and nothing else, matters.
// SLOW-LABEL: kernel @decode
// SLOW-NEXT:    {{3\.9|4\.0}}{{[0-9]+}}e-02 s
kf.kernel @decode(%x: tensor<1x256xf32>, %w: tensor<768x256xbf16>) -> tensor<1x768xf32> {
  %0 = kf.matmul %x, %w : tensor<1x256xf32>, tensor<768x256xbf16>
  kf.yield %0 : tensor<1x768xf32>
}
kf.program @one(%x: tensor<1x256xf32>) -> tensor<1x768xf32>
    attributes {max_tokens = 1 : i64} {
  %w = kf.weight ["w"] : tensor<768x256xbf16>
  %0 = kf.dispatch @decode(%x, %w) : (tensor<1x256xf32>, tensor<768x256xbf16>) -> tensor<1x768xf32>
  kf.yield %0 : tensor<1x768xf32>
}

kf.kernel @rows(%x: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %0 = kf.softmax %x : tensor<?x256xf32>
  kf.yield %0 : tensor<?x256xf32>
}
