// RUN: kf-opt %s -verify-diagnostics -split-input-file

// Weights, layouts, caches, kernels, programs and dispatches.

func.func @f() {
  // expected-error @+1 {{C1: needs at least one name, and none may be empty}}
  %0 = kf.weight [] : tensor<4xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{C1: needs at least one name, and none may be empty}}
  %0 = kf.weight ["a", ""] : tensor<4xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{C2: the result must have a static shape, found 'tensor<?x4xf32>'}}
  %0 = kf.weight ["a"] : tensor<?x4xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{C3: stacked needs leading dimensions that make 2, and one behind them, found 'tensor<3x4xf32>'}}
  %0 = kf.weight ["a", "b"] {stacked} : tensor<3x4xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{C3: stacked needs leading dimensions that make 2, and one behind them, found 'tensor<2xf32>'}}
  %0 = kf.weight ["a", "b"] {stacked} : tensor<2xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{C4: transposed needs rank 2, found 'tensor<4xf32>'}}
  %0 = kf.weight ["a"] {transposed} : tensor<4xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{C4: transposed needs rank 3, found 'tensor<2x4xf32>'}}
  %0 = kf.weight ["a", "b"] {stacked, transposed} : tensor<2x4xf32>
  return
}

// -----

func.func @f(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{C1: source and result may differ in their encodings alone, found 'tensor<8x4xf32>' and 'tensor<4x8xf32, #kf.layout<panel = 4>>'}}
  %0 = kf.pack %x : tensor<8x4xf32> to tensor<4x8xf32, #kf.layout<panel = 4>>
  return
}

// -----

func.func @f(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{C1: source and result may differ in their encodings alone}}
  %0 = kf.pack %x : tensor<8x4xf32> to tensor<8x4xbf16, #kf.layout<panel = 4>>
  return
}

// -----

