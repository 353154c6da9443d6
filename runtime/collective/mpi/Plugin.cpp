//===- Plugin.cpp - The functions of an MPI -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled once for each MPI (MpiPlugin.h).
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/MpiPlugin.h"

#include <algorithm>
#include <cstring>

// The interface of C alone: that of C++ is gone from the standard.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace {

MPI_Request request = MPI_REQUEST_NULL;
MPI_Status last;

/// The first line of what the library calls itself.
const char *library() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING + 1];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS)
    return "MPI";
  text[std::strcspn(text, ",\n")] = '\0';
  std::replace(text, text + std::strlen(text), '\t', ' ');
  return text;
}

int start(int *rank, int *size) {
  // Another thread than the first may call, one at a time.
  int provided = MPI_THREAD_SINGLE;
  int error =
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (error == MPI_SUCCESS && provided < MPI_THREAD_SERIALIZED)
    error = MPI_ERR_UNSUPPORTED_OPERATION;
  if (error == MPI_SUCCESS)
    error = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (error == MPI_SUCCESS)
    error = MPI_Comm_rank(MPI_COMM_WORLD, rank);
  return error == MPI_SUCCESS ? MPI_Comm_size(MPI_COMM_WORLD, size) : error;
}

int beginSum(const float *source, float *target, int count) {
  return MPI_Iallreduce(source, target, count, MPI_FLOAT, MPI_SUM,
                        MPI_COMM_WORLD, &request);
}

int beginGather(const void *source, void *target, int bytes) {
  return MPI_Iallgather(source, bytes, MPI_BYTE, target, bytes, MPI_BYTE,
                        MPI_COMM_WORLD, &request);
}

int beginSend(const void *source, int bytes, int rank) {
  return MPI_Isend(source, bytes, MPI_BYTE, rank, /*tag=*/0, MPI_COMM_WORLD,
                   &request);
}

int arrived(int rank, int *isThere) {
  return MPI_Iprobe(rank, /*tag=*/0, MPI_COMM_WORLD, isThere,
                    MPI_STATUS_IGNORE);
}

int beginReceive(void *target, int bytes, int rank) {
  return MPI_Irecv(target, bytes, MPI_BYTE, rank, /*tag=*/0, MPI_COMM_WORLD,
                   &request);
}

int received(int *bytes) { return MPI_Get_count(&last, MPI_BYTE, bytes); }

int test(int *isDone) { return MPI_Test(&request, isDone, &last); }

int end() { return MPI_Finalize(); }

void describe(int error, char *text, int length) {
  char whole[MPI_MAX_ERROR_STRING + 1] = "an unknown error";
  int used = 0;
  (void)MPI_Error_string(error, whole, &used);
  std::strncpy(text, whole, static_cast<size_t>(length));
  text[length - 1] = '\0';
}

constexpr KfMpiPlugin kPlugin = {KF_MPI_PLUGIN_VERSION,
                                 library,
                                 start,
                                 beginSum,
                                 beginGather,
                                 beginSend,
                                 arrived,
                                 beginReceive,
                                 received,
                                 test,
                                 end,
                                 describe};

} // namespace

extern "C" __attribute__((visibility("default"))) const KfMpiPlugin *
kfMpiPlugin() {
  return &kPlugin;
}
