// k31_cuda_tests [--filter TEXT] [--time] [--list]: exit code 0 when all passed, 1 on a failure, 77 without a usable GPU.
#include "test/kernels/cuda/runner.h"
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cuda.h>

namespace k31::test {

static int failures = 0;
static bool measure = false;

std::vector<Case> &cases() {
  static std::vector<Case> all;
  return all;
}
bool timing() { return measure; }
void fail(const std::string &message) {
  if (++failures <= 6)
    printf("    %s\n", message.c_str());
}
void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return;
  printf("    CUDA error in %s: %s\n", what, cudaGetErrorString(error));
  fflush(stdout);
  std::exit(1); // the context is of no use any more
}

cudaStream_t stream() {
  static cudaStream_t one = [] {
    cudaStream_t s;
    check(cudaStreamCreate(&s), "stream");
    return s;
  }();
  return one;
}

kernels::EncodedMap encode(const kernels::TensorMap &map, const void *address) {
  static const auto function = [] {
    void *found = nullptr;
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault), "driver");
    return (decltype(&cuTensorMapEncodeTiled))found;
  }();
  kernels::EncodedMap encoded{};
  if ((uint64_t)address % 16 != 0)
    return encoded; // the kernel has another way for these
  const cuuint64_t sizes[] = {(cuuint64_t)map.columns, (cuuint64_t)map.rows}, strides[] = {(cuuint64_t)map.row_bytes};
  const cuuint32_t box[] = {(cuuint32_t)map.box_columns, (cuuint32_t)map.box_rows}, steps[] = {1, 1};
  const CUresult result = function((CUtensorMap *)&encoded, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void *)address, sizes, strides,
                                   box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    fail("a tensor map of " + std::to_string(map.rows) + " x " + std::to_string(map.columns) + " cannot be encoded: error " +
         std::to_string(result));
  return encoded;
}

void Tensor::fill_fast(float scale) {
  uint32_t state = random_engine()();
  constexpr int64_t kDrawn = 1 << 22; // elements; larger arrays repeat them
  const int64_t drawn_rows = ld_ == cols_ && rows_ * cols_ > kDrawn ? kDrawn / cols_ + 1 : rows_;
  for (int64_t r = 0; r < drawn_rows; ++r)
    for (int64_t c = 0; c < cols_; ++c) {
      uint32_t sum = 0;
      state = state * 1664525u + 1013904223u;
      for (uint32_t u = state; u; u >>= 8)
        sum += u & 255;
      float v = ((float)sum - 510) * (1 / 148.f) * scale;
      if (type_ == DType::u8)
        bytes_[offset(r, c)] = (uint8_t)(state >> 24);
      else
        std::memcpy(bytes_.data() + offset(r, c), (const char *)&v + (4 - size_), size_); // bf16: cut off, no need to round
    }
  for (int64_t r = drawn_rows; r < rows_; r += drawn_rows)
    std::memcpy(bytes_.data() + offset(r, 0), bytes_.data() + offset(0, 0),
                (size_t)(std::min(drawn_rows, rows_ - r) * ld_ * size_));
  changed_ = true;
}

double time_us(const std::function<void(int)> &f, int repeats) {
  f(0);
  synchronize();
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeGlobal), "capture");
  for (int i = 0; i < repeats; ++i)
    f(i);
  check(cudaStreamEndCapture(stream(), &graph), "capture");
  check(cudaGraphInstantiate(&exec, graph, 0), "graph");
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event"), check(cudaEventCreate(&end), "event");
  std::vector<double> times;
  for (int round = 0; round < 8; ++round) {
    check(cudaEventRecord(begin, stream()), "event");
    check(cudaGraphLaunch(exec, stream()), "graph");
    check(cudaEventRecord(end, stream()), "event");
    check(cudaEventSynchronize(end), "timed run");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "event");
    if (round) // the first replay uploads the graph
      times.push_back(ms * 1000 / repeats);
  }
  cudaGraphExecDestroy(exec), cudaGraphDestroy(graph);
  cudaEventDestroy(begin), cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void report(const std::string &what, double us, double bytes, double flops) {
  double floor = std::max(bytes / 4.26e6, flops / 0.79e9);
  printf("    %-58s %9.2f us  %8.1f GB/s  %7.1f TFLOP/s  floor %8.2f us  %5.1f%%\n", what.c_str(), us, bytes / us / 1e3,
         flops / us / 1e6, floor, 100 * floor / us);
}

} // namespace k31::test

int main(int argc, char **argv) {
  using namespace k31::test;
  std::string filter;
  bool list = false;
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    if (flag == "--filter" && i + 1 < argc) {
      filter = argv[++i];
    } else if (flag == "--time") {
      measure = true;
    } else if (flag == "--list") {
      list = true;
    } else {
      fprintf(stderr, "usage: k31_cuda_tests [--filter TEXT] [--time] [--list]\n");
      return 2;
    }
  }
  std::vector<Case> chosen;
  for (const Case &c : cases())
    if (std::string(c.name).find(filter) != std::string::npos)
      chosen.push_back(c);
  std::sort(chosen.begin(), chosen.end(), [](const Case &a, const Case &b) { return std::strcmp(a.name, b.name) < 0; });
  if (list) {
    for (const Case &c : chosen)
      printf("%s\n", c.name);
    return 0;
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("no GPU here: %zu tests were skipped\n", chosen.size());
    return 77;
  }
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0), "device");
  if (device.major != 9) {
    printf("%s has compute capability %d.%d, these kernels need 9.0: %zu tests were skipped\n", device.name, device.major,
           device.minor, chosen.size());
    return 77;
  }
  int failed = 0;
  for (const Case &c : chosen) {
    failures = 0;
    random_engine().seed(20260727);
    printf("%s\n", c.name);
    fflush(stdout);
    const auto begin = std::chrono::steady_clock::now();
    c.body();
    synchronize();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (seconds > 2)
      printf("    %.1f s\n", seconds);
    if (failures) {
      printf("    FAILED: %d checks\n", failures);
      ++failed;
    }
  }
  printf("%zu tests, %d failed\n", chosen.size(), failed);
  return chosen.empty() || failed ? 1 : 0;
}
