// DEFINE: %{opt} = kf-opt %s --kf-set-target=target=cpu:x86-64-v4
// DEFINE: %{add} = python3 %S/Inputs/tuning_db.py
// DEFINE: %{schedule} = #kf.vector<workgroup = [7, 64], tile = [7, 32], lanes = 16>

// RUN: rm -rf %t && mkdir %t
// RUN: echo '{"version": 2, "entries": []}' > %t/empty.json
// RUN: %{opt} "--kf-select-schedules=db=%t/empty.json device=d" \
// RUN:   --remark-policy=all --remarks-filter=kf-select-schedules >%t/chosen 2>%t/keys
// RUN: FileCheck %s --check-prefix=EMPTY < %t/keys
// EMPTY: warning: kf-select-schedules: {{.*}}/empty.json has no measurements for this module; it is empty

// A schedule that the target cannot run, one of another target, and text that
// is none are warnings, and the target chooses.
// RUN: %{add} %t/lanes.json %t/keys "k=#kf.vector<workgroup = [7, 64], tile = [7, 32], lanes = 5>"
// RUN: %{opt} --kf-select-schedules=db=%t/lanes.json 2>&1 >%t/out \
// RUN:   | FileCheck %s --check-prefix=LANES
// RUN: diff %t/out %t/chosen
// LANES: select-schedules-db-errors.mlir:[[#@LINE+69]]:1: warning: kf-select-schedules: {{.*}}/lanes.json: the schedule of kernel @k, '#kf.vector<workgroup = [7, 64], tile = [7, 32], lanes = 5>', is not used: {{.*}}lanes
// RUN: %{add} %t/simt.json %t/keys "k=#kf.simt<workgroup = [32, 32], threads = [16, 16], tile = [2, 2], reduction = 16>"
// RUN: %{opt} --kf-select-schedules=db=%t/simt.json 2>&1 >%t/out \
// RUN:   | FileCheck %s --check-prefix=SIMT
// RUN: diff %t/out %t/chosen
// SIMT: warning: kf-select-schedules: {{.*}}/simt.json: the schedule of kernel @k, '#kf.simt<{{.*}}>', is not used: {{.+}}
// RUN: %{add} %t/text.json %t/keys "k=#kf.nonsense<5>"
// RUN: %{opt} --kf-select-schedules=db=%t/text.json 2>&1 >%t/out \
// RUN:   | FileCheck %s --check-prefix=TEXT
// RUN: diff %t/out %t/chosen
// TEXT: warning: kf-select-schedules: {{.*}}/text.json: the schedule of kernel @k, '#kf.nonsense<5>', is not used: unknown attribute `nonsense`
// RUN: %{add} %t/other.json %t/keys "k=#kf.size<rows>"
// RUN: %{opt} --kf-select-schedules=db=%t/other.json 2>&1 >%t/out \
// RUN:   | FileCheck %s --check-prefix=OTHER
// RUN: diff %t/out %t/chosen
// OTHER: is not used: it is no schedule
// One of an earlier compiler, which names no unit, is not taken for another.
// RUN: %{add} %t/before.json %t/keys "k=#kf.mma<workgroup = [64, 64], warps = [2, 2], reduction = 32, stages = 3>"
// RUN: %{opt} --kf-select-schedules=db=%t/before.json 2>&1 >%t/out \
// RUN:   | FileCheck %s --check-prefix=BEFORE
// RUN: diff %t/out %t/chosen
// BEFORE: '#kf.mma<{{.*}}>', is not used: {{.*}}unit
// Nor is one of threads that share sums, which did not say so.
// DEFINE: %{gpu} = kf-opt %s --kf-set-target=target=vulkan
// RUN: %{gpu} "--kf-select-schedules=db=%t/empty.json device=d" \
// RUN:   --remark-policy=all --remarks-filter=kf-select-schedules >%t/gpu.chosen 2>%t/gpu.keys
// RUN: %{add} %t/sums.json %t/gpu.keys "k=#kf.simt<workgroup = [1, 8], threads = [32, 4], tile = [1, 2], unroll = 8>"
// RUN: %{gpu} --kf-select-schedules=db=%t/sums.json 2>&1 >%t/out \
// RUN:   | FileCheck %s --check-prefix=SUMS
// RUN: diff %t/out %t/gpu.chosen
// SUMS: '#kf.simt<{{.*}}>', is not used: {{.*}}tile [1, 2] of 4 x 32 threads does not make the workgroup's [1, 8]; sums = shared has these sizes
// Where those are neither's, it does not say so.
// RUN: %{add} %t/sizes.json %t/gpu.keys "k=#kf.simt<workgroup = [1, 9], threads = [32, 4], tile = [1, 2], unroll = 8>"
// RUN: %{gpu} --kf-select-schedules=db=%t/sizes.json 2>&1 >%t/out \
// RUN:   | FileCheck %s --check-prefix=SIZES
// SIZES: does not make the workgroup's [1, 9]{{$}}

// Which device is meant has to be clear, and a file has to be one.
// RUN: %{add} %t/two.json %t/keys "k=%{schedule}"
// RUN: env DEVICE=e %{add} %t/two.json %t/keys "k=%{schedule}"
// RUN: not %{opt} --kf-select-schedules=db=%t/two.json 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TWO
// TWO: error: kf-select-schedules: {{.*}}/two.json has measurements of several devices; say with device= whether 'd' or 'e' is meant
// TWO-NOT: see current operation
// RUN: not %{opt} --kf-select-schedules=db=%t/none.json 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NONE
// NONE: error: kf-select-schedules: cannot open '{{.*}}/none.json': No such file or directory
// NONE-NOT: see current operation
// RUN: echo '{"version": 1, "entries": []}' > %t/old.json
// RUN: not %{opt} --kf-select-schedules=db=%t/old.json 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OLD
// OLD: error: kf-select-schedules: {{.*}}/old.json: version 1 is not known; this program reads version 2
// OLD-NOT: see current operation

// Measurements of which none can be used are a warning that says why.
// RUN: %{add} %t/d.json %t/keys "k=%{schedule}"
// RUN: %{opt} "--kf-select-schedules=db=%t/d.json device=bogus" 2>&1 >%t/out \
// RUN:   | FileCheck %s --check-prefix=DEVICE --implicit-check-not='see current'
// RUN: diff %t/out %t/chosen
// DEVICE: warning: kf-select-schedules: {{.*}}/d.json has no measurements for this module; it has some of device 'd', not 'bogus'{{$}}
// RUN: kf-opt %s "--kf-set-target=target=cpu:x86-64-v4 workers=3" \
// RUN:   --kf-select-schedules=db=%t/d.json 2>&1 >/dev/null \
// RUN:   | FileCheck %s --check-prefix=TARGET
// TARGET: has no measurements for this module; it has some for target '#kf.cpu_target<{{.*}}>', not '#kf.cpu_target<{{.*}}workers = 3{{.*}}>'{{$}}
// RUN: env COMPILER=kf-0 %{add} %t/compiler.json %t/keys "k=%{schedule}"
// RUN: %{opt} --kf-select-schedules=db=%t/compiler.json 2>&1 >/dev/null \
// RUN:   | FileCheck %s --check-prefix=COMPILER
// COMPILER: it has some of compiler 'kf-0', not 'kf-{{[1-9]|0[.]}}

kf.kernel @k(%x: tensor<?x256xf32>, %w: tensor<768x256xbf16>) -> tensor<?x768xf32> {
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<768x256xbf16>
  kf.yield %0 : tensor<?x768xf32>
}
