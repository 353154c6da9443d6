//===- Gil.h - Work without Python's lock -----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PYTHON_NATIVE_GIL_H
#define KF_PYTHON_NATIVE_GIL_H

#include <nanobind/nanobind.h>

#include <type_traits>

#include <unistd.h>

namespace kf::python {

/// Takes the GIL again. When the interpreter ends, it ends the threads of its
/// that come back (daemons) by unwinding them, which C++ may not go through:
/// the thread stays here instead, as later versions of Python have it, too.
inline void takeGil(PyThreadState *state) {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    for (;;)
      pause();
  }
}

/// Returns fn(), which throws nothing, runs without the GIL, and leaves no lock
/// held. With the GIL.
template <typename Fn> auto withoutGil(Fn &&fn) -> decltype(fn()) {
  PyThreadState *const state = PyEval_SaveThread();
  if constexpr (std::is_void_v<decltype(fn())>) {
    fn();
    takeGil(state);
  } else {
    auto result = fn();
    takeGil(state);
    return result;
  }
}

} // namespace kf::python

#endif // KF_PYTHON_NATIVE_GIL_H
