// RUN: kf-opt %s --kf-set-target=target=cpu:znver4 | FileCheck %s --check-prefix=CPU
// RUN: kf-opt %s --kf-set-target=target=cpu:cooperlake | FileCheck %s --check-prefix=SLOW-BF16
// RUN: kf-opt %s --kf-set-target="target=cpu:x86-64-v3 workers=3" | FileCheck %s --check-prefix=WORKERS
// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64 | FileCheck %s --check-prefix=SSE2
// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64-v4 | FileCheck %s --check-prefix=AVX512
// RUN: kf-opt %s --kf-set-target=target=cpu:knl | FileCheck %s --check-prefix=NO-BYTES
// RUN: kf-opt %s --kf-set-target=target=cpu:alderlake | FileCheck %s --check-prefix=AVX-VNNI
// RUN: kf-opt %s --kf-set-target=target=cpu:sapphirerapids | FileCheck %s --check-prefix=AMX
// RUN: kf-opt %s --kf-set-target=target=cpu:aarch64-linux-gnu/neoverse-n2 | FileCheck %s --check-prefix=I8MM
// RUN: kf-opt %s --kf-set-target=target=cpu:aarch64-linux-gnu/generic | FileCheck %s --check-prefix=NEON
// RUN: kf-opt %s --kf-set-target=target=vulkan | FileCheck %s --check-prefix=VULKAN
// RUN: kf-opt %s --kf-set-target='target="#kf.vulkan_target<threads = 512, memory = 32768>"' | FileCheck %s --check-prefix=WRITTEN
// RUN: kf-opt %s --kf-set-target=target=vulkan:lavapipe | FileCheck %s --check-prefix=LAVAPIPE
// RUN: kf-opt %s --kf-set-target=target=vulkan:rdna3 | FileCheck %s --check-prefix=RDNA3
// RUN: kf-opt %s --kf-set-target=target=vulkan:arc | FileCheck %s --check-prefix=ARC
// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 | FileCheck %s --check-prefix=H200
// RUN: kf-opt %s --kf-set-target=target=reference | FileCheck %s --check-prefix=REFERENCE

// CPU:       kf.target = #kf.cpu_target<cpu = "znver4", int8_dot = true, bf16_dot = true, prefetch = hardware>
// SLOW-BF16: kf.target = #kf.cpu_target<cpu = "cooperlake", int8_dot = true>
// WORKERS:   kf.target = #kf.cpu_target<cpu = "x86-64-v3", lanes = 8, int8_dot = true, byte_dot = pmaddubsw, workers = 3>
// SSE2:      kf.target = #kf.cpu_target<cpu = "x86-64", lanes = 4, int8_dot = true, byte_dot = pmaddwd>
// AVX512:    kf.target = #kf.cpu_target<cpu = "x86-64-v4", int8_dot = true, byte_dot = pmaddubsw>
// NO-BYTES:  kf.target = #kf.cpu_target<cpu = "knl">
// AVX-VNNI:  kf.target = #kf.cpu_target<cpu = "alderlake", lanes = 8, int8_dot = true>
// AMX:       kf.target = #kf.cpu_target<cpu = "sapphirerapids", int8_dot = true, amx = true>
// I8MM:      kf.target = #kf.cpu_target<cpu = "neoverse-n2", triple = "aarch64-linux-gnu", lanes = 4, registers = 32, int8_dot = true, byte_dot = usdot>
// NEON:      kf.target = #kf.cpu_target<cpu = "generic", triple = "aarch64-linux-gnu", lanes = 4, registers = 32>
// VULKAN:    kf.target = #kf.vulkan_target<threads = 256, memory = 16384>
// WRITTEN:   kf.target = #kf.vulkan_target<threads = 512, memory = 32768>
// LAVAPIPE:  subgroup = 8, arithmetic = true, shuffle = true, types = [i8, i16, i64], int8_dot = true>
// RDNA3:     subgroup = 64, arithmetic = true, shuffle = true, {{.*}} matrices = [f16, i8], multiprocessors = 96>
// ARC:       subgroup = 32, {{.*}} int8_dot = true, multiprocessors = 32>
// H200:      memory = 49152, subgroup = 32, {{.*}} matrices = [f16, bf16, i8], multiprocessors = 132>
// REFERENCE: kf.target = #kf.reference_target

