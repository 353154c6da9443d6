// The loss of logits that are capped, and its gradient by the rows that they are
// products of: 150 rows, which are one part of 128 and a shorter one.
func.func @capped_logits(%x: tensor<150x32xf32> {kf.gradient}, %labels: tensor<150xi32>,
                         %scale: tensor<150x1xf32>) -> tensor<f32> {
  %head = kf.weight ["head"] : tensor<96x32xf32>
  %cap = arith.constant dense<4.0> : tensor<150x96xf32>
  %factors = kf.broadcast %scale : tensor<150x1xf32> to tensor<150x96xf32>
  %product = kf.matmul %x, %head : tensor<150x32xf32>, tensor<96x32xf32>
  %scaled = arith.mulf %product, %factors : tensor<150x96xf32>
  %small = arith.divf %scaled, %cap : tensor<150x96xf32>
  %bent = math.tanh %small : tensor<150x96xf32>
  %logits = arith.mulf %bent, %cap : tensor<150x96xf32>
  %losses = kf.cross_entropy %logits, %labels : tensor<150x96xf32>, tensor<150xi32>
  %sum = kf.reduce(sum) %losses dims = [0] : tensor<150xf32>
  return %sum : tensor<f32>
}
