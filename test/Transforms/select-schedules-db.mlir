// DEFINE: %{device} = AMD EPYC; 2 threads
// DEFINE: %{opt} = kf-opt --kf-set-target=target=cpu:x86-64-v4
// DEFINE: %{remarks} = --remark-policy=all --remarks-filter=kf-select-schedules
// DEFINE: %{add} = env DEVICE="%{device}" python3 %S/Inputs/tuning_db.py

// Keys are what the pass says that it looks for, with as many rows as the
// program has.
// RUN: rm -rf %t && mkdir %t
// RUN: sed "s/max_tokens = 3/max_tokens = 100/" %s > %t/many.mlir
// RUN: echo '{"version": 2, "entries": []}' > %t/empty.json
// RUN: %{opt} %s --kf-select-schedules=db=%t/empty.json %{remarks} >%t/chosen 2>%t/few
// RUN: %{opt} %t/many.mlir --kf-select-schedules=db=%t/empty.json %{remarks} 2>%t/many >/dev/null
// RUN: FileCheck %s --check-prefix=CHOSEN < %t/chosen
// CHOSEN-LABEL: kf.kernel @k(
// CHOSEN-SAME:    schedule = #kf.vector<workgroup = [3,
// CHOSEN-NOT:     unroll = 2
// CHOSEN-LABEL: kf.kernel @given(

// What was measured for 3 rows is taken for 3 rows.
// RUN: %{add} %t/db.json %t/few \
// RUN:   "k=#kf.vector<workgroup = [3, 64], tile = [3, 32], lanes = 16, unroll = 2>"
// RUN: %{opt} %s "--kf-select-schedules=db=%t/db.json device='%{device}'" %{remarks} \
// RUN:   2>&1 >%t/out | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s --input-file=%t/out
// RUN: %{opt} %t/many.mlir "--kf-select-schedules=db=%t/db.json device='%{device}'" \
// RUN:   | FileCheck %s --check-prefix=MANY
// CHECK-LABEL: kf.kernel @k(
// CHECK-SAME:    workgroup = [3, 64], tile = [3, 32], lanes = 16, unroll = 2>
// CHECK-LABEL: kf.kernel @given(
// CHECK-SAME:    workgroup = [1, 32], tile = [1, 32]
// REMARK: Schedule | Category:kf-select-schedules | Function=k | Remark=measured, Rows=3,
// REMARK: Schedule | Category:kf-select-schedules | Function=given | Remark=given,
// MANY-LABEL: kf.kernel @k(
// MANY-NOT:     unroll = 2
// MANY-LABEL: kf.kernel @given(

// Without `device` it is the only one of the database. Both numbers of rows
// have an entry now. Phases keep what was measured.
// RUN: %{add} %t/db.json %t/many \
// RUN:   "k=#kf.vector<workgroup = [28, 64], tile = [7, 32], lanes = 16, unroll = 2>"
// RUN: %{opt} %s --kf-select-schedules=db=%t/db.json | FileCheck %s
// RUN: %{opt} %s --kf-select-schedules=db=%t/db.json --kf-schedule | FileCheck %s
// RUN: %{opt} %t/many.mlir --kf-select-schedules=db=%t/db.json \
// RUN:   | FileCheck %s --check-prefix=BOTH
// BOTH-LABEL: kf.kernel @k(
// BOTH-SAME:    workgroup = [28, 64], tile = [7, 32], lanes = 16, unroll = 2>

// What another device, another compiler or a target of its own measured is not
// used; nor is a kernel's whose text differs.
// RUN: %{opt} %s "--kf-select-schedules=db=%t/db.json device='AMD EPYC; 1 thread'" \
// RUN:   | diff - %t/chosen
// RUN: env COMPILER=kf-0 DEVICE="%{device}" python3 %S/Inputs/tuning_db.py \
// RUN:   %t/old.json %t/few "k=#kf.vector<workgroup = [3, 64], tile = [3, 32], lanes = 16, unroll = 2>"
// RUN: %{opt} %s "--kf-select-schedules=db=%t/old.json device='%{device}'" | diff - %t/chosen
// RUN: sed "s/schedules-[0-9]*/schedules-1/" %t/db.json > %t/texts.json
// RUN: not diff -q %t/db.json %t/texts.json
// RUN: %{opt} %s "--kf-select-schedules=db=%t/texts.json device='%{device}'" | diff - %t/chosen
// RUN: %{opt} %s --kf-select-schedules=db=%t/old.json | diff - %t/chosen
// RUN: kf-opt %s "--kf-set-target=target=cpu:x86-64-v4 workers=2" \
// RUN:   --kf-select-schedules=db=%t/db.json | FileCheck %s --check-prefix=OTHER
// RUN: sed "s/768/1536/g" %s | %{opt} --kf-select-schedules=db=%t/db.json \
// RUN:   | FileCheck %s --check-prefix=OTHER
// OTHER-LABEL: kf.kernel @k(
// OTHER-NOT: workgroup = [3, 64]
// OTHER-LABEL: kf.kernel @given(

// The name of a kernel does not count, nor where it stands in its file.
// RUN: sed -e '1d' -e "s/@k/@renamed/" %s | %{opt} --kf-select-schedules=db=%t/db.json \
// RUN:   | FileCheck %s --check-prefix=RENAMED
// RENAMED-LABEL: kf.kernel @renamed(
// RENAMED-SAME:    workgroup = [3, 64], tile = [3, 32], lanes = 16, unroll = 2>

kf.kernel @k(%x: tensor<?x256xf32>, %w: tensor<768x256xbf16>) -> tensor<?x768xf32> {
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<768x256xbf16>
  kf.yield %0 : tensor<?x768xf32>
}
// A schedule that is there stays.
kf.kernel @given(%x: tensor<?x256xf32>, %w: tensor<64x256xbf16>) -> tensor<?x64xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 32], tile = [1, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<64x256xbf16>
  kf.yield %0 : tensor<?x64xf32>
}
kf.program @step(%x: tensor<?x256xf32>) -> (tensor<?x768xf32>, tensor<?x64xf32>)
    attributes {max_tokens = 3 : i64} {
  %w = kf.weight ["w"] : tensor<768x256xbf16>
  %v = kf.weight ["v"] : tensor<64x256xbf16>
  %0 = kf.dispatch @k(%x, %w) : (tensor<?x256xf32>, tensor<768x256xbf16>) -> tensor<?x768xf32>
  %1 = kf.dispatch @given(%x, %v) : (tensor<?x256xf32>, tensor<64x256xbf16>) -> tensor<?x64xf32>
  kf.yield %0, %1 : tensor<?x768xf32>, tensor<?x64xf32>
}
