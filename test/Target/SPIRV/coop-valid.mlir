// REQUIRES: spirv-val-matrices
// RUN: split-file %s %t
// RUN: kf-opt %t/f16.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/f16.spv
// RUN: spirv-val --target-env vulkan1.3 %t/f16.spv
// RUN: kf-opt %t/bf16.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/bf16.spv
// RUN: spirv-val --target-env vulkan1.3 %t/bf16.spv
// RUN: kf-opt %t/f8.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/f8.spv
// RUN: spirv-val --target-env vulkan1.3 %t/f8.spv
// RUN: kf-opt %t/q4_0.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/q4_0.spv
// RUN: spirv-val --target-env vulkan1.3 %t/q4_0.spv
// RUN: kf-opt %t/q4_1.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/q4_1.spv
// RUN: spirv-val --target-env vulkan1.3 %t/q4_1.spv
// RUN: kf-opt %t/q5_0.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/q5_0.spv
// RUN: spirv-val --target-env vulkan1.3 %t/q5_0.spv
// RUN: kf-opt %t/q5_1.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/q5_1.spv
// RUN: spirv-val --target-env vulkan1.3 %t/q5_1.spv
// RUN: kf-opt %t/q8_0.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/q8_0.spv
// RUN: spirv-val --target-env vulkan1.3 %t/q8_0.spv
// RUN: kf-opt %t/q2_k.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/q2_k.spv
// RUN: spirv-val --target-env vulkan1.3 %t/q2_k.spv
// RUN: kf-opt %t/q3_k.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/q3_k.spv
// RUN: spirv-val --target-env vulkan1.3 %t/q3_k.spv
// RUN: kf-opt %t/q4_k.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/q4_k.spv
// RUN: spirv-val --target-env vulkan1.3 %t/q4_k.spv
// RUN: kf-opt %t/q5_k.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/q5_k.spv
// RUN: spirv-val --target-env vulkan1.3 %t/q5_k.spv
// RUN: kf-opt %t/q6_k.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/q6_k.spv
// RUN: spirv-val --target-env vulkan1.3 %t/q6_k.spv
// RUN: kf-opt %t/iq4_nl.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/iq4_nl.spv
// RUN: spirv-val --target-env vulkan1.3 %t/iq4_nl.spv
// RUN: kf-opt %t/rounded.mlir --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | sed -n "/^  spirv.module/,/^  }/p" | sed "s/attributes {kf.grid.*} {/{/" | mlir-translate --no-implicit-module --serialize-spirv -o %t/rounded.spv
// RUN: spirv-val --target-env vulkan1.3 %t/rounded.spv

// Modules for each type of weight.

//--- f16.mlir
module {
  kf.program @p(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["w"] : tensor<96x512xf16>
    %0 = kf.dispatch @k(%x, %y, %w, %r) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<96x512xf16>, tensor<?x96xf32>) -> tensor<?x96xf32>
    kf.yield %0 : tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %w: tensor<96x512xf16>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x512xf32>), %w wide : tensor<?x512xf16>, tensor<96x512xf16>
    %1 = arith.addf %r, %0 : tensor<?x96xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}
//--- bf16.mlir
module {
  kf.program @p(%x: tensor<?x512xbf16>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["w"] : tensor<96x512xbf16>
    %0 = kf.dispatch @k(%x, %w, %r) : (tensor<?x512xbf16>, tensor<96x512xbf16>, tensor<?x96xf32>) -> tensor<?x96xf32>
    kf.yield %0 : tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xbf16>, %w: tensor<96x512xbf16>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %0 = kf.matmul %x, %w wide : tensor<?x512xbf16>, tensor<96x512xbf16>
    %1 = arith.addf %r, %0 : tensor<?x96xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}
//--- f8.mlir
module {
  kf.program @p(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["w"] : tensor<96x512xf8E4M3FN>
    %0 = kf.dispatch @k(%x, %y, %w, %r) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<96x512xf8E4M3FN>, tensor<?x96xf32>) -> tensor<?x96xf32>
    kf.yield %0 : tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %w: tensor<96x512xf8E4M3FN>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x512xf32>), %w wide : tensor<?x512xf16>, tensor<96x512xf8E4M3FN>
    %1 = arith.addf %r, %0 : tensor<?x96xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}
