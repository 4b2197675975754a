// The CUDA device as far as a machine without a GPU can tell: our declarations against cuda.h, and the refusal.
#include "runtime/cuda/driver.h"
#include "runtime/device.h"
#include "test/runtime/plan_builder.h"
#include <dlfcn.h>
#include <gtest/gtest.h>
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

namespace k31::test {

#ifdef CUDA_VERSION
static_assert(sizeof(cuda::Copy2D) == sizeof(CUDA_MEMCPY2D));
static_assert(offsetof(cuda::Copy2D, source_kind) == offsetof(CUDA_MEMCPY2D, srcMemoryType));
static_assert(offsetof(cuda::Copy2D, source_host) == offsetof(CUDA_MEMCPY2D, srcHost));
static_assert(offsetof(cuda::Copy2D, source_pitch) == offsetof(CUDA_MEMCPY2D, srcPitch));
static_assert(offsetof(cuda::Copy2D, dest_kind) == offsetof(CUDA_MEMCPY2D, dstMemoryType));
static_assert(offsetof(cuda::Copy2D, dest) == offsetof(CUDA_MEMCPY2D, dstDevice));
static_assert(offsetof(cuda::Copy2D, dest_pitch) == offsetof(CUDA_MEMCPY2D, dstPitch));
static_assert(offsetof(cuda::Copy2D, width) == offsetof(CUDA_MEMCPY2D, WidthInBytes));
static_assert(CU_MEMORYTYPE_HOST == 1 && CU_MEMORYTYPE_DEVICE == 2 && sizeof(CUdeviceptr) == sizeof(cuda::Address));
static_assert(cuda::kCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(cuda::kCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(cuda::kMaxDynamicShared == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(sizeof(cuda::IpcHandle) == sizeof(CUipcMemHandle) && cuda::kIpcPeerAccess == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
static_assert(std::is_same_v<decltype(&cuIpcOpenMemHandle), CUresult (*)(CUdeviceptr *, CUipcMemHandle, unsigned)>);
static_assert(cuda::kNonBlocking == CU_STREAM_NON_BLOCKING && cuda::kNoTiming == CU_EVENT_DISABLE_TIMING);
static_assert(cuda::kCaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(cuda::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY && cuda::kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(cuda::kMapU8 == CU_TENSOR_MAP_DATA_TYPE_UINT8 && cuda::kMapI32 == CU_TENSOR_MAP_DATA_TYPE_INT32);
static_assert(cuda::kMapF32 == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 && cuda::kMapBf16 == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
static_assert(cuda::kSwizzle128 == CU_TENSOR_MAP_SWIZZLE_128B && cuda::kPromote256 == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
static_assert(CU_TENSOR_MAP_INTERLEAVE_NONE == 0 && CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE == 0 && sizeof(CUtensorMap) == 128);
static_assert(sizeof(cuda::LaunchAttribute) == sizeof(CUlaunchAttribute) && sizeof(cuda::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(cuda::LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(offsetof(cuda::LaunchConfig, shared) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(cuda::LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(cuda::LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(cuda::LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(cuda::kStartsEarly == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
// The functions whose parameters are not all pointers and ints.
static_assert(std::is_same_v<decltype(&cuLaunchKernelEx), CUresult (*)(const CUlaunchConfig *, CUfunction, void **, void **)>);
static_assert(std::is_same_v<decltype(&cuGraphInstantiateWithFlags), CUresult (*)(CUgraphExec *, CUgraph, unsigned long long)>);
static_assert(std::is_same_v<decltype(&cuMemsetD8Async), CUresult (*)(CUdeviceptr, unsigned char, size_t, CUstream)>);
#endif

TEST(CudaDevice, SaysWhatIsMissing) {
  if (void *library = dlopen("libcuda.so.1", RTLD_NOW)) {
    dlclose(library);
    GTEST_SKIP() << "NVIDIA's driver is installed here";
  }
  TempFolder folder;
  plan::PlanT plan = sample_plan();
  plan.key->target = "sm_90a";
  write(plan, folder.path("plan.k31"));
  auto session = Session::load(folder.path("plan.k31"));
  ASSERT_TRUE(session) << session.error().message;
  const auto bound = (*session)->bind({});
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code, Code::unsupported);
  EXPECT_EQ(bound.error().message,
            "the plan is for target sm_90a, which needs NVIDIA's driver, but libcuda.so.1 cannot be opened; "
            "run it on a machine with a GPU of the H100 or H200 kind, or compile the plan with --target cpu");
}

} // namespace k31::test
