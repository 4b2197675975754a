// A small test runner for CUDA kernels. Each test fills tensors on the host, runs the kernel, and compares with fp64 loops;
// outputs are poisoned and stand between guard bands. With --time a test also measures itself.
//
// Tests are registered by K31_CUDA_TEST(name) { ... } and named <dialect>.<op>.<case>.
#pragma once
#include "codegen/kernels/common/tensor_map.h"
#include "codegen/kernels/common/tile.h"
#include "test/kernels/common/host_tensor.h"
#include <cuda_runtime.h>
#include <functional>

namespace k31::test {

using kernels::Grid;

// ---- the runner (runner.cu)
struct Case {
  const char *name;
  void (*body)();
};
std::vector<Case> &cases();
struct Register {
  Register(const char *name, void (*body)()) { cases().push_back({name, body}); }
};
#define K31_CUDA_JOIN2(a, b) a##b
#define K31_CUDA_JOIN(a, b) K31_CUDA_JOIN2(a, b)
#define K31_CUDA_TEST(name) K31_CUDA_TEST_AT(name, __LINE__)
#define K31_CUDA_TEST_AT(name, line)                                                                                             \
  static void K31_CUDA_JOIN(cuda_test_, line)();                                                                                 \
  static k31::test::Register K31_CUDA_JOIN(cuda_register_, line)(name, K31_CUDA_JOIN(cuda_test_, line));                         \
  static void K31_CUDA_JOIN(cuda_test_, line)()

// Marks the running test as failed; the first few messages are printed.
void fail(const std::string &message);
bool timing(); // --time was given
void check(cudaError_t error, const char *what);
cudaStream_t stream(); // of launches that name none

// ---- launches
template <class Args>
void launch(void (*kernel)(const Args), Grid grid, int threads, int smem, Args args, int cluster = 1,
            cudaStream_t on = stream()) {
  if (smem > 48 << 10)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem), "shared memory of the kernel");
  void *values[] = {(void *)&args};
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {(unsigned)cluster, 1, 1};
  cudaLaunchConfig_t config{dim3(grid.x, grid.y, grid.z), dim3(threads), (size_t)smem, on, &attribute, cluster > 1 ? 1u : 0u};
  check(cudaLaunchKernelExC(&config, (const void *)kernel, values), "launch");
}
inline void synchronize() { check(cudaDeviceSynchronize(), "run"); }

template <class T> constexpr int cluster_of(const T &tile) {
  if constexpr (requires { tile.split; })
    return tile.split;
  return 1;
}

// Defines `start<config, tile, Region>(args)` for the kernel of namespace k31::kernels::<op>. The launch code of nvcc 13.0 writes
// the class types of template values by their mangled names, so a test file also says
//   using _ZN3k317kernels5embed6ConfigE = k31::kernels::embed::Config;   and the same for Tile.
#define K31_CUDA_KERNEL(op)                                                                                                      \
  namespace {                                                                                                                    \
  template <k31::kernels::op::Config c, k31::kernels::op::Tile t, class R>                                                       \
  __global__ void __launch_bounds__(t.threads(), k31::kernels::blocks_at_once(t))                                                \
      entry(const __grid_constant__ k31::kernels::op::Args args) {                                                               \
    k31::kernels::op::run<c, t, R>(args);                                                                                        \
  }                                                                                                                              \
  template <k31::kernels::op::Config c, k31::kernels::op::Tile t = k31::kernels::op::choose(c),                                  \
            class R = k31::kernels::NoRegion>                                                                                    \
  void start(const k31::kernels::op::Args &args) {                                                                               \
    k31::test::launch<k31::kernels::op::Args>(entry<c, t, R>, k31::kernels::op::grid(c, t), t.threads(), t.smem(c), args);       \
  }                                                                                                                              \
  }