// RUN: not kf-opt %s --kf-set-target 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not kf-opt %s --kf-set-target=target=tpu 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not kf-opt %s --kf-set-target=target=cpu:z80 2>&1 | FileCheck %s --check-prefix=NO-CPU
// RUN: not kf-opt %s --kf-set-target=target=cpu:aarch64-linux-gnu/z80 2>&1 | FileCheck %s --check-prefix=NO-ARM
// RUN: not kf-opt %s --kf-set-target=target=cpu:aarch64-linux-gnu/native 2>&1 | FileCheck %s --check-prefix=NO-NATIVE
// RUN: not kf-opt %s --kf-set-target=target=cpu:riscv64-linux-gnu/generic 2>&1 | FileCheck %s --check-prefix=NO-SYSTEM
// RUN: not kf-opt %s --kf-set-target=target=cpu:i386-linux-gnu/pentium4 2>&1 | FileCheck %s --check-prefix=NO-I386
// RUN: not kf-opt %s --kf-set-target=target=cpu:x86_64-linux-gnux32/x86-64-v3 2>&1 | FileCheck %s --check-prefix=NO-X32
// RUN: not kf-opt %s --kf-set-target=target=cpu:aarch64_be-linux-gnu/cortex-a76 2>&1 | FileCheck %s --check-prefix=NO-BIG-ENDIAN
// RUN: not kf-opt %s --kf-set-target=target=cpu:x86_64-pc-windows-msvc/x86-64-v3 2>&1 | FileCheck %s --check-prefix=NO-WINDOWS
// RUN: not kf-opt %s --kf-set-target=target=vulkan:sm_90a 2>&1 | FileCheck %s --check-prefix=NO-VULKAN
// RUN: not kf-opt %s --kf-set-target=target=reference:sm_90a 2>&1 | FileCheck %s --check-prefix=NO-REFERENCE
// RUN: not kf-opt %s --kf-set-target='target="#kf.layout<panel = 32>"' 2>&1 | FileCheck %s --check-prefix=ATTRIBUTE

// NONE:         error: kf-set-target: no target is named, as target=cpu would; there are cpu, cuda, reference, vulkan
// OTHER:        error: kf-set-target: there is no target 'tpu'; there are cpu, cuda, reference, vulkan
// NO-CPU:       error: kf-set-target: cpu target: LLVM knows no {{.*}} CPU 'z80'; 'native' is this machine's, and another system's stands behind its name, as in aarch64-linux-gnu/cortex-a76
// NO-ARM:       error: kf-set-target: cpu target: LLVM knows no aarch64 CPU 'z80'; 'native'
// NO-NATIVE:    error: kf-set-target: cpu target: 'native' is this machine's CPU, not one of 'aarch64-linux-gnu'; name one, as in aarch64-linux-gnu/cortex-a76
// NO-SYSTEM:    error: kf-set-target: cpu target: there is no code for the system 'riscv64-linux-gnu'; there is for x86_64-linux-gnu and aarch64-linux-gnu
// NO-I386:      error: kf-set-target: cpu target: there is no code for the system 'i386-linux-gnu';
// NO-X32:       error: kf-set-target: cpu target: there is no code for the system 'x86_64-linux-gnux32';
// NO-BIG-ENDIAN: error: kf-set-target: cpu target: there is no code for the system 'aarch64_be-linux-gnu';
// NO-WINDOWS:   error: kf-set-target: cpu target: there is no code for the system 'x86_64-pc-windows-msvc';
// NO-VULKAN:    error: kf-set-target: vulkan target: there is no chip 'sm_90a'; known are lavapipe, rdna3, arc, h200; leave it out, or give kf-set-target what a device reports, #kf.vulkan_target<...>
// NO-REFERENCE: error: kf-set-target: reference target: there is no chip 'sm_90a'; leave it out
// ATTRIBUTE:    error: kf-set-target: target '#kf.layout<panel = 32>': is no target

module {}
