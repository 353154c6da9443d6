//===- CudaProgram.cpp - An Executable on a GPU ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks an Executable against the device's limits and makes its modules. The
// driver compiles PTX for the device at hand, and keeps what it has compiled on
// disk (docs/decisions/cuda-driver.md).
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/CudaProgram.h"

#include "runtime/core/Quote.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/core/UsableThreads.h"
#include "runtime/devices/Cuda/CudaImage.h"
#include "runtime/devices/Cuda/CudaInstance.h"

#include <algorithm>

using namespace kf;

namespace {

/// More threads than this do not make the driver's compiler faster.
constexpr int64_t mostThreads = 16;
/// The driver's limit of 4 KiB of parameters, less the scalars' pointer.
constexpr size_t mostBuffers = 4096 / sizeof(CUdeviceptr) - 1;

/// The first line of a log that says something.
std::string firstLine(const char *log) {
  std::string_view text = log;
  text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
  return std::string(cutText(text.substr(0, text.find('\n')), 400));
}

} // namespace

Result<std::unique_ptr<LoadedProgram>>
CudaProgram::create(CudaContext &context, const Executable &executable) {
  std::unique_ptr<CudaProgram> self(new CudaProgram(context, executable));
  KF_RETURN_IF_ERROR(self->loadAll(executable.binary));
  return std::unique_ptr<LoadedProgram>(std::move(self));
}

CudaProgram::~CudaProgram() {
  (void)context.enter();
  for (const Kernel &kernel : kernels)
    if (kernel.module)
      (void)context.cu.cuModuleUnload(kernel.module);
}

Result<std::unique_ptr<Instance>>
CudaProgram::doBind(const BindingTable &table) {
  return CudaInstance::create(context, *this, table);
}

Status CudaProgram::loadAll(std::string_view binary) {
  const std::vector<KernelSpec> &specs = program().kernels;
  KF_RETURN_IF_ERROR(context.enter());
  kernels.resize(specs.size());
  KF_RETURN_IF_ERROR(checkDispatches());
  KF_ASSIGN_OR_RETURN(std::vector<CudaImage> images,
                      parseCudaImages(binary, specs.size()));
  std::vector<size_t> used;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (kernels[i].buffers < 0)
      continue;
    used.push_back(i);
    KF_RETURN_IF_ERROR(
        checkKernel(specs[i], images[i]).in("kernel '" + specs[i].name + "'"));
  }
  if (used.empty())
    return {};
  const int64_t threads = std::min<int64_t>(
      {static_cast<int64_t>(used.size()), usableThreads(), mostThreads});
  KF_ASSIGN_OR_RETURN(std::unique_ptr<ThreadPool> pool,
                      ThreadPool::create(static_cast<int>(threads)));
  Status status =
      pool->parallelFor(static_cast<int64_t>(used.size()), [&](int64_t number) {
        const size_t index = used[number];
        return loadKernel(index, images[index])
            .in("kernel '" + specs[index].name + "'");
      });
  // One that ends the context is the context's error from now on.
  for (const Kernel &kernel : kernels)
    (void)context.check(kernel.worst, "loading a program");
  return status;
}

Status CudaProgram::checkDispatches() {
  for (size_t i = 0; i < program().dispatches.size(); ++i) {
    const DispatchSpec &dispatch = program().dispatches[i];
    if (dispatch.collective)
      continue;
    const size_t count = dispatch.bindings.size();
    if (count > mostBuffers)
      return Status::error("dispatch " + std::to_string(i) + ": " +
                           std::to_string(count) +
                           " buffers, a CUDA kernel takes at most " +
                           std::to_string(mostBuffers));
    kernels[dispatch.kernel].buffers = static_cast<int64_t>(count);
  }
  return {};
}

Status CudaProgram::checkKernel(const KernelSpec &spec,
                                const CudaImage &image) const {
  const CudaProperties &gpu = context.properties();
  int64_t threads = 1;
  for (size_t d = 0; d < 3; ++d) {
    const int64_t size = spec.workgroupSize[d];
    if (size > gpu.block[d])
      return Status::error("blocks of " + std::to_string(size) +
                           " threads along " + "xyz"[d] + ", " + gpu.name +
                           " allows " + std::to_string(gpu.block[d]));
    threads *= size; // far below 2^63
  }
  if (threads > gpu.threads)
    return Status::error("blocks of " + std::to_string(threads) + " threads, " +
                         gpu.name + " allows " + std::to_string(gpu.threads));
  if (spec.scratchBytes > static_cast<uint64_t>(gpu.sharedMemory))
    return Status::error(std::to_string(spec.scratchBytes) +
                         " bytes of shared memory, " + gpu.name +
                         " gives a block " + std::to_string(gpu.sharedMemory));
  if (spec.waits && image.isPtx && !image.waits)
    return Status::error("its code does not wait for the kernels before it, as "
                         "the program says");
  if (image.target && !image.target->fits(gpu.major, gpu.minor))
    return Status::error("its code is for sm_" +
                         std::to_string(image.target->number) +
                         (image.target->isExact    ? "a"
                          : image.target->isFamily ? "f"
                                                   : "") +
                         ", " + gpu.name + " has " + gpu.capability() +
                         ": compile the program for cuda:" + gpu.chip());
  return {};
}

