// DEFINE: %{device} = AMD EPYC; 2 threads
// DEFINE: %{opt} = kf-opt %s "--kf-set-target=target=cpu:x86-64-v4 workers=2"
// DEFINE: %{remarks} = --remark-policy=all --remarks-filter=kf-select-rows
// DEFINE: %{add} = env DEVICE="%{device}" python3 %S/Inputs/tuning_db.py

// Of what a target calls as exact, a measurement says what is faster. Keys are
// those that the pass says it looks for; without a choice it looks for none.
// RUN: rm -rf %t && mkdir %t
// RUN: echo '{"version": 2, "entries": []}' > %t/empty.json
// RUN: %{opt} --kf-select-rows=db=%t/empty.json %{remarks} >%t/chosen 2>%t/keys
// RUN: FileCheck %s --check-prefix=CHOSEN < %t/chosen
// RUN: FileCheck %s --check-prefix=KEYS < %t/keys
// KEYS-DAG: TuningKey | Category:kf-select-rows | Function=short_row | {{.*}}Rows=1,
// KEYS-DAG: TuningKey | Category:kf-select-rows | Function=wide_row |
// KEYS-NOT: Function=dense | Compiler

// RUN: %{add} %t/db.json %t/keys "short_row=#kf.rows<i8>" "wide_row=#kf.rows<f32>"
// RUN: %{opt} "--kf-select-rows=db=%t/db.json device='%{device}'" %{remarks} \
// RUN:   2>&1 >%t/out | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s --input-file=%t/out
// REMARK-DAG: Function=short_row | Remark=measured, Rows=1, Type=i8
// REMARK-DAG: Function=wide_row | Remark=measured, Rows=1, Type=f32
// REMARK-DAG: Function=dense | Remark=chosen, Rows=1, Type=f32

// Another device's is not used, nor what this target does not do with such
// rows, or what is no text of rows, which is said once for each key.
// RUN: %{opt} "--kf-select-rows=db=%t/db.json device='AMD EPYC; 1 thread'" | diff - %t/chosen
// RUN: %{add} %t/wrong.json %t/keys "short_row=#kf.rows<bf16>" "wide_row=#kf.vector<rows>"
// RUN: %{opt} "--kf-select-rows=db=%t/wrong.json device='%{device}'" 2>%t/warnings | diff - %t/chosen
// RUN: FileCheck %s --check-prefix=WRONG --implicit-check-not=warning: < %t/warnings
// WRONG: warning: kf-select-rows: {{.*}}wrong.json: '#kf.rows<bf16>' is not used: the target reads these rows in 'f32' or 'i8'
// WRONG: warning: kf-select-rows: {{.*}}wrong.json: '#kf.vector<rows>' is not used: the target reads these rows in 'i8' or 'f32'
// RUN: not %{opt} --kf-select-rows=db=%t/none.json 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: kf-select-rows: {{.*}}none.json

// CHOSEN-LABEL: func.func @short_row(
// CHOSEN:         rows<f32>
// CHECK-LABEL: func.func @short_row(
// CHECK:         rows<i8>
func.func @short_row(%x: tensor<1x2048xf32>) -> tensor<1x512xf32> {
  %w = kf.weight ["w"] : tensor<512x2048x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<1x2048xf32>, tensor<512x2048x!kf.quant<q4_0>>
  %v = kf.weight ["v"] : tensor<512x2048x!kf.quant<q4_0>>
  %1 = kf.matmul %x, %v : tensor<1x2048xf32>, tensor<512x2048x!kf.quant<q4_0>>
  %2 = arith.addf %0, %1 : tensor<1x512xf32>
  return %2 : tensor<1x512xf32>
}

// CHOSEN-LABEL: func.func @wide_row(
// CHOSEN:         rows<i8>
// CHECK-LABEL: func.func @wide_row(
// CHECK:         rows<f32>
func.func @wide_row(%x: tensor<1x4096xf32>) -> tensor<1x512xf32> {
  %w = kf.weight ["w"] : tensor<512x4096x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<1x4096xf32>, tensor<512x4096x!kf.quant<q4_0>>
  return %0 : tensor<1x512xf32>
}

// CHOSEN-LABEL: func.func @dense(
// CHOSEN:         rows<f32>
func.func @dense(%x: tensor<1x2048xf32>) -> tensor<1x512xf32> {
  %w = kf.weight ["w"] : tensor<512x2048xbf16>
  %0 = kf.matmul %x, %w : tensor<1x2048xf32>, tensor<512x2048xbf16>
  return %0 : tensor<1x512xf32>
}
