// Every elementwise op of arith and math, and the types that it takes.
func.func @absf(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.absf %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @ceil(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.ceil %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @floor(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.floor %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @round(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.round %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @roundeven(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.roundeven %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @exp2(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.exp2 %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @expm1(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.expm1 %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @erf(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.erf %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @erfc(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.erfc %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @sin(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.sin %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @cos(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.cos %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @tan(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.tan %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @asin(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.asin %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @acos(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.acos %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @atan(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.atan %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @sinh(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.sinh %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @cosh(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.cosh %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @asinh(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.asinh %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @atanh(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.atanh %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @cbrt(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.cbrt %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @trunc(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.trunc %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @log(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.log %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @log2(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.log2 %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @log10(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.log10 %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @log1p(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.log1p %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @acosh(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.acosh %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

// From 1 on, where it has values.
func.func @acosh_large(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %large = arith.constant dense<1.0e6> : tensor<1xf32>
  %k = kf.broadcast %large : tensor<1xf32> to tensor<?x37xf32>
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %i = kf.broadcast %one : tensor<1xf32> to tensor<?x37xf32>
  %s = arith.mulf %a, %a : tensor<?x37xf32>
  %x = math.fma %s, %k, %i : tensor<?x37xf32>
  %0 = math.acosh %x : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

// Its square is infinite.
func.func @asinh_large(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %large = arith.constant dense<1.0e30> : tensor<1xf32>
  %k = kf.broadcast %large : tensor<1xf32> to tensor<?x37xf32>
  %x = arith.mulf %a, %k : tensor<?x37xf32>
  %0 = math.asinh %x : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @powf(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %p = math.absf %a : tensor<?x37xf32>
  %0 = math.powf %p, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @atan2(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %p = arith.negf %a : tensor<?x37xf32>
  %0 = math.atan2 %p, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @copysign(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %p = arith.negf %a : tensor<?x37xf32>
  %0 = math.copysign %p, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @remf(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = arith.remf %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

// Near 0 they are nearly their operands, with as many digits.
func.func @functions_near_zero(%a: tensor<?x37xf32>) -> (tensor<?x37xf32>, tensor<?x37xf32>, tensor<?x37xf32>) {
  %small = arith.constant dense<1.0e-4> : tensor<1xf32>
  %k = kf.broadcast %small : tensor<1xf32> to tensor<?x37xf32>
  %large = arith.constant dense<1.0e4> : tensor<1xf32>
  %l = kf.broadcast %large : tensor<1xf32> to tensor<?x37xf32>
  %x = arith.mulf %a, %k : tensor<?x37xf32>
  %t = math.tanh %x : tensor<?x37xf32>
  %e = math.expm1 %x : tensor<?x37xf32>
  %p = math.log1p %x : tensor<?x37xf32>
  %0 = arith.mulf %t, %l : tensor<?x37xf32>
  %1 = arith.mulf %e, %l : tensor<?x37xf32>
  %2 = arith.mulf %p, %l : tensor<?x37xf32>
  return %0, %1, %2 : tensor<?x37xf32>, tensor<?x37xf32>, tensor<?x37xf32>
}

// Quotients of many more bits than a number has.
func.func @remf_large(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %large = arith.constant dense<1.0e20> : tensor<1xf32>
  %k = kf.broadcast %large : tensor<1xf32> to tensor<?x37xf32>
  %x = arith.mulf %a, %k : tensor<?x37xf32>
  %0 = arith.remf %x, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @maxnumf(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = arith.maxnumf %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @minnumf(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = arith.minnumf %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @fma(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>, %c: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.fma %a, %b, %c : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @isnan(%a: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = math.isnan %a : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @isinf(%a: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = math.isinf %a : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @isfinite(%a: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = math.isfinite %a : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @isnormal(%a: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = math.isnormal %a : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpf_oeq(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = arith.cmpf oeq, %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpf_ogt(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = arith.cmpf ogt, %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpf_oge(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = arith.cmpf oge, %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpf_olt(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = arith.cmpf olt, %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpf_ole(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = arith.cmpf ole, %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpf_one(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = arith.cmpf one, %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpf_ord(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = arith.cmpf ord, %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpf_ueq(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = arith.cmpf ueq, %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpf_ugt(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = arith.cmpf ugt, %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpf_uge(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = arith.cmpf uge, %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpf_ult(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = arith.cmpf ult, %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpf_ule(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = arith.cmpf ule, %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpf_une(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = arith.cmpf une, %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpf_uno(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xi1> {
  %0 = arith.cmpf uno, %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xi1>
}

func.func @cmpi_eq(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi1> {
  %0 = arith.cmpi eq, %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi1>
}

func.func @cmpi_ne(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi1> {
  %0 = arith.cmpi ne, %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi1>
}

func.func @cmpi_slt(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi1> {
  %0 = arith.cmpi slt, %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi1>
}

func.func @cmpi_sle(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi1> {
  %0 = arith.cmpi sle, %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi1>
}

func.func @cmpi_sgt(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi1> {
  %0 = arith.cmpi sgt, %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi1>
}

func.func @cmpi_sge(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi1> {
  %0 = arith.cmpi sge, %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi1>
}

func.func @cmpi_ult(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi1> {
  %0 = arith.cmpi ult, %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi1>
}

func.func @cmpi_ule(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi1> {
  %0 = arith.cmpi ule, %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi1>
}

func.func @cmpi_ugt(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi1> {
  %0 = arith.cmpi ugt, %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi1>
}

func.func @cmpi_uge(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi1> {
  %0 = arith.cmpi uge, %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi1>
}

func.func @cmpi_widened(%a: tensor<5x37xi32>) -> (tensor<5x37xi1>, tensor<5x37xi1>, tensor<5x37xi64>) {
  %middle = arith.constant dense<90> : tensor<5x37xi32>
  %small = arith.subi %a, %middle : tensor<5x37xi32>
  %wide = arith.extsi %small : tensor<5x37xi32> to tensor<5x37xi64>
  %limit = arith.constant dense<20> : tensor<5x37xi64>
  %least = arith.constant dense<-5000000000> : tensor<5x37xi64>
  %0 = arith.cmpi slt, %wide, %limit : tensor<5x37xi64>
  %1 = arith.cmpi sgt, %wide, %least : tensor<5x37xi64>
  %2 = math.absi %wide : tensor<5x37xi64>
  return %0, %1, %2 : tensor<5x37xi1>, tensor<5x37xi1>, tensor<5x37xi64>
}

func.func @addi_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.addi %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @subi_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.subi %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @muli_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.muli %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @divsi_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.divsi %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @divui_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.divui %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @floordivsi_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.floordivsi %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @ceildivsi_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.ceildivsi %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @ceildivui_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.ceildivui %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @remsi_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.remsi %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @remui_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.remui %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @maxsi_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.maxsi %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @maxui_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.maxui %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @minsi_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.minsi %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @minui_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.minui %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @andi_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.andi %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @ori_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.ori %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @xori_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.xori %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @shli_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.shli %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @shrsi_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.shrsi %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @shrui_i8(%a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.shrui %a, %b : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @absi_i8(%a: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = math.absi %a : tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @addi_i16(%a: tensor<?x37xi16>, %b: tensor<?x37xi16>) -> tensor<?x37xi16> {
  %0 = arith.addi %a, %b : tensor<?x37xi16>
  return %0 : tensor<?x37xi16>
}

func.func @muli_i16(%a: tensor<?x37xi16>, %b: tensor<?x37xi16>) -> tensor<?x37xi16> {
  %0 = arith.muli %a, %b : tensor<?x37xi16>
  return %0 : tensor<?x37xi16>
}

func.func @divsi_i16(%a: tensor<?x37xi16>, %b: tensor<?x37xi16>) -> tensor<?x37xi16> {
  %0 = arith.divsi %a, %b : tensor<?x37xi16>
  return %0 : tensor<?x37xi16>
}

func.func @remui_i16(%a: tensor<?x37xi16>, %b: tensor<?x37xi16>) -> tensor<?x37xi16> {
  %0 = arith.remui %a, %b : tensor<?x37xi16>
  return %0 : tensor<?x37xi16>
}

func.func @minui_i16(%a: tensor<?x37xi16>, %b: tensor<?x37xi16>) -> tensor<?x37xi16> {
  %0 = arith.minui %a, %b : tensor<?x37xi16>
  return %0 : tensor<?x37xi16>
}

func.func @shrsi_i16(%a: tensor<?x37xi16>, %b: tensor<?x37xi16>) -> tensor<?x37xi16> {
  %0 = arith.shrsi %a, %b : tensor<?x37xi16>
  return %0 : tensor<?x37xi16>
}

func.func @absi_i16(%a: tensor<?x37xi16>) -> tensor<?x37xi16> {
  %0 = math.absi %a : tensor<?x37xi16>
  return %0 : tensor<?x37xi16>
}

func.func @addi_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.addi %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @subi_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.subi %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @muli_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.muli %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @divsi_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.divsi %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @divui_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.divui %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @floordivsi_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.floordivsi %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @ceildivsi_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.ceildivsi %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @ceildivui_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.ceildivui %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @remsi_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.remsi %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @remui_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.remui %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @maxsi_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.maxsi %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @maxui_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.maxui %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @minsi_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.minsi %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @minui_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.minui %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @andi_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.andi %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @ori_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.ori %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @xori_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.xori %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @shli_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.shli %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @shrsi_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.shrsi %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @shrui_i32(%a: tensor<?x37xi32>, %y: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<9> : tensor<1xi32>
  %k = kf.broadcast %one : tensor<1xi32> to tensor<?x37xi32>
  %b = arith.subi %y, %k : tensor<?x37xi32>
  %0 = arith.shrui %a, %b : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @absi_i32(%a: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %0 = math.absi %a : tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @addi_i64(%a: tensor<?x37xi64>, %y: tensor<?x37xi64>) -> tensor<?x37xi64> {
  %one = arith.constant dense<9> : tensor<1xi64>
  %k = kf.broadcast %one : tensor<1xi64> to tensor<?x37xi64>
  %b = arith.subi %y, %k : tensor<?x37xi64>
  %0 = arith.addi %a, %b : tensor<?x37xi64>
  return %0 : tensor<?x37xi64>
}

func.func @muli_i64(%a: tensor<?x37xi64>, %y: tensor<?x37xi64>) -> tensor<?x37xi64> {
  %one = arith.constant dense<9> : tensor<1xi64>
  %k = kf.broadcast %one : tensor<1xi64> to tensor<?x37xi64>
  %b = arith.subi %y, %k : tensor<?x37xi64>
  %0 = arith.muli %a, %b : tensor<?x37xi64>
  return %0 : tensor<?x37xi64>
}

func.func @divsi_i64(%a: tensor<?x37xi64>, %y: tensor<?x37xi64>) -> tensor<?x37xi64> {
  %one = arith.constant dense<9> : tensor<1xi64>
  %k = kf.broadcast %one : tensor<1xi64> to tensor<?x37xi64>
  %b = arith.subi %y, %k : tensor<?x37xi64>
  %0 = arith.divsi %a, %b : tensor<?x37xi64>
  return %0 : tensor<?x37xi64>
}

func.func @remui_i64(%a: tensor<?x37xi64>, %y: tensor<?x37xi64>) -> tensor<?x37xi64> {
  %one = arith.constant dense<9> : tensor<1xi64>
  %k = kf.broadcast %one : tensor<1xi64> to tensor<?x37xi64>
  %b = arith.subi %y, %k : tensor<?x37xi64>
  %0 = arith.remui %a, %b : tensor<?x37xi64>
  return %0 : tensor<?x37xi64>
}

func.func @minui_i64(%a: tensor<?x37xi64>, %y: tensor<?x37xi64>) -> tensor<?x37xi64> {
  %one = arith.constant dense<9> : tensor<1xi64>
  %k = kf.broadcast %one : tensor<1xi64> to tensor<?x37xi64>
  %b = arith.subi %y, %k : tensor<?x37xi64>
  %0 = arith.minui %a, %b : tensor<?x37xi64>
  return %0 : tensor<?x37xi64>
}

func.func @shrsi_i64(%a: tensor<?x37xi64>, %y: tensor<?x37xi64>) -> tensor<?x37xi64> {
  %one = arith.constant dense<9> : tensor<1xi64>
  %k = kf.broadcast %one : tensor<1xi64> to tensor<?x37xi64>
  %b = arith.subi %y, %k : tensor<?x37xi64>
  %0 = arith.shrsi %a, %b : tensor<?x37xi64>
  return %0 : tensor<?x37xi64>
}

func.func @absi_i64(%a: tensor<?x37xi64>) -> tensor<?x37xi64> {
  %0 = math.absi %a : tensor<?x37xi64>
  return %0 : tensor<?x37xi64>
}

func.func @andi_i1(%a: tensor<?x37xi1>, %b: tensor<?x37xi1>) -> tensor<?x37xi1> {
  %0 = arith.andi %a, %b : tensor<?x37xi1>
  return %0 : tensor<?x37xi1>
}

func.func @ori_i1(%a: tensor<?x37xi1>, %b: tensor<?x37xi1>) -> tensor<?x37xi1> {
  %0 = arith.ori %a, %b : tensor<?x37xi1>
  return %0 : tensor<?x37xi1>
}

func.func @xori_i1(%a: tensor<?x37xi1>, %b: tensor<?x37xi1>) -> tensor<?x37xi1> {
  %0 = arith.xori %a, %b : tensor<?x37xi1>
  return %0 : tensor<?x37xi1>
}

func.func @select(%c: tensor<?x37xi1>, %a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = arith.select %c, %a, %b : tensor<?x37xi1>, tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @select_i8(%c: tensor<?x37xi1>, %a: tensor<?x37xi8>, %b: tensor<?x37xi8>) -> tensor<?x37xi8> {
  %0 = arith.select %c, %a, %b : tensor<?x37xi1>, tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @extf_f16_f32(%a: tensor<?x37xf16>) -> tensor<?x37xf32> {
  %0 = arith.extf %a : tensor<?x37xf16> to tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @extf_bf16_f32(%a: tensor<?x37xbf16>) -> tensor<?x37xf32> {
  %0 = arith.extf %a : tensor<?x37xbf16> to tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @truncf_f32_f16(%a: tensor<?x37xf32>) -> tensor<?x37xf16> {
  %0 = arith.truncf %a : tensor<?x37xf32> to tensor<?x37xf16>
  return %0 : tensor<?x37xf16>
}

func.func @truncf_f32_bf16(%a: tensor<?x37xf32>) -> tensor<?x37xbf16> {
  %0 = arith.truncf %a : tensor<?x37xf32> to tensor<?x37xbf16>
  return %0 : tensor<?x37xbf16>
}

func.func @extsi_i8_i32(%a: tensor<?x37xi8>) -> tensor<?x37xi32> {
  %0 = arith.extsi %a : tensor<?x37xi8> to tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @extui_i8_i32(%a: tensor<?x37xi8>) -> tensor<?x37xi32> {
  %0 = arith.extui %a : tensor<?x37xi8> to tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @extui_i1_i8(%a: tensor<?x37xi1>) -> tensor<?x37xi8> {
  %0 = arith.extui %a : tensor<?x37xi1> to tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @extsi_i1_i32(%a: tensor<?x37xi1>) -> tensor<?x37xi32> {
  %0 = arith.extsi %a : tensor<?x37xi1> to tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @trunci_i32_i8(%a: tensor<?x37xi32>) -> tensor<?x37xi8> {
  %0 = arith.trunci %a : tensor<?x37xi32> to tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @trunci_i64_i1(%a: tensor<?x37xi64>) -> tensor<?x37xi1> {
  %0 = arith.trunci %a : tensor<?x37xi64> to tensor<?x37xi1>
  return %0 : tensor<?x37xi1>
}

func.func @extsi_i16_i64(%a: tensor<?x37xi16>) -> tensor<?x37xi64> {
  %0 = arith.extsi %a : tensor<?x37xi16> to tensor<?x37xi64>
  return %0 : tensor<?x37xi64>
}

func.func @sitofp_i8_f32(%a: tensor<?x37xi8>) -> tensor<?x37xf32> {
  %0 = arith.sitofp %a : tensor<?x37xi8> to tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @uitofp_i8_f32(%a: tensor<?x37xi8>) -> tensor<?x37xf32> {
  %0 = arith.uitofp %a : tensor<?x37xi8> to tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @sitofp_i32_f16(%a: tensor<?x37xi32>) -> tensor<?x37xf16> {
  %0 = arith.sitofp %a : tensor<?x37xi32> to tensor<?x37xf16>
  return %0 : tensor<?x37xf16>
}

func.func @uitofp_i1_f32(%a: tensor<?x37xi1>) -> tensor<?x37xf32> {
  %0 = arith.uitofp %a : tensor<?x37xi1> to tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @fptosi_f32_i8(%a: tensor<?x37xf32>) -> tensor<?x37xi8> {
  %one = arith.constant dense<300.0> : tensor<1xf32>
  %k = kf.broadcast %one : tensor<1xf32> to tensor<?x37xf32>
  %x = arith.mulf %a, %k : tensor<?x37xf32>
  %0 = arith.fptosi %x : tensor<?x37xf32> to tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @fptoui_f32_i8(%a: tensor<?x37xf32>) -> tensor<?x37xi8> {
  %one = arith.constant dense<300.0> : tensor<1xf32>
  %k = kf.broadcast %one : tensor<1xf32> to tensor<?x37xf32>
  %x = arith.mulf %a, %k : tensor<?x37xf32>
  %0 = arith.fptoui %x : tensor<?x37xf32> to tensor<?x37xi8>
  return %0 : tensor<?x37xi8>
}

func.func @fptosi_f32_i32(%a: tensor<?x37xf32>) -> tensor<?x37xi32> {
  %one = arith.constant dense<300.0> : tensor<1xf32>
  %k = kf.broadcast %one : tensor<1xf32> to tensor<?x37xf32>
  %x = arith.mulf %a, %k : tensor<?x37xf32>
  %0 = arith.fptosi %x : tensor<?x37xf32> to tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @fptosi_f16_i16(%a: tensor<?x37xf16>) -> tensor<?x37xi16> {
  %one = arith.constant dense<300.0> : tensor<1xf16>
  %k = kf.broadcast %one : tensor<1xf16> to tensor<?x37xf16>
  %x = arith.mulf %a, %k : tensor<?x37xf16>
  %0 = arith.fptosi %x : tensor<?x37xf16> to tensor<?x37xi16>
  return %0 : tensor<?x37xi16>
}

func.func @bitcast_f32_i32(%a: tensor<?x37xf32>) -> tensor<?x37xi32> {
  %0 = arith.bitcast %a : tensor<?x37xf32> to tensor<?x37xi32>
  return %0 : tensor<?x37xi32>
}

func.func @bitcast_i16_f16(%a: tensor<?x37xi16>) -> tensor<?x37xf16> {
  %0 = arith.bitcast %a : tensor<?x37xi16> to tensor<?x37xf16>
  return %0 : tensor<?x37xf16>
}

func.func @bitcast_bf16_i16(%a: tensor<?x37xbf16>) -> tensor<?x37xi16> {
  %0 = arith.bitcast %a : tensor<?x37xbf16> to tensor<?x37xi16>
  return %0 : tensor<?x37xi16>
}

func.func @extf_f32_f64(%a: tensor<?x37xf32>) -> tensor<?x37xf64> {
  %0 = arith.extf %a : tensor<?x37xf32> to tensor<?x37xf64>
  return %0 : tensor<?x37xf64>
}

func.func @truncf_f64_f32(%a: tensor<?x37xf64>) -> tensor<?x37xf32> {
  %0 = arith.truncf %a : tensor<?x37xf64> to tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @fptosi_f64_i64(%a: tensor<?x37xf64>) -> tensor<?x37xi64> {
  %one = arith.constant dense<300.0> : tensor<1xf64>
  %k = kf.broadcast %one : tensor<1xf64> to tensor<?x37xf64>
  %x = arith.mulf %a, %k : tensor<?x37xf64>
  %0 = arith.fptosi %x : tensor<?x37xf64> to tensor<?x37xi64>
  return %0 : tensor<?x37xi64>
}

func.func @sitofp_i64_f64(%a: tensor<?x37xi64>) -> tensor<?x37xf64> {
  %0 = arith.sitofp %a : tensor<?x37xi64> to tensor<?x37xf64>
  return %0 : tensor<?x37xf64>
}

func.func @chain_f16(%a: tensor<?x37xf16>, %b: tensor<?x37xf16>) -> tensor<?x37xf16> {
  %0 = arith.mulf %a, %b : tensor<?x37xf16>
  %1 = math.exp %0 : tensor<?x37xf16>
  %2 = arith.divf %1, %b : tensor<?x37xf16>
  return %2 : tensor<?x37xf16>
}

func.func @chain_bf16(%a: tensor<?x37xbf16>, %b: tensor<?x37xbf16>) -> tensor<?x37xbf16> {
  %0 = arith.mulf %a, %b : tensor<?x37xbf16>
  %1 = math.exp %0 : tensor<?x37xbf16>
  %2 = arith.divf %1, %b : tensor<?x37xbf16>
  return %2 : tensor<?x37xbf16>
}

func.func @chain_f64(%a: tensor<?x37xf64>, %b: tensor<?x37xf64>) -> tensor<?x37xf64> {
  %0 = arith.mulf %a, %b : tensor<?x37xf64>
  %1 = math.exp %0 : tensor<?x37xf64>
  %2 = arith.divf %1, %b : tensor<?x37xf64>
  return %2 : tensor<?x37xf64>
}

func.func @rank0(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = arith.addf %a, %b : tensor<f32>
  %1 = math.exp %0 : tensor<f32>
  return %1 : tensor<f32>
}

func.func @rank0_broadcast(%a: tensor<f32>, %b: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = kf.broadcast %a : tensor<f32> to tensor<?x37xf32>
  %1 = arith.mulf %0, %b : tensor<?x37xf32>
  return %1 : tensor<?x37xf32>
}

func.func @list_constant(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %c = arith.constant dense<[1.0, -2.0, 3.5, 4.0, 0.25]> : tensor<5xf32>
  %0 = kf.broadcast %c : tensor<5xf32> to tensor<3x5xf32>
  %1 = arith.mulf %a, %0 : tensor<3x5xf32>
  return %1 : tensor<3x5xf32>
}

func.func @list_of_bits(%a: tensor<3x4xf32>, %b: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %c = arith.constant dense<[true, false, false, true]> : tensor<4xi1>
  %0 = kf.broadcast %c : tensor<4xi1> to tensor<3x4xi1>
  %1 = arith.select %0, %a, %b : tensor<3x4xi1>, tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}