Status CudaProgram::loadKernel(size_t index, const CudaImage &image) {
  const CudaFunctions &cu = context.cu;
  Kernel &kernel = kernels[index];
  // Workers have contexts of their own; and ELF files want to be aligned.
  KF_RETURN_IF_ERROR(context.enterThread());
  std::vector<uint64_t> copy(image.bytes.size() / sizeof(uint64_t) + 1);
  std::ranges::copy(image.bytes, reinterpret_cast<char *>(copy.data()));
  char log[4096] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
  // PTX may be compiled in the second call alone.
  kernel.worst =
      cu.cuModuleLoadDataEx(&kernel.module, copy.data(), 2, options, values);
  if (kernel.worst != CUDA_SUCCESS) {
    kernel.module = nullptr;
    return explain(kernel.worst, image, log);
  }
  kernel.worst =
      cu.cuModuleGetFunction(&kernel.function, kernel.module, cudaEntryName);
  if (kernel.worst == CUDA_ERROR_NOT_FOUND)
    return Status::error(std::string("its code has no entry ") + cudaEntryName);
  if (kernel.worst != CUDA_SUCCESS)
    return explain(kernel.worst, image, log);
  KF_RETURN_IF_ERROR(checkParameters(image, kernel));
  KF_RETURN_IF_ERROR(checkFunction(program().kernels[index], kernel));
  return prepareFunction(program().kernels[index], kernel);
}

Status CudaProgram::explain(CUresult result, const CudaImage &image,
                            const char *log) const {
  const CudaProperties &gpu = context.properties();
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
    return Status::error("its code is for another device than " + gpu.name +
                             ", which has " + gpu.capability() +
                             ": compile the program for cuda:" + gpu.chip(),
                         StatusCode::Unsupported);
  if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    return Status::error("its PTX is newer than the driver: update the driver",
                         StatusCode::Unavailable);
  if (result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
    return Status::error("the driver has no compiler of PTX "
                         "(libnvidia-ptxjitcompiler.so.1): install it",
                         StatusCode::Unavailable);
  Status status =
      cudaStatus(context.cu, result,
                 image.isPtx ? "compiling its PTX" : "loading its code");
  const std::string line = firstLine(log);
  return line.empty()
             ? status
             : Status::error(status.message() + ": " + line, status.code());
}

/// The driver reads as many parameters as the code takes. Text says how many
/// those are; of machine code the driver is asked for one more, which it takes
/// for an error of the caller.
Status CudaProgram::checkParameters(const CudaImage &image,
                                    Kernel &kernel) const {
  const CudaFunctions &cu = context.cu;
  const auto count = static_cast<size_t>(kernel.buffers) + 1;
  bool fits = !image.isPtx || image.parameters == count;
  const size_t asked = image.isPtx ? count : count + 1;
  for (size_t i = 0; i < asked && fits && cu.cuFuncGetParamInfo; ++i) {
    size_t offset = 0, bytes = 0;
    const CUresult result =
        cu.cuFuncGetParamInfo(kernel.function, i, &offset, &bytes);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE) {
      kernel.worst = result;
      return cudaStatus(cu, result, "cuFuncGetParamInfo");
    }
    const bool isThere = result == CUDA_SUCCESS;
    fits = i == count ? !isThere
                      : isThere && bytes == sizeof(CUdeviceptr) &&
                            offset == i * sizeof(CUdeviceptr);
  }
  if (fits)
    return {};
  return Status::error("its code does not take pointers to " +
                       std::to_string(kernel.buffers) +
                       " buffers and the scalars");
}

Status CudaProgram::checkFunction(const KernelSpec &spec,
                                  Kernel &kernel) const {
  const CudaFunctions &cu = context.cu;
  const CudaProperties &gpu = context.properties();
  int threads = 0, shared = 0;
  kernel.worst = cu.cuFuncGetAttribute(
      &threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel.function);
  if (kernel.worst == CUDA_SUCCESS)
    kernel.worst = cu.cuFuncGetAttribute(
        &shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel.function);
  KF_RETURN_IF_ERROR(cudaStatus(cu, kernel.worst, "cuFuncGetAttribute"));
  const int64_t wanted = int64_t(spec.workgroupSize[0]) *
                         spec.workgroupSize[1] * spec.workgroupSize[2];
  if (wanted > threads)
    return Status::error("blocks of " + std::to_string(wanted) +
                         " threads, its registers allow " +
                         std::to_string(threads) + " on " + gpu.name +
                         ": give its schedule fewer threads or smaller tiles");
  // Neither is above 2^32.
  const int64_t all = shared + static_cast<int64_t>(spec.dynamicBytes);
  if (all > gpu.sharedMemory)
    return Status::error(std::to_string(all) + " bytes of shared memory, " +
                         gpu.name + " gives a block " +
                         std::to_string(gpu.sharedMemory));
  return {};
}

/// A kernel that asks for more shared memory than code may hold gets all that a
/// multiprocessor has of it, so that such kernels run beside one another there.
/// Others keep what the driver chooses: their reads live on the first cache,
/// which shares that memory.
Status CudaProgram::prepareFunction(const KernelSpec &spec,
                                    Kernel &kernel) const {
  if (spec.dynamicBytes == 0)
    return Status();
  const CudaFunctions &cu = context.cu;
  constexpr int all = 100;
  kernel.worst = cu.cuFuncSetAttribute(
      kernel.function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, all);
  if (kernel.worst == CUDA_SUCCESS)
    kernel.worst = cu.cuFuncSetAttribute(
        kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        static_cast<int>(spec.dynamicBytes));
  return cudaStatus(cu, kernel.worst, "cuFuncSetAttribute");
}
