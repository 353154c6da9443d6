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

/// Returns fn(), which calls one function of Python's. When the interpreter
/// ends, it ends the threads that come back to it (daemons) by unwinding them,
/// which C++ may not go through: the thread stays here instead, as later
/// versions of Python have it, too.
template <typename Fn> auto stayIfEnded(Fn &&fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (...) {
    for (;;)
      pause();
  }
}

/// Has the module's own unwinder make its tables, as its first exception does:
/// threads are ended by another one, libgcc_s, which makes none for it, and
/// whoever catches that without them ends the process. Once, before any thread.
inline void prepareToStay() {
  try {
    throw 0;
  } catch (int) {
    return;
  }
}

/// Takes the GIL again.
inline void takeGil(PyThreadState *state) {
  stayIfEnded([&] { PyEval_RestoreThread(state); });
}

/// Gives a reference up, if it is one, with the GIL: it may be the last.
inline void drop(nanobind::object &object) {
  stayIfEnded([&] { Py_XDECREF(object.release().ptr()); });
}

/// Has the GIL, on a thread that is none of Python's, and that the interpreter
/// does not end before: nobody can ask for the GIL after that.
class HeldGil {
public:
  HeldGil() : state(stayIfEnded([] { return PyGILState_Ensure(); })) { ++held; }
  ~HeldGil() {
    --held;
    stayIfEnded([this] { PyGILState_Release(state); });
  }
  HeldGil(const HeldGil &) = delete;
  HeldGil &operator=(const HeldGil &) = delete;

  /// How many there are. With the GIL.
  static size_t count() { return held; }
  /// In a process that was forked, which has none of them.
  static void forgetAll() { held = 0; }

private:
  inline static size_t held = 0;
  PyGILState_STATE state;
};

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
