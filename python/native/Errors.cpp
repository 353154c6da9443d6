//===- Errors.cpp - Errors of the runtime as exceptions -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Errors.h"

#include "runtime/text/Utf8.h"

#include <nanobind/nanobind.h>

#include <string>

namespace nb = nanobind;
using namespace kf;

/// StatusCode as kernelforge.Error.code has it.
static const char *nameOf(StatusCode code) {
  switch (code) {
  case StatusCode::Ok:
    break;
  case StatusCode::Invalid:
    return "invalid";
  case StatusCode::NotFound:
    return "not_found";
  case StatusCode::OutOfMemory:
    return "out_of_memory";
  case StatusCode::Cancelled:
    return "cancelled";
  case StatusCode::Unsupported:
    return "unsupported";
  case StatusCode::Internal:
    return "internal";
  case StatusCode::Unavailable:
    return "unavailable";
  }
  return "internal";
}

void python::raise(const Status &status) {
  // A message may quote bytes of a file.
  const std::string message = toValidUtf8(status.message());
  const nb::object error =
      nb::module_::import_("kernelforge._errors")
          .attr("error_of")(nameOf(status.code()), nb::str(message.c_str()));
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}