func.func @f(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{C2: the result needs a #kf.layout encoding and the source none}}
  %0 = kf.pack %x : tensor<8x4xf32> to tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{C2: the result needs a #kf.layout encoding and the source none}}
  %0 = kf.pack %x : tensor<8x4xf32> to tensor<8x4xf32, #kf.fragments>
  return
}

// -----

func.func @f(%x: tensor<8x4xf32, #kf.layout<panel = 4>>) {
  // expected-error @+1 {{C2: the result needs a #kf.layout encoding and the source none}}
  %0 = kf.pack %x : tensor<8x4xf32, #kf.layout<panel = 4>> to tensor<8x4xf32, #kf.layout<panel = 8>>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%c: !cache) {
  // expected-error @+1 {{C1: layer 2 is outside the cache's 2}}
  %0 = kf.cache_layer %c[2] : !cache to !layer
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%c: !cache) {
  // expected-error @+1 {{C2: the result must be '!kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>', found '!kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>'}}
  %0 = kf.cache_layer %c[0] : !cache to !cache
  return
}

// -----

// yield
kf.kernel @k(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{C1: types differ from the results of kf.kernel @k}}
  kf.yield %x : tensor<4xf32>
}

// -----

kf.program @p(%x: tensor<4xf32>) attributes {max_tokens = 1 : i64} {
  // expected-error @+1 {{C1: types differ from the results of kf.program @p}}
  kf.yield %x : tensor<4xf32>
}

// -----

func.func @f() {
  // expected-error @+1 {{expects parent op to be one of 'kf.kernel, kf.program'}}
  kf.yield
}

// -----

// kernel
// expected-error @+1 {{C1: argument 'f32' must be a cache or a tensor whose dimensions are static but for the first, and not 0}}
kf.kernel @k(%x: f32) {
  kf.yield
}

// -----

// expected-error @+1 {{C1: argument 'tensor<4x?xf32>' must be}}
kf.kernel @k(%x: tensor<4x?xf32>) {
  kf.yield
}

// -----

// expected-error @+1 {{C1: argument 'tensor<4x?xf32>' must be}}
kf.kernel @k(%x: tensor<4x?xf32>) {
  kf.yield
}

// -----

// expected-error @+1 {{C1: argument 'tensor<?x0xf32>' must be}}
kf.kernel @k(%x: tensor<?x0xf32>) {
  kf.yield
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f32>
// expected-error @+1 {{C1: result '!kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f32>' must be a tensor whose dimensions}}
kf.kernel @k(%c: !layer) -> !layer {
  kf.yield %c : !layer
}

// -----

// expected-error @+1 {{C3: 'tensor<?x4xf32, #kf.layout<panel = 4>>' has an encoding that is neither the #kf.layout or #kf.fragments of a static tensor nor the #kf.size of a dynamic one}}
kf.kernel @k(%x: tensor<?x4xf32, #kf.layout<panel = 4>>) {
  kf.yield
}

// -----

// expected-error @+1 {{C3: 'tensor<8x4xf32, "rows">' has an encoding}}
kf.kernel @k(%x: tensor<8x4xf32, "rows">) {
  kf.yield
}

// -----

// Not a weight, and not a matmul.
!packed = tensor<8x8xf32, #kf.layout<panel = 8>>
kf.kernel @k(%x: !packed, %w: !packed) -> tensor<8x8xf32> {
  // expected-error @+1 {{'kf.matmul' op kf.kernel C4: has no meaning for the layout of 'tensor<8x8xf32, #kf.layout<panel = 8>>'; kf.pack makes packed tensors, and products read them as their weight}}
  %0 = "kf.matmul"(%x, %w) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0>}> : (!packed, !packed) -> tensor<8x8xf32>
  kf.yield %0 : tensor<8x8xf32>
}

// -----

!packed = tensor<8x8xf32, #kf.layout<panel = 8>>
kf.kernel @k(%x: !packed) -> !packed {
  // expected-error @+1 {{'arith.addf' op kf.kernel C4: has no meaning for the layout}}
  %0 = arith.addf %x, %x : !packed
  kf.yield %0 : !packed
}

// -----

!packed = tensor<8x8xf32, #kf.layout<panel = 8>>
kf.kernel @k(%x: tensor<8x8xf32>) -> !packed {
  // expected-error @+1 {{'arith.constant' op kf.kernel C4: has no meaning for the layout}}
  %0 = arith.constant dense<1.0> : !packed
  kf.yield %0 : !packed
}

// -----

// expected-error @+1 {{C2: needs a body that ends in kf.yield}}
kf.kernel private @k(tensor<4xf32>)

// -----

// expected-error @+1 {{C2: needs a body that ends in kf.yield}}
kf.kernel @k(%x: tensor<4xf32>) {
  %0 = kf.softmax %x : tensor<4xf32>
}

// -----

// program
kf.program @p(%x: tensor<4xf32>) attributes {max_tokens = 1 : i64} {
  // expected-error @+1 {{C1: a kf.program holds kf.weight, kf.cache_layer, kf.dispatch, collectives and kf.yield only}}
  %0 = kf.softmax %x : tensor<4xf32>
  kf.yield
}

// -----

// expected-error @+1 {{C2: max_tokens must be positive}}
kf.program @p() attributes {max_tokens = 0 : i64} {
  kf.yield
}

// -----

// expected-error @+1 {{C2: min_tokens must be between 1 and max_tokens, found 9}}
kf.program @p() attributes {max_tokens = 8 : i64, min_tokens = 9 : i64} {
  kf.yield
}

// -----

// expected-error @+1 {{requires attribute 'max_tokens'}}
kf.program @p() {
  kf.yield
}

// -----

// expected-error @+1 {{C3: needs a body that ends in kf.yield}}
kf.program private @p(tensor<4xf32>) attributes {max_tokens = 1 : i64}

// -----

// expected-error @+1 {{C4: argument 'memref<4xf32>' must be a cache or a tensor, without an encoding but #kf.size, whose dimensions are static but for the first, and not 0}}
kf.program @p(%x: memref<4xf32>) attributes {max_tokens = 1 : i64} {
  kf.yield
}

// -----

// expected-error @+1 {{C4: argument 'tensor<8x4xf32, #kf.layout<panel = 4>>' must be}}
kf.program @p(%x: tensor<8x4xf32, #kf.layout<panel = 4>>) attributes {max_tokens = 1 : i64} {
  kf.yield
}

// -----

!packed = tensor<8x4xf32, #kf.layout<panel = 4>>
kf.kernel @k(%x: tensor<8x4xf32>) -> !packed {
  %0 = kf.pack %x : tensor<8x4xf32> to !packed
  kf.yield %0 : !packed
}
// expected-error @+1 {{C4: result 'tensor<8x4xf32, #kf.layout<panel = 4>>' must be a tensor, without an encoding}}
kf.program @p(%x: tensor<8x4xf32>) -> !packed attributes {max_tokens = 1 : i64} {
  %0 = kf.dispatch @k(%x) : (tensor<8x4xf32>) -> !packed
  kf.yield %0 : !packed
}

// -----

// expected-error @+1 {{C5: each result must be made by a kf.dispatch or a collective, and yielded once}}
kf.program @p(%x: tensor<4xf32>) -> tensor<4xf32> attributes {max_tokens = 1 : i64} {
  kf.yield %x : tensor<4xf32>
}

// -----

kf.kernel @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = kf.softmax %x : tensor<4xf32>
  kf.yield %0 : tensor<4xf32>
}
// expected-error @+1 {{C5: each result must be made by a kf.dispatch or a collective, and yielded once}}
kf.program @p(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {max_tokens = 1 : i64} {
  %0 = kf.dispatch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  kf.yield %0, %0 : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error @+1 {{C3: needs a body that ends in kf.yield}}
kf.program @p() attributes {max_tokens = 1 : i64} {
  %0 = kf.weight ["a"] : tensor<4xf32>
}

// -----

// dispatch
kf.program @p(%x: tensor<4xf32>, %y: tensor<8xf32>) attributes {max_tokens = 1 : i64} {
  // expected-error @+1 {{C1: @absent is not a kf.kernel of this module}}
  kf.dispatch @absent(%x) : (tensor<4xf32>) -> ()
  kf.yield
}

// -----

kf.program @p(%x: tensor<4xf32>, %y: tensor<8xf32>) attributes {max_tokens = 1 : i64} {
  // expected-error @+1 {{C1: @p is not a kf.kernel of this module}}
  kf.dispatch @p(%x) : (tensor<4xf32>) -> ()
  kf.yield
}

// -----

kf.kernel @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = kf.softmax %x : tensor<4xf32>
  kf.yield %0 : tensor<4xf32>
}
kf.program @p(%x: tensor<4xf32>, %y: tensor<8xf32>) attributes {max_tokens = 1 : i64} {
  // expected-error @+1 {{C2: types differ from those of kf.kernel @k, '(tensor<4xf32>) -> tensor<4xf32>'}}
  %0 = kf.dispatch @k(%y) : (tensor<8xf32>) -> tensor<4xf32>
  kf.yield
}

// -----

kf.kernel @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = kf.softmax %x : tensor<4xf32>
  kf.yield %0 : tensor<4xf32>
}
kf.program @p(%x: tensor<4xf32>, %y: tensor<8xf32>) attributes {max_tokens = 1 : i64} {
  // expected-error @+1 {{C2: types differ from those of kf.kernel @k}}
  kf.dispatch @k(%x) : (tensor<4xf32>) -> ()
  kf.yield
}

// -----

kf.kernel @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = kf.softmax %x : tensor<4xf32>
  kf.yield %0 : tensor<4xf32>
}
kf.program @p(%x: tensor<4xf32>, %y: tensor<8xf32>) attributes {max_tokens = 1 : i64} {
  // expected-error @+1 {{C3: offsets has 2 entries for 1 results}}
  %0 = kf.dispatch @k(%x) {offsets = array<i64: 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  kf.yield
}

// -----

kf.kernel @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = kf.softmax %x : tensor<4xf32>
  kf.yield %0 : tensor<4xf32>
}
kf.program @p(%x: tensor<4xf32>, %y: tensor<8xf32>) attributes {max_tokens = 1 : i64} {
  // expected-error @+1 {{C3: an offset must not be negative, or be -1 for a result of the program}}
  %0 = kf.dispatch @k(%x) {offsets = array<i64: -2>} : (tensor<4xf32>) -> tensor<4xf32>
  kf.yield
}

// -----

func.func private @k()
func.func @f() {
  // expected-error @+1 {{expects parent op 'kf.program'}}
  kf.dispatch @k() : () -> ()
  return
}
