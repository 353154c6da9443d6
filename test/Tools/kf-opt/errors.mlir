// Errors are a line, and show that of the source: no kernel and no module is
// printed unless it is asked for.
// RUN: not kf-opt %s --kf-schedule 2>&1 | FileCheck %s --check-prefix=TARGET --implicit-check-not='kf.kernel'
// TARGET: errors.mlir:0:0: error: the module does not say what it is compiled for
// RUN: not kf-opt %s --kf-set-target=target=cpu:x86-64-v3 --kf-schedule 2>&1 \
// RUN:   | FileCheck %s --check-prefix=LANES --implicit-check-not='kf.matmul'
// LANES: errors.mlir:[[#@LINE + 8]]:1: error: schedule cannot run on this CPU: lanes = 16 exceeds the register's 8
// LANES-NEXT: kf.kernel @product
// LANES-NEXT: {{^}}^{{$}}
// LANES-NOT: {{.}}
// RUN: not kf-opt %s --kf-set-target=target=cpu:x86-64-v3 --kf-schedule --mlir-print-op-on-diagnostic 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ASKED
// ASKED: note: see current operation:
// ASKED-NEXT: "kf.kernel"
kf.kernel @product(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>)
    -> tensor<?x96xf32> attributes {schedule = #kf.vector<workgroup = [28, 96], tile = [14, 32], lanes = 16, unroll = 4>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32>
  kf.yield %0 : tensor<?x96xf32>
}
kf.program @f(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>)
    -> tensor<?x96xf32> attributes {max_tokens = 512 : i64} {
  %0 = kf.dispatch @product(%x, %w)
      : (tensor<?x64xf32>, tensor<96x64xf32>) -> tensor<?x96xf32>
  kf.yield %0 : tensor<?x96xf32>
}
