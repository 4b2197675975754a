#include "runtime/cuda/weights.h"
#include <array>

namespace k31::cuda {
namespace {

class CudaSink : public weights::Sink {
public:
  CudaSink(const Driver &driver, std::span<const Memory> arenas) : driver(driver), arenas(arenas) {}

  Result<void> open(Context context) {
    K31_CUDA(driver, context_set(context), "cannot use the GPU on a reader of weights");
    K31_CUDA(driver, stream_create(&stream, kNonBlocking), "cannot create a stream for the weights");
    for (Half &half : halves) {
      K31_ASSIGN(half.memory, Pinned::allocate(driver, weights::kBuffer));
      K31_CUDA(driver, event_create(&half.copied, kNoTiming), "cannot create an event for the weights");
    }
    return {};
  }

  ~CudaSink() override {
    if (stream)
      driver.stream_synchronize(stream); // copies may still read the buffers
    for (Half &half : halves)
      if (half.copied)
        driver.event_destroy(half.copied);
    if (stream)
      driver.stream_destroy(stream);
  }

  std::byte *direct(uint32_t, uint64_t) override { return nullptr; }

  Result<std::span<std::byte>> buffer() override {
    current ^= 1;
    Half &half = halves[current];
    if (half.used)
      K31_CUDA(driver, event_synchronize(half.copied), "copying weights to the GPU failed");
    return half.memory.bytes();
  }

  Result<void> place(const weights::Layout &layout, uint64_t row, uint64_t count, uint32_t arena, uint64_t member) override {
    const std::byte *source = halves[current].memory.bytes().data();
    const Address dest = arenas[arena].address() + member;
    while (count > 0) {
      weights::Pieces p;
      const uint64_t rows = weights::next_pieces(layout, row, count, &p);
      if (p.height == 1) {
        K31_CUDA(driver, copy_in(dest + p.dest, source + p.source, p.width, stream), "cannot copy weights to the GPU");
      } else {
        Copy2D copy;
        copy.source_host = source + p.source, copy.source_pitch = p.source_pitch;
        copy.dest = dest + p.dest, copy.dest_pitch = p.dest_pitch;
        copy.width = p.width, copy.height = p.height;
        K31_CUDA(driver, copy_2d(&copy, stream), "cannot copy rows of weights to the GPU");
      }
      source += rows * layout.row_bytes, row += rows, count -= rows;
    }
    return copied();
  }

  Result<void> put(uint64_t bytes, uint32_t arena, uint64_t offset) override {
    K31_CUDA(driver, copy_in(arenas[arena].address() + offset, halves[current].memory.bytes().data(), bytes, stream),
             "cannot copy weights to the GPU");
    return copied();
  }

  Result<void> finish() override {
    K31_CUDA(driver, stream_synchronize(stream), "copying weights to the GPU failed");
    return {};
  }

private:
  struct Half {
    Pinned memory;
    Event copied = nullptr; // after the last copy out of it
    bool used = false;
  };

  Result<void> copied() {
    Half &half = halves[current];
    half.used = true;
    K31_CUDA(driver, event_record(half.copied, stream), "copying weights to the GPU failed");
    return {};
  }

  const Driver &driver;
  std::span<const Memory> arenas;
  Stream stream = nullptr;
  std::array<Half, 2> halves;
  int current = 0;
};

} // namespace

Result<std::unique_ptr<weights::Sink>> make_sink(const Driver &driver, Context context, std::span<const Memory> arenas) {
  auto sink = std::make_unique<CudaSink>(driver, arenas);
  K31_TRY(sink->open(context));
  return sink;
}

} // namespace k31::cuda