//--- q4_0.mlir
module {
  kf.program @p(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["w"] : tensor<96x512x!kf.quant<q4_0>>
    %0 = kf.dispatch @k(%x, %y, %w, %r) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<96x512x!kf.quant<q4_0>>, tensor<?x96xf32>) -> tensor<?x96xf32>
    kf.yield %0 : tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %w: tensor<96x512x!kf.quant<q4_0>>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x512xf32>), %w wide : tensor<?x512xf16>, tensor<96x512x!kf.quant<q4_0>>
    %1 = arith.addf %r, %0 : tensor<?x96xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}
//--- q4_1.mlir
module {
  kf.program @p(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["w"] : tensor<96x512x!kf.quant<q4_1>>
    %0 = kf.dispatch @k(%x, %y, %w, %r) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<96x512x!kf.quant<q4_1>>, tensor<?x96xf32>) -> tensor<?x96xf32>
    kf.yield %0 : tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %w: tensor<96x512x!kf.quant<q4_1>>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x512xf32>), %w wide : tensor<?x512xf16>, tensor<96x512x!kf.quant<q4_1>>
    %1 = arith.addf %r, %0 : tensor<?x96xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}
//--- q5_0.mlir
module {
  kf.program @p(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["w"] : tensor<96x512x!kf.quant<q5_0>>
    %0 = kf.dispatch @k(%x, %y, %w, %r) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<96x512x!kf.quant<q5_0>>, tensor<?x96xf32>) -> tensor<?x96xf32>
    kf.yield %0 : tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %w: tensor<96x512x!kf.quant<q5_0>>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x512xf32>), %w wide : tensor<?x512xf16>, tensor<96x512x!kf.quant<q5_0>>
    %1 = arith.addf %r, %0 : tensor<?x96xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}
//--- q5_1.mlir
module {
  kf.program @p(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["w"] : tensor<96x512x!kf.quant<q5_1>>
    %0 = kf.dispatch @k(%x, %y, %w, %r) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<96x512x!kf.quant<q5_1>>, tensor<?x96xf32>) -> tensor<?x96xf32>
    kf.yield %0 : tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %w: tensor<96x512x!kf.quant<q5_1>>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x512xf32>), %w wide : tensor<?x512xf16>, tensor<96x512x!kf.quant<q5_1>>
    %1 = arith.addf %r, %0 : tensor<?x96xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}
//--- q8_0.mlir
module {
  kf.program @p(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["g", "u"] {stacked} : tensor<2x96x512x!kf.quant<q8_0>>
    %0 = kf.dispatch @k(%x, %y, %w, %r) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<2x96x512x!kf.quant<q8_0>>, tensor<?x96xf32>) -> tensor<?x96xf32>
    kf.yield %0 : tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %w: tensor<2x96x512x!kf.quant<q8_0>>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x512xf32>), %w glu(silu) wide : tensor<?x512xf16>, tensor<2x96x512x!kf.quant<q8_0>>
    %1 = arith.addf %r, %0 : tensor<?x96xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}
//--- q2_k.mlir
module {
  kf.program @p(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["w"] : tensor<96x512x!kf.quant<q2_k>>
    %0 = kf.dispatch @k(%x, %y, %w, %r) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<96x512x!kf.quant<q2_k>>, tensor<?x96xf32>) -> tensor<?x96xf32>
    kf.yield %0 : tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %w: tensor<96x512x!kf.quant<q2_k>>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x512xf32>), %w wide : tensor<?x512xf16>, tensor<96x512x!kf.quant<q2_k>>
    %1 = arith.addf %r, %0 : tensor<?x96xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}