// The same for a Config that has arrays or floats, which the launch code cannot name at all: start<S, T, Region>(args), where S
// is a struct with the member `config` and T one with the member `tile` (Chosen<S>: the kernel's own choice).
#define K31_CUDA_KERNEL_BY_TYPE(op)                                                                                              \
  namespace {                                                                                                                    \
  template <class S> struct Chosen {                                                                                             \
    static constexpr k31::kernels::op::Tile tile = k31::kernels::op::choose(S::config);                                          \
  };                                                                                                                             \
  template <class S, class T, class R>                                                                                           \
  __global__ void __launch_bounds__(T::tile.threads(), k31::kernels::blocks_at_once(T::tile))                                    \
      entry(const __grid_constant__ k31::kernels::op::Args args) {                                                               \
    k31::kernels::op::run<S::config, T::tile, R>(args);                                                                          \
  }                                                                                                                              \
  template <class S, class T = Chosen<S>, class R = k31::kernels::NoRegion> void start(const k31::kernels::op::Args &args) {     \
    k31::test::launch<k31::kernels::op::Args>(entry<S, T, R>, k31::kernels::op::grid(S::config, T::tile), T::tile.threads(),     \
                                              T::tile.smem(S::config), args, k31::test::cluster_of(T::tile));                    \
  }                                                                                                                              \
  }

// A tensor map of the matrix at `address`, as the runtime encodes it.
kernels::EncodedMap encode(const kernels::TensorMap &map, const void *address);

// As K31_CUDA_KERNEL_BY_TYPE, for a kernel with tensor maps.
#define K31_CUDA_KERNEL_MAPPED(op)                                                                                               \
  namespace {                                                                                                                    \
  template <class S> struct Chosen {                                                                                             \
    static constexpr k31::kernels::op::Tile tile = k31::kernels::op::choose(S::config);                                          \
  };                                                                                                                             \
  using MappedArgs = k31::kernels::Mapped<k31::kernels::op::Args>;                                                               \
  template <class S, class T, class R>                                                                                           \
  __global__ void __launch_bounds__(T::tile.threads(), k31::kernels::blocks_at_once(T::tile))                                    \
      entry(const __grid_constant__ MappedArgs args) {                                                                           \
    k31::kernels::op::run<S::config, T::tile, R>(args.args, args.maps);                                                          \
  }                                                                                                                              \
  template <class S, class T = Chosen<S>, class R = k31::kernels::NoRegion> void start(const k31::kernels::op::Args &args) {     \
    MappedArgs mapped{args, {}};                                                                                                 \
    const k31::kernels::TensorMaps maps = k31::kernels::op::tensor_maps(S::config, T::tile);                                     \
    for (int i = 0; i < maps.count; ++i)                                                                                         \
      mapped.maps[i] = k31::test::encode(maps.map[i], ((void *const *)&args)[maps.map[i].argument]);                             \
    k31::test::launch<MappedArgs>(entry<S, T, R>, k31::kernels::op::grid(S::config, T::tile), T::tile.threads(),                 \
                                  T::tile.smem(S::config), mapped, T::tile.split);                                               \
  }                                                                                                                              \
  }

// Median time of f() in microseconds over runs of `repeats` calls; f gets the number of the call, so that it can
// take turns among inputs larger than the second-level cache together.
double time_us(const std::function<void(int)> &f, int repeats = 20);
// Prints one line: time, the floor of its bytes at 4.26 TB/s or of its operations at 0.79 PFLOP/s, and the share reached.
void report(const std::string &what, double us, double bytes, double flops = 0);

// A tensor with a copy in device memory, which the first device() after a change on the host makes; fetch() brings results back.
class Tensor : public HostTensor {
public:
  using HostTensor::HostTensor;
  Tensor(const Tensor &) = delete;
  ~Tensor() { cudaFree(device_); }

  template <class T = void> T *device() {
    if (!device_)
      check(cudaMalloc(&device_, bytes_.size()), "memory of a tensor");
    if (changed_)
      check(cudaMemcpy(device_, bytes_.data(), bytes_.size(), cudaMemcpyHostToDevice), "copy to the device");
    changed_ = false;
    return (T *)((char *)device_ + kGuard * size_);
  }
  void fetch() {
    synchronize();
    check(cudaMemcpy(bytes_.data(), device_, bytes_.size(), cudaMemcpyDeviceToHost), "copy from the device");
  }
  // Normal-looking values for large timings, by a cheap generator.
  void fill_fast(float scale = 1);

private:
  void *device_ = nullptr;
};

// compare() with failures of this runner, after a fetch.
template <class F> void expect_close(Tensor &got, int64_t rows, F want, double tolerance, const char *what = "out") {
  got.fetch();
  compare(got, rows, want, tolerance, what, fail);
}

} // namespace k31::test
