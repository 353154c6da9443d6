// RUN: kf-opt %s --kf-set-target=target=cuda | FileCheck %s --check-prefix=OLDEST
// RUN: kf-opt %s --kf-set-target=target=cuda:sm_80 | FileCheck %s --check-prefix=AMPERE
// RUN: kf-opt %s --kf-set-target=target=cuda:sm_90a | FileCheck %s --check-prefix=HOPPER
// RUN: kf-opt %s --kf-set-target=target=cuda:sm_100f | FileCheck %s --check-prefix=FAMILY
// RUN: not kf-opt %s --kf-set-target=target=cuda:sm_75 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: not kf-opt %s --kf-set-target=target=cuda:90 2>&1 | FileCheck %s --check-prefix=TEXT

// Without a chip, for all: with what the least of them gives a block.
// OLDEST: kf.target = #kf.cuda_target<chip = "sm_80", memory = 101376>
// AMPERE: kf.target = #kf.cuda_target<chip = "sm_80", memory = 166912>
// HOPPER: kf.target = #kf.cuda_target<chip = "sm_90a", memory = 232448>
// FAMILY: kf.target = #kf.cuda_target<chip = "sm_100f", memory = 232448>
// OLD:    error: kf-set-target: cuda target: there is no code for 'sm_75'; it is one of sm_80, sm_86,
// TEXT:   error: kf-set-target: cuda target: there is no code for '90'; it is one of sm_80,

module {}
