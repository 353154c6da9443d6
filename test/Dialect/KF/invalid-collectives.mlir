// RUN: kf-opt %s -verify-diagnostics -split-input-file

// Collectives, and the number of ranks.

// expected-error @+1 {{kf.ranks says how many ranks run a module together, an i64 from 2 to 1024, found 1 : i64}}
module attributes {kf.ranks = 1 : i64} {}

// -----

// expected-error @+1 {{kf.ranks says how many ranks run a module together, an i64 from 2 to 1024, found 1025 : i64}}
module attributes {kf.ranks = 1025 : i64} {}

// -----

// expected-error @+1 {{kf.ranks says how many ranks run a module together, an i64 from 2 to 1024, found 2 : i32}}
module attributes {kf.ranks = 2 : i32} {}

// -----

// expected-error @+1 {{kf.ranks says how many ranks run a module together, an i64 from 2 to 1024, found "2"}}
module attributes {kf.ranks = "2"} {}

// -----

// expected-error @+1 {{kf.ranks says how many ranks run a module together}}
func.func @f() attributes {kf.ranks = 2 : i64} {
  return
}

// -----

module attributes {kf.ranks = 2 : i64} {
  func.func @f(%x: tensor<f32>) {
    // expected-error @+1 {{C1: x must have rank 1 or more and elements of f32, f16 or bf16 in their order, found 'tensor<f32>'}}
    %0 = kf.all_reduce %x : tensor<f32>
    return
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x8xi32>) {
    // expected-error @+1 {{C1: x must have rank 1 or more and elements of f32, f16 or bf16 in their order, found 'tensor<?x8xi32>'}}
    %0 = kf.all_reduce %x : tensor<?x8xi32>
    return
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x8xf32>) {
    // C2
    // expected-error @+2 {{'kf.all_reduce' op failed to infer returned types}}
    // expected-error @+1 {{'kf.all_reduce' op inferred type(s) 'tensor<?x8xf32>' are incompatible with return type(s) of operation 'tensor<?x9xf32>'}}
    %0 = "kf.all_reduce"(%x) : (tensor<?x8xf32>) -> tensor<?x9xf32>
    return
  }
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{'kf.all_reduce' op C3: the module around it has no kf.ranks, and a single rank has nothing to put together}}
  %0 = kf.all_reduce %x : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{'kf.all_gather' op C3: the module around it has no kf.ranks, and a single rank has nothing to put together}}
  %0 = kf.all_gather %x : tensor<?x8xf32> to tensor<?x16xf32>
  return
}

// -----