//--- q3_k.mlir
module {
  kf.program @p(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["w"] : tensor<96x512x!kf.quant<q3_k>>
    %0 = kf.dispatch @k(%x, %y, %w, %r) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<96x512x!kf.quant<q3_k>>, tensor<?x96xf32>) -> tensor<?x96xf32>
    kf.yield %0 : tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %w: tensor<96x512x!kf.quant<q3_k>>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x512xf32>), %w wide : tensor<?x512xf16>, tensor<96x512x!kf.quant<q3_k>>
    %1 = arith.addf %r, %0 : tensor<?x96xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}
//--- q4_k.mlir
module {
  kf.program @p(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["g", "u"] {stacked} : tensor<2x96x512x!kf.quant<q4_k>>
    %0 = kf.dispatch @k(%x, %y, %w, %r) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<2x96x512x!kf.quant<q4_k>>, tensor<?x96xf32>) -> tensor<?x96xf32>
    kf.yield %0 : tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %w: tensor<2x96x512x!kf.quant<q4_k>>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x512xf32>), %w glu(silu) wide : tensor<?x512xf16>, tensor<2x96x512x!kf.quant<q4_k>>
    %1 = arith.addf %r, %0 : tensor<?x96xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}
//--- q5_k.mlir
module {
  kf.program @p(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["w"] : tensor<96x512x!kf.quant<q5_k>>
    %0 = kf.dispatch @k(%x, %y, %w, %r) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<96x512x!kf.quant<q5_k>>, tensor<?x96xf32>) -> tensor<?x96xf32>
    kf.yield %0 : tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %w: tensor<96x512x!kf.quant<q5_k>>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x512xf32>), %w wide : tensor<?x512xf16>, tensor<96x512x!kf.quant<q5_k>>
    %1 = arith.addf %r, %0 : tensor<?x96xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}
//--- q6_k.mlir
module {
  kf.program @p(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["w"] : tensor<96x512x!kf.quant<q6_k>>
    %0 = kf.dispatch @k(%x, %y, %w, %r) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<96x512x!kf.quant<q6_k>>, tensor<?x96xf32>) -> tensor<?x96xf32>
    kf.yield %0 : tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %w: tensor<96x512x!kf.quant<q6_k>>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x512xf32>), %w wide : tensor<?x512xf16>, tensor<96x512x!kf.quant<q6_k>>
    %1 = arith.addf %r, %0 : tensor<?x96xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}
//--- iq4_nl.mlir
module {
  kf.program @p(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["w"] : tensor<96x512x!kf.quant<iq4_nl>>
    %0 = kf.dispatch @k(%x, %y, %w, %r) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<96x512x!kf.quant<iq4_nl>>, tensor<?x96xf32>) -> tensor<?x96xf32>
    kf.yield %0 : tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %w: tensor<96x512x!kf.quant<iq4_nl>>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x512xf32>), %w wide : tensor<?x512xf16>, tensor<96x512x!kf.quant<iq4_nl>>
    %1 = arith.addf %r, %0 : tensor<?x96xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}
//--- rounded.mlir
module {
  kf.program @p(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>) -> (tensor<?x96xf16>, tensor<?x96xf32>) attributes {max_tokens = 64 : i64} {
    %w = kf.weight ["g", "u"] {stacked} : tensor<2x96x512xf16>
    %0:2 = kf.dispatch @k(%x, %y, %w) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<2x96x512xf16>) -> (tensor<?x96xf16>, tensor<?x96xf32>)
    kf.yield %0#0, %0#1 : tensor<?x96xf16>, tensor<?x96xf32>
  }
  kf.kernel @k(%x: tensor<?x512xf16>, %y: tensor<?x512xf32>, %w: tensor<2x96x512xf16>) -> (tensor<?x96xf16>, tensor<?x96xf32>) {
    %0 = kf.matmul %x outliers(%y : tensor<?x512xf32>), %w glu(silu) wide : tensor<?x512xf16>, tensor<2x96x512xf16>
    %rounded, %outliers = kf.round_half %0 : tensor<?x96xf32>
    kf.yield %rounded, %outliers : tensor<?x96xf16>, tensor<?x96xf32>
  }
}
