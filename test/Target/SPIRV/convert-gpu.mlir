// RUN: kf-opt %s --kf-spirv-convert-gpu | FileCheck %s

// Arguments are storage buffers, attributions are workgroup memory, and the
// result of a loop is defined even if the loop has no iteration.

// CHECK-LABEL: spirv.module @reduce Logical GLSL450
// CHECK:         spirv.GlobalVariable @[[MEMORY:.*]] : !spirv.ptr<!spirv.struct<(!spirv.array<64 x f32>)>, Workgroup>
// CHECK:         spirv.func @reduce
// CHECK-SAME:      !spirv.ptr<!spirv.struct<(!spirv.rtarray<f32, stride=4> [0])>, StorageBuffer>
// CHECK-SAME:      #spirv.interface_var_abi<(0, 0)>
// CHECK-SAME:      #spirv.entry_point_abi<workgroup_size = [64, 1, 1]>
// CHECK:           %[[RESULT:.*]] = spirv.Variable : !spirv.ptr<f32, Function>
// CHECK:           spirv.mlir.loop
// CHECK:             spirv.SLessThan
// CHECK:             spirv.Store "Function" %[[RESULT]]
// CHECK:             spirv.BranchConditional
// CHECK:           spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|WorkgroupMemory>
gpu.module @reduce {
  gpu.func @reduce(%x: memref<?xf32>, %n: index)
      workgroup(%memory : memref<64xf32, #gpu.address_space<workgroup>>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %zero = arith.constant 0.0 : f32
    %step = arith.constant 64 : index
    %thread = gpu.thread_id x
    %sum = scf.for %i = %thread to %n step %step iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%i] : memref<?xf32>
      %e = math.exp %v : f32
      %t = arith.addf %s, %e : f32
      scf.yield %t : f32
    }
    memref.store %sum, %memory[%thread] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %y = memref.load %memory[%thread] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %y, %x[%thread] : memref<?xf32>
    gpu.return
  }
}

