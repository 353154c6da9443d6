// Arithmetic on numbers of one bit, all of which devices may have to make of
// words, and of values with themselves, which folders know more about than they
// can say of a `?`.

func.func @i1_sums(%a: tensor<?x37xi1>, %b: tensor<?x37xi1>) -> (tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>) {
  %0 = arith.addi %a, %b : tensor<?x37xi1>
  %1 = arith.subi %a, %b : tensor<?x37xi1>
  %2 = arith.muli %a, %b : tensor<?x37xi1>
  return %0, %1, %2 : tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>
}

func.func @i1_quotients(%a: tensor<?x37xi1>, %b: tensor<?x37xi1>) -> (tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>) {
  %0 = arith.divsi %a, %b : tensor<?x37xi1>
  %1 = arith.divui %a, %b : tensor<?x37xi1>
  %2 = arith.floordivsi %a, %b : tensor<?x37xi1>
  %3 = arith.ceildivsi %a, %b : tensor<?x37xi1>
  %4 = arith.ceildivui %a, %b : tensor<?x37xi1>
  %5 = arith.remsi %a, %b : tensor<?x37xi1>
  %6 = arith.remui %a, %b : tensor<?x37xi1>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>
}

func.func @i1_extremes(%a: tensor<?x37xi1>, %b: tensor<?x37xi1>) -> (tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>) {
  %0 = arith.maxsi %a, %b : tensor<?x37xi1>
  %1 = arith.maxui %a, %b : tensor<?x37xi1>
  %2 = arith.minsi %a, %b : tensor<?x37xi1>
  %3 = arith.minui %a, %b : tensor<?x37xi1>
  return %0, %1, %2, %3 : tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>
}

func.func @i1_shifts(%a: tensor<?x37xi1>, %b: tensor<?x37xi1>) -> (tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>) {
  %0 = arith.shli %a, %b : tensor<?x37xi1>
  %1 = arith.shrsi %a, %b : tensor<?x37xi1>
  %2 = arith.shrui %a, %b : tensor<?x37xi1>
  return %0, %1, %2 : tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>
}

func.func @i1_comparisons(%a: tensor<?x37xi1>, %b: tensor<?x37xi1>) -> (tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>) {
  %0 = arith.cmpi eq, %a, %b : tensor<?x37xi1>
  %1 = arith.cmpi ne, %a, %b : tensor<?x37xi1>
  %2 = arith.cmpi slt, %a, %b : tensor<?x37xi1>
  %3 = arith.cmpi sle, %a, %b : tensor<?x37xi1>
  %4 = arith.cmpi sgt, %a, %b : tensor<?x37xi1>
  %5 = arith.cmpi sge, %a, %b : tensor<?x37xi1>
  %6 = arith.cmpi ult, %a, %b : tensor<?x37xi1>
  %7 = arith.cmpi ule, %a, %b : tensor<?x37xi1>
  %8 = arith.cmpi ugt, %a, %b : tensor<?x37xi1>
  %9 = arith.cmpi uge, %a, %b : tensor<?x37xi1>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 : tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>, tensor<?x37xi1>
}

func.func @i1_conversions(%a: tensor<?x37xi1>, %b: tensor<?x37xf32>) -> (tensor<?x37xi1>, tensor<?x37xf32>, tensor<?x37xi1>, tensor<?x37xi1>) {
  %0 = math.absi %a : tensor<?x37xi1>
  %1 = arith.sitofp %a : tensor<?x37xi1> to tensor<?x37xf32>
  %2 = arith.fptosi %b : tensor<?x37xf32> to tensor<?x37xi1>
  %3 = arith.fptoui %b : tensor<?x37xf32> to tensor<?x37xi1>
  return %0, %1, %2, %3 : tensor<?x37xi1>, tensor<?x37xf32>, tensor<?x37xi1>, tensor<?x37xi1>
}

func.func @cmpf_of_nothing(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> (tensor<?x37xi1>, tensor<?x37xi1>) {
  %0 = arith.cmpf false, %a, %b : tensor<?x37xf32>
  %1 = arith.cmpf true, %a, %b : tensor<?x37xf32>
  return %0, %1 : tensor<?x37xi1>, tensor<?x37xi1>
}

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
