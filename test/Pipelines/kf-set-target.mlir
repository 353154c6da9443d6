// RUN: kf-opt %s --kf-set-target=target=cpu:znver4 | FileCheck %s --check-prefix=CPU
// RUN: kf-opt %s --kf-set-target="target=cpu:x86-64-v3 workers=3" | FileCheck %s --check-prefix=WORKERS
// RUN: kf-opt %s --kf-set-target=target=vulkan | FileCheck %s --check-prefix=VULKAN
// RUN: kf-opt %s --kf-set-target='target="#kf.vulkan_target<threads = 512, memory = 32768>"' | FileCheck %s --check-prefix=WRITTEN
// RUN: kf-opt %s --kf-set-target=target=reference | FileCheck %s --check-prefix=REFERENCE

// CPU:       kf.target = #kf.cpu_target<cpu = "znver4", int8_dot = true>
// WORKERS:   kf.target = #kf.cpu_target<cpu = "x86-64-v3", lanes = 8, workers = 3>
// VULKAN:    kf.target = #kf.vulkan_target<threads = 256, memory = 16384>
// WRITTEN:   kf.target = #kf.vulkan_target<threads = 512, memory = 32768>
// REFERENCE: kf.target = #kf.reference_target

// RUN: not kf-opt %s --kf-set-target 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not kf-opt %s --kf-set-target=target=tpu 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not kf-opt %s --kf-set-target=target=cpu:z80 2>&1 | FileCheck %s --check-prefix=NO-CPU
// RUN: not kf-opt %s --kf-set-target=target=vulkan:sm_90a 2>&1 | FileCheck %s --check-prefix=NO-VULKAN
// RUN: not kf-opt %s --kf-set-target=target=reference:sm_90a 2>&1 | FileCheck %s --check-prefix=NO-REFERENCE
// RUN: not kf-opt %s --kf-set-target='target="#kf.layout<panel = 32>"' 2>&1 | FileCheck %s --check-prefix=ATTRIBUTE

// NONE:         error: kf-set-target: there is no target ''; there are cpu, cuda, reference, vulkan
// OTHER:        error: kf-set-target: there is no target 'tpu'; there are cpu, cuda, reference, vulkan
// NO-CPU:       error: kf-set-target: cpu target: LLVM knows no {{.*}} CPU 'z80'; 'native' is this machine's
// NO-VULKAN:    error: kf-set-target: vulkan target: there is no chip 'sm_90a'; leave it out, or give kf-set-target what a device reports, #kf.vulkan_target<...>
// NO-REFERENCE: error: kf-set-target: reference target: there is no chip 'sm_90a'; leave it out
// ATTRIBUTE:    error: kf-set-target: target '#kf.layout<panel = 32>': is no target

module {}
