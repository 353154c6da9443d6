// RUN: not kf-opt %s --kf-set-target=target=cpu --kf-compile 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not kf-opt %s --kf-set-target=target=cuda:sm_80 --kf-compile 2>&1 | FileCheck %s --check-prefixes=GPU,CUDA
// RUN: not kf-opt %s --kf-set-target=target=vulkan --kf-compile 2>&1 | FileCheck %s --check-prefixes=GPU,VULKAN
// RUN: kf-opt %s --kf-set-target=target=reference --kf-compile -o /dev/null

// Rows that somebody asks for, and a target has no code for: an error where the
// product is, with those that there are.

func.func @half(%x: tensor<3x64xf32>, %w: tensor<96x64xf16>) -> tensor<3x96xf32> {
  // CPU: :[[#@LINE+1]]:8: error: no CPU kernel for 'kf.round_half' yet; products read rows<f32>, rows<bf16> or, where weights have blocks, rows<i8> here; --device=reference has rows<f16>
  %0 = kf.matmul %x, %w rows<f16> : tensor<3x64xf32>, tensor<96x64xf16>
  return %0 : tensor<3x96xf32>
}

func.func @codes(%x: tensor<3x64xf32>, %e: tensor<3x2xi32>) -> tensor<3x2x96xf32> {
  %w = kf.weight ["w"] : tensor<1x4x96x64x!kf.quant<q4_0>>
  // CUDA:   :[[#@LINE+3]]:8: error: no CUDA kernel for
  // VULKAN: :[[#@LINE+2]]:8: error: no Vulkan kernel for
  // GPU-SAME: 'kf.expert_matmul' of codes of rows; products of experts read rows<f32> here
  %0 = kf.expert_matmul %x experts(%e), %w rows<i8> : tensor<3x64xf32>, tensor<3x2xi32>, tensor<1x4x96x64x!kf.quant<q4_0>>
  return %0 : tensor<3x2x96xf32>
}
