// Ranks are streams of one GPU, or of all that reach each other's memory, each with an area of its own.
#pragma once
#include "codegen/kernels/coll/peer_area.h"
#include "test/kernels/cuda/runner.h"
#include <cstdlib>
#include <deque>

namespace k31::test {

// A queue for each stream: one that waits for its peers must not stand in front of another rank's.
[[maybe_unused]] static const int queues = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);

template <int N> struct PeerRanks {
  void *area[N];
  cudaStream_t streams[N];
  int device[N];

  explicit PeerRanks(kernels::PeerArea form) {
    int devices = 1;
    check(cudaGetDeviceCount(&devices), "devices");
    for (int r = 0; r < N; ++r) {
      device[r] = r % devices;
      use(r);
      for (int other = 0; other < devices && r < devices; ++other)
        if (other != device[r])
          if (const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0); error == cudaErrorPeerAccessAlreadyEnabled)
            cudaGetLastError();
          else
            check(error, "memory of another GPU");
      check(cudaStreamCreateWithFlags(&streams[r], cudaStreamNonBlocking), "stream");
      check(cudaMalloc(&area[r], form.bytes()), "area"), check(cudaMemset(area[r], 0, form.bytes()), "area");
    }
    for (int r = 0; r < N; ++r) {
      kernels::PeerTable table{};
      table.rank = r;
      for (int s = 0; s < N; ++s)
        table.area[s] = area[s];
      check(cudaMemcpy(area[r], &table, sizeof table, cudaMemcpyHostToDevice), "table");
    }
    wait();
  }
  PeerRanks(const PeerRanks &) = delete;
  ~PeerRanks() {
    for (int r = 0; r < N; ++r)
      use(r), cudaFree(area[r]), cudaStreamDestroy(streams[r]);
    use(0);
  }
  void use(int r) { check(cudaSetDevice(device[r]), "device"); }
  void wait() {
    for (int r = 0; r < N; ++r)
      use(r), synchronize();
    use(0);
  }
  // Each rank with its arguments, `times` launches in a row.
  template <class Args>
  void start(void (*kernel)(const Args), Grid grid, int threads, int smem, std::vector<Args> args, int times, int cluster = 1) {
    cudaFuncAttributes loaded; // a kernel is not loaded while another spins
    for (int r = 0; r < N; ++r)
      use(r), check(cudaFuncGetAttributes(&loaded, kernel), "kernel");
    for (int i = 0; i < times; ++i)
      for (int r = 0; r < N; ++r)
        use(r), launch(kernel, grid, threads, smem, args[r], cluster, streams[r]);
    wait();
  }
};

using Tensors = std::deque<Tensor>;
inline void add(Tensors &list, int ranks, DType type, int64_t columns, int64_t rows = 1) {
  for (int r = 0; r < ranks; ++r)
    list.emplace_back(type, rows, columns);
}
// Of the values at one place, in the order of the ranks.
inline float sum_at(const Tensors &x, int64_t i, int64_t row = 0) {
  float sum = (float)x[0].at(row, i);
  for (size_t r = 1; r < x.size(); ++r)
    sum += (float)x[r].at(row, i);
  return sum;
}

} // namespace k31::test
