// RUN: kf-opt %s --kf-set-target=target="#kf.vulkan_target<threads=256,memory=16384,denorm_preserve=true>" --kf-compile | FileCheck %s --check-prefixes=CHECK,KEEP
// RUN: kf-opt %s --kf-set-target=target="#kf.vulkan_target<threads=256,memory=16384>" --kf-compile | FileCheck %s --check-prefixes=CHECK,LEAVE

// The mode stands at each entry point where the device has it, and nowhere
// else.
// CHECK-LABEL: spirv.module @exp_0
// KEEP-SAME:     [Shader, {{.*}}DenormPreserve{{.*}}], [{{.*}}SPV_KHR_float_controls
// LEAVE-NOT:     DenormPreserve
// KEEP:          spirv.ExecutionMode @exp_0 "DenormPreserve", 32
// CHECK-LABEL: spirv.module @softmax_0
// KEEP:          spirv.ExecutionMode @softmax_0 "DenormPreserve", 32
// LEAVE-NOT:     DenormPreserve
func.func @f(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %0 = math.exp %x : tensor<?x64xf32>
  %1 = kf.softmax %x : tensor<?x64xf32>
  return %0, %1 : tensor<?x64xf32>, tensor<?x64xf32>
}
