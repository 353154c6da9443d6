// RUN: not kf-opt %s --kf-spirv-select-schedules=max-threads=0 2>&1 | FileCheck %s
// CHECK: error: kf-spirv-select-schedules: max-threads must be positive and max-workgroup-memory not negative
module {}
