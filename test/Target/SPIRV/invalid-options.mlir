// RUN: not kf-opt %s --kf-set-target=target="#kf.vulkan_target<threads=0,memory=16384>" 2>&1 | FileCheck %s
// CHECK: error: kf-set-target: target '#kf.vulkan_target<threads=0,memory=16384>': vulkan_target: threads must be in [1, 65536], found 0
module {}
