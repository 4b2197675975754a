// The CUDA driver, opened when a plan needs it: this runtime is built without CUDA and runs without a GPU.
//
// Declarations are our own, the few that are needed; test/runtime/cuda_driver_test.cpp compares them with cuda.h.
#pragma once
#include "runtime/base/result.h"
#include <cstddef>
#include <cstdint>
#include <string>

namespace k31::cuda {

using Status = int; // CUresult; 0 is success
using Address = unsigned long long;
using Context = struct CUctx_st *;
using Stream = struct CUstream_st *;
using Event = struct CUevent_st *;
using Module = struct CUmod_st *;
using Function = struct CUfunc_st *;
using Graph = struct CUgraph_st *;
using GraphExec = struct CUgraphExec_st *;

// CUDA_MEMCPY2D: `height` pieces of `width` bytes, each at its own pitch.
struct Copy2D {
  size_t source_x = 0, source_y = 0;
  int source_kind = 1; // CU_MEMORYTYPE_HOST
  const void *source_host = nullptr;
  Address source = 0;
  void *source_array = nullptr;
  size_t source_pitch = 0;
  size_t dest_x = 0, dest_y = 0;
  int dest_kind = 2; // CU_MEMORYTYPE_DEVICE
  void *dest_host = nullptr;
  Address dest = 0;
  void *dest_array = nullptr;
  size_t dest_pitch = 0;
  size_t width = 0, height = 0;
};

// CUipcMemHandle: an allocation, as other processes can map it.
struct IpcHandle {
  char bytes[64];
};

// CUlaunchAttribute with an int, and CUlaunchConfig.
struct LaunchAttribute {
  int id = 0;
  alignas(8) int value[16] = {};
};
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned attribute_count;
};

// Numbers of cuda.h, by their names there.
constexpr int kMultiprocessors = 16;    // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
constexpr int kCapabilityMajor = 75;    // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kCapabilityMinor = 76;    // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
constexpr int kMaxDynamicShared = 8;    // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr unsigned kIpcPeerAccess = 1;  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
constexpr unsigned kNonBlocking = 1;    // CU_STREAM_NON_BLOCKING
constexpr unsigned kNoTiming = 2;       // CU_EVENT_DISABLE_TIMING
constexpr int kCaptureThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
constexpr int kMapU8 = 0;               // CU_TENSOR_MAP_DATA_TYPE_UINT8
constexpr int kMapI32 = 3;              // CU_TENSOR_MAP_DATA_TYPE_INT32
constexpr int kMapF32 = 7;              // CU_TENSOR_MAP_DATA_TYPE_FLOAT32
constexpr int kMapBf16 = 9;             // CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
constexpr int kSwizzle128 = 3;          // CU_TENSOR_MAP_SWIZZLE_128B
constexpr int kPromote256 = 3;          // CU_TENSOR_MAP_L2_PROMOTION_L2_256B
constexpr int kStartsEarly = 6;         // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
constexpr Status kOutOfMemory = 2;      // CUDA_ERROR_OUT_OF_MEMORY
constexpr Status kNotReady = 600;       // CUDA_ERROR_NOT_READY
constexpr Status kNoDevice = 100;       // CUDA_ERROR_NO_DEVICE
constexpr Status kNoBinaryForGpu = 209; // CUDA_ERROR_NO_BINARY_FOR_GPU

struct Driver {
#define K31_CUDA_FUNCTION(name, symbol, parameters) Status(*name) parameters;
#include "runtime/cuda/functions.h"
#undef K31_CUDA_FUNCTION
};

// The driver, opened and initialised once a process; or one line that says what is missing.
Result<const Driver *> open_driver();

// The one place where errors of CUDA become ours: "cannot load image 3: CUDA_ERROR_... (text)".
tl::unexpected<Error> cuda_error(const Driver &driver, const std::string &what, Status status);

} // namespace k31::cuda

// Returns with the error of a driver call that failed; `what` is only made then.
#define K31_CUDA(driver, call, what)                                                                                             \
  do {                                                                                                                           \
    if (const ::k31::cuda::Status k31_status = (driver).call; k31_status != 0)                                                   \
      return ::k31::cuda::cuda_error(driver, what, k31_status);                                                                  \
  } while (0)