// Atomic sums order nothing else: only barriers do, where all threads meet.
// CHECK-LABEL: spirv.module @count
// CHECK:         spirv.AtomicIAdd <Workgroup> <None>
// CHECK:         spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|WorkgroupMemory>
gpu.module @count {
  gpu.func @count(%x: memref<?xi32>)
      workgroup(%memory : memref<8xi32, #gpu.address_space<workgroup>>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %thread = gpu.thread_id x
    %v = memref.load %x[%thread] : memref<?xi32>
    %before = memref.atomic_rmw addi %v, %memory[%c0]
        : (i32, memref<8xi32, #gpu.address_space<workgroup>>) -> i32
    gpu.barrier
    memref.store %before, %x[%thread] : memref<?xi32>
    gpu.return
  }
}

// SPIR-V has no erf.
// CHECK-LABEL: spirv.module @erf
// CHECK-NOT:     math.erf
// CHECK:         spirv.GL.Fma
gpu.module @erf {
  gpu.func @erf(%x: memref<?xf32>) kernel
      attributes {known_block_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<?xf32>
    %e = math.erf %v : f32
    memref.store %e, %x[%c0] : memref<?xf32>
    gpu.return
  }
}

// GLSL's tanh cancels near 0.
// CHECK-LABEL: spirv.module @tanh
// CHECK-NOT:     spirv.GL.Tanh
// CHECK:         spirv.GL.Fma
gpu.module @tanh {
  gpu.func @tanh(%x: memref<?xf32>) kernel
      attributes {known_block_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<?xf32>
    %t = math.tanh %v : f32
    memref.store %t, %x[%c0] : memref<?xf32>
    gpu.return
  }
}

// A table is a variable of the function, once. Arithmetic rounds as it is
// written, and a division to the nearest.
// CHECK-LABEL: spirv.module @table
// CHECK:         spirv.func @table
// CHECK-DAG:       %[[DATA:.*]] = spirv.Constant dense<[1.000000e+00, 5.000000e-01]> : tensor<2xf32> : !spirv.array<2 x f32>
// CHECK-DAG:       %[[TABLE:.*]] = spirv.Variable init(%[[DATA]]) : !spirv.ptr<!spirv.array<2 x f32>, Function>
// CHECK-NOT:       spirv.Variable
// CHECK:           spirv.AccessChain %[[TABLE]]
// CHECK:           spirv.AccessChain %[[TABLE]]
// CHECK:           %[[X:.*]] = spirv.Select %[[NORMAL:.*]], %{{.*}}, %[[A:.*]] : i1, f32
// CHECK:           %[[Y:.*]] = spirv.Select %[[NORMAL]], %{{.*}}, %[[B:.*]] : i1, f32
// CHECK:           %[[Q:.*]] = spirv.FDiv %[[X]], %[[Y]] {no_contraction}
// CHECK:           %[[P:.*]] = spirv.FMul %[[Q]], %[[Y]] {no_contraction}
// CHECK:           %[[REST:.*]] = spirv.FSub %{{.*}}, %{{.*}} {no_contraction}
// CHECK:           %[[STEP:.*]] = spirv.FDiv %{{.*}}, %[[Y]] {no_contraction}
// CHECK:           %[[SUM:.*]] = spirv.FAdd %[[Q]], %[[STEP]] {no_contraction}
// CHECK:           %[[NEAREST:.*]] = spirv.Select %[[NORMAL]], %[[SUM]], %[[Q]]
// CHECK:           %[[PART:.*]] = spirv.FMul %[[NEAREST]], %{{.*}} {no_contraction}
// CHECK:           %[[WHOLE:.*]] = spirv.FMul %[[PART]], %{{.*}} {no_contraction}
// CHECK:           spirv.Store "StorageBuffer" %{{.*}}, %[[WHOLE]]
gpu.module @table {
  memref.global "private" constant @numbers : memref<2xf32> = dense<[1.0, 0.5]>
  gpu.func @table(%x: memref<?xf32>) kernel
      attributes {known_block_size = array<i32: 2, 1, 1>} {
    %thread = gpu.thread_id x
    %zero = arith.constant 0 : index
    %t = memref.get_global @numbers : memref<2xf32>
    %a = memref.load %t[%thread] : memref<2xf32>
    %u = memref.get_global @numbers : memref<2xf32>
    %b = memref.load %u[%zero] : memref<2xf32>
    %q = arith.divf %a, %b : f32
    memref.store %q, %x[%thread] : memref<?xf32>
    gpu.return
  }
}

// What was widened to 64 bits is compared as what it was before that.
// CHECK-LABEL: spirv.module @comparison
// CHECK:         %[[WORD:.*]] = spirv.Load "StorageBuffer" %{{.*}} : i32
// CHECK:         %[[LIMIT:.*]] = spirv.Constant 7 : i32
// CHECK:         spirv.SLessThan %[[WORD]], %[[LIMIT]] : i32
// CHECK:         spirv.SGreaterThanEqual %{{.*}}, %{{.*}} : i32
// CHECK-NOT:     spirv.SGreaterThan{{ }}
// CHECK:         spirv.ULessThan %{{.*}} : i64
// CHECK:         %[[NEGATIVE:.*]] = spirv.SLessThan %[[WORD]], %{{.*}} : i32
// CHECK:         spirv.Select %[[NEGATIVE]], %{{.*}} : i1, i64
gpu.module @comparison attributes {spirv.target_env = #spirv.target_env<
    #spirv.vce<v1.3, [Shader, Int64], [SPV_KHR_storage_buffer_storage_class]>,
    #spirv.resource_limits<>>} {
  gpu.func @comparison(%x: memref<?xi32>, %y: memref<?xi32>) kernel
      attributes {known_block_size = array<i32: 1, 1, 1>} {
    %zero = arith.constant 0 : i32
    %seven = arith.constant 7 : i64
    %large = arith.constant 5000000000 : i64
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<?xi32>
    %wide = arith.extsi %v : i32 to i64
    %less = arith.cmpi slt, %wide, %seven : i64
    %0 = arith.select %less, %v, %zero : i32
    memref.store %0, %y[%i] : memref<?xi32>
    %number = arith.index_cast %i : index to i64
    %more = arith.cmpi sge, %number, %seven : i64
    %1 = arith.select %more, %v, %zero : i32
    memref.store %1, %y[%i] : memref<?xi32>
    %never = arith.cmpi sgt, %wide, %large : i64
    %2 = arith.select %never, %v, %zero : i32
    memref.store %2, %y[%i] : memref<?xi32>
    %unsigned = arith.cmpi ult, %wide, %seven : i64
    %3 = arith.select %unsigned, %v, %zero : i32
    memref.store %3, %y[%i] : memref<?xi32>
    %magnitude = math.absi %wide : i64
    %4 = arith.trunci %magnitude : i64 to i32
    memref.store %4, %y[%i] : memref<?xi32>
    gpu.return
  }
}
