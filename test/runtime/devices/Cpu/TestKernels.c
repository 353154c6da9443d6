//===- TestKernels.c - Kernels for the CPU device's test ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/abi.h"

#include <math.h>
#include <string.h>

/// y[r][c] = x[r][c] * w[c]; a workgroup is 4 rows of 16.
void scale_rows(void *const *bindings, const int64_t *scalars, void *scratch,
                int64_t workgroup) {
  const float *x = bindings[0], *w = bindings[1];
  float *y = bindings[2];
  int64_t end = workgroup * 4 + 4;
  if (end > scalars[KF_SCALAR_N_TOKENS])
    end = scalars[KF_SCALAR_N_TOKENS];
  for (int64_t r = workgroup * 4; r < end; ++r)
    for (int64_t c = 0; c < 16; ++c)
      y[r * 16 + c] = x[r * 16 + c] * w[c];
}

/// y = a[0] * x for the first n_tokens elements; a workgroup does 64 of them.
void scale(void *const *bindings, const int64_t *scalars, void *scratch,
           int64_t workgroup) {
  const float *x = bindings[0], *a = bindings[1];
  float *y = bindings[2];
  int64_t end = workgroup * 64 + 64;
  if (end > scalars[KF_SCALAR_N_TOKENS])
    end = scalars[KF_SCALAR_N_TOKENS];
  for (int64_t i = workgroup * 64; i < end; ++i)
    y[i] = a[0] * x[i];
}

/// counts[workgroup] += 1.
void count_runs(void *const *bindings, const int64_t *scalars, void *scratch,
                int64_t workgroup) {
  ((int64_t *)bindings[0])[workgroup] += 1;
}

/// to[workgroup] = 1 + (sum of from[0 .. 63]) mod 1000003, by way of scratch:
/// wrong if any workgroup of an earlier dispatch is still running, or if two
/// threads share scratch.
void add_all(void *const *bindings, const int64_t *scalars, void *scratch,
             int64_t workgroup) {
  const int64_t *from = bindings[0];
  int64_t *to = bindings[1], *copy = scratch;
  memcpy(copy, from, 64 * sizeof(int64_t));
  int64_t sum = 0;
  for (int i = 0; i < 64; ++i)
    sum += copy[i];
  to[workgroup] = 1 + sum % 1000003;
}

/// flag = 1.
void set_flag(void *const *bindings, const int64_t *scalars, void *scratch,
              int64_t workgroup) {
  *(_Atomic _Bool *)bindings[0] = 1;
}

/// cache layer: first element = capacity.
void mark_layer(void *const *bindings, const int64_t *scalars, void *scratch,
                int64_t workgroup) {
  ((float *)bindings[0])[0] = (float)scalars[KF_SCALAR_CACHE_PAGES];
}

/// y[workgroup] = exp(x[workgroup]), from the C library.
void exponent(void *const *bindings, const int64_t *scalars, void *scratch,
              int64_t workgroup) {
  ((float *)bindings[1])[workgroup] =
      expf(((const float *)bindings[0])[workgroup]);
}

#ifdef KF_TEST_MISSING
void kf_test_missing_function(void);

/// Calls what no process has.
void broken(void *const *bindings, const int64_t *scalars, void *scratch,
            int64_t workgroup) {
  kf_test_missing_function();
}
#endif