module attributes {kf.ranks = 2 : i64} {
  kf.kernel @k(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
    // expected-error @+1 {{'kf.all_reduce' op C4: stands in a kf.kernel; a kf.program holds it}}
    %0 = kf.all_reduce %x : tensor<?x8xf32>
    kf.yield %0 : tensor<?x8xf32>
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  kf.kernel @k(%x: tensor<?x8xf32>) -> tensor<?x16xf32> {
    // expected-error @+1 {{'kf.all_gather' op C4: stands in a kf.kernel; a kf.program holds it}}
    %0 = kf.all_gather %x : tensor<?x8xf32> to tensor<?x16xf32>
    kf.yield %0 : tensor<?x16xf32>
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  kf.program @p(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {max_tokens = 4 : i64} {
    // expected-error @+1 {{'kf.all_reduce' op C5: offsets must have one entry, which is not negative, or -1 for a result of the program}}
    %0 = kf.all_reduce %x {offsets = array<i64: 0, 64>} : tensor<?x8xf32>
    kf.yield %0 : tensor<?x8xf32>
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  kf.program @p(%x: tensor<?x8xf32>) -> tensor<?x16xf32> attributes {max_tokens = 4 : i64} {
    // expected-error @+1 {{'kf.all_gather' op C5: offsets must have one entry, which is not negative, or -1 for a result of the program}}
    %0 = kf.all_gather %x {offsets = array<i64: -2>} : tensor<?x8xf32> to tensor<?x16xf32>
    kf.yield %0 : tensor<?x16xf32>
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x2x8xf32>) {
    // expected-error @+1 {{'kf.all_gather' op C1: x must be [T, C] of f32, f16 or bf16 with static columns, in their order, found 'tensor<?x2x8xf32>'}}
    %0 = kf.all_gather %x : tensor<?x2x8xf32> to tensor<?x16xf32>
    return
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  func.func @f(%x: tensor<4x?xf32>) {
    // expected-error @+1 {{'kf.all_gather' op C1: x must be [T, C] of f32, f16 or bf16 with static columns, in their order, found 'tensor<4x?xf32>'}}
    %0 = kf.all_gather %x : tensor<4x?xf32> to tensor<4x16xf32>
    return
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x8xi32>) {
    // expected-error @+1 {{'kf.all_gather' op C1: x must be [T, C] of f32, f16 or bf16 with static columns, in their order, found 'tensor<?x8xi32>'}}
    %0 = kf.all_gather %x : tensor<?x8xi32> to tensor<?x16xi32>
    return
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x8xf32>) {
    // expected-error @+1 {{'kf.all_gather' op C2: the result must be [T, D] with the rows and the elements of x and static columns, found 'tensor<?x8xf32>' and 'tensor<4x16xf32>'}}
    %0 = kf.all_gather %x : tensor<?x8xf32> to tensor<4x16xf32>
    return
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x8xf32, #kf.size<wanted>>) {
    // expected-error @+1 {{'kf.all_gather' op C2: the result must be [T, D] with the rows and the elements of x}}
    %0 = kf.all_gather %x : tensor<?x8xf32, #kf.size<wanted>> to tensor<?x16xf32>
    return
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x8xf32>) {
    // expected-error @+1 {{'kf.all_gather' op C2: the result must be [T, D] with the rows and the elements of x}}
    %0 = kf.all_gather %x : tensor<?x8xf32> to tensor<?x16xf16>
    return
  }
}

// -----

module attributes {kf.ranks = 3 : i64} {
  func.func @f(%x: tensor<?x8xf32>) {
    // expected-error @+1 {{'kf.all_gather' op C3: 3 ranks with 8 columns each make more than 16 and at most 24, found 16}}
    %0 = kf.all_gather %x : tensor<?x8xf32> to tensor<?x16xf32>
    return
  }
}

// -----

module attributes {kf.ranks = 3 : i64} {
  func.func @f(%x: tensor<?x8xf32>) {
    // expected-error @+1 {{'kf.all_gather' op C3: 3 ranks with 8 columns each make more than 16 and at most 24, found 25}}
    %0 = kf.all_gather %x : tensor<?x8xf32> to tensor<?x25xf32>
    return
  }
}

// -----

// Parts of what is packed have no place of their own.
module attributes {kf.ranks = 2 : i64} {
  func.func @f(%x: tensor<12x64xf32, #kf.layout<panel = 8>>) {
    // expected-error @+1 {{C1: x must have rank 1 or more and elements of f32, f16 or bf16 in their order, found 'tensor<12x64xf32, #kf.layout<panel = 8>>'}}
    %0 = kf.all_reduce %x : tensor<12x64xf32, #kf.layout<panel = 8>>
    return
  }
}

// -----

// expected-error @+1 {{kf.ranks says how many ranks run a module together, an i64 from 2 to 1024, found 2 : ui64}}
module attributes {kf.ranks = 2 : ui64} {
}

// -----

module attributes {kf.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x2x4xf32>) {
    // expected-error @+1 {{'kf.send' op C1: x must be [T, C] of f32, f16 or bf16 with static columns, in their order, found 'tensor<?x2x4xf32>'}}
    kf.send %x : tensor<?x2x4xf32>
    return
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x8xi32>) {
    // expected-error @+1 {{'kf.send' op C1: x must be [T, C] of f32, f16 or bf16}}
    kf.send %x : tensor<?x8xi32>
    return
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x8xf32>) {
    // expected-error @+1 {{'kf.send' op C2: offsets must be empty, as there is no result}}
    kf.send %x {offsets = array<i64: 0>} : tensor<?x8xf32>
    return
  }
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{'kf.send' op C3: the module around it has no kf.ranks}}
  kf.send %x : tensor<?x8xf32>
  return
}

// -----

module attributes {kf.ranks = 2 : i64} {
  kf.kernel @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
    // expected-error @+1 {{'kf.send' op C4: stands in a kf.kernel; a kf.program holds it}}
    kf.send %x : tensor<?x8xf32>
    %0 = kf.softmax %x : tensor<?x8xf32>
    kf.yield %0 : tensor<?x8xf32>
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  func.func @f() {
    // expected-error @+1 {{'kf.receive' op C1: the result must be [T, C] of f32, f16 or bf16 with static columns, in their order, found 'tensor<?x?xf32>'}}
    %0 = kf.receive : tensor<?x?xf32>
    return
  }
}

// -----

module attributes {kf.ranks = 2 : i64} {
  func.func @f() {
    // expected-error @+1 {{'kf.receive' op C2: offsets must have one entry, which is not negative, or -1 for a result of the program}}
    %0 = kf.receive {offsets = array<i64: -2>} : tensor<?x8xf32>
    return
  }
}

// -----

func.func @f() {
  // expected-error @+1 {{'kf.receive' op C3: the module around it has no kf.ranks}}
  %0 = kf.receive : tensor<?x8xf32>
  return
}
