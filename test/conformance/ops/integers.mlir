// Arithmetic of values with themselves, which folders know more about than they
// can say of a `?`.

func.func @xori_with_itself(%a: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %0 = arith.xori %a, %a : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @cmpi_with_itself(%a: tensor<?x37xi32>) -> (tensor<?x37xi1>, tensor<?x37xi1>) {
  %0 = arith.cmpi eq, %a, %a : tensor<?x37xi32>
  %1 = arith.cmpi ult, %a, %a : tensor<?x37xi32>
  return %0, %1 : tensor<?x37xi1>, tensor<?x37xi1>
}

func.func @with_themselves(%a: tensor<?x37xi32>, %b: tensor<?x37xf32>) -> (tensor<?x37xi32>, tensor<?x37xf32>) {
  %0 = arith.subi %a, %a : tensor<?x37xi32>
  %1 = arith.xori %0, %0 : tensor<?x37xi32>
  %2 = arith.remsi %1, %1 : tensor<?x37xi32>
  %3 = arith.addi %2, %a : tensor<?x37xi32>
  %4 = arith.cmpi ne, %1, %1 : tensor<?x37xi32>
  %5 = arith.subf %b, %b : tensor<?x37xf32>
  %6 = arith.select %4, %5, %5 : tensor<?x37xi1>, tensor<?x37xf32>
  %7 = arith.addf %6, %b : tensor<?x37xf32>
  return %3, %7 : tensor<?x37xi32>, tensor<?x37xf32>
}

func.func @xori_of_known_rows(%a: tensor<4x37xi32>) -> tensor<4x37xi32> {
  %0 = arith.xori %a, %a : tensor<4x37xi32>
  return %0 : tensor<4x37xi32>
}

func.func @xori_of_wanted_rows(%a: tensor<?x37xi32, #kf.size<wanted>>) -> tensor<?x37xi32, #kf.size<wanted>> {
  %0 = arith.xori %a, %a : tensor<?x37xi32, #kf.size<wanted>>
  return %0 : tensor<?x37xi32, #kf.size<wanted>>
}
