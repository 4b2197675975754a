// moe.permute on the host: a counting sort of the choices by expert. `offsets` serves as counters, then as cursors, then holds
// the result, so that no other memory is needed; one task does all of it.
#include "codegen/kernels/moe/permute.h"
#include "codegen/kernels/common/host.h"

using namespace k31::kernels;
using permute::Args, permute::Config;

extern "C" {
extern const Config k31_config;
void k31_entry(const Args *args, uint32_t task, uint32_t tasks);
}

void k31_entry(const Args *args, uint32_t task, uint32_t /*tasks*/) {
  const Config &c = k31_config;
  if (task != 0)
    return;
  int32_t *offsets = args->offsets(c), *slots = args->slot(c);
  const uint32_t first = args->first(c);
  int64_t row_bytes = c.cols * bytes_of(c.type);
  memset(offsets, 0, (c.experts + 1) * sizeof(int32_t));
  auto local = [&](int64_t choice) __attribute__((always_inline)) { // expert of this rank, or a value >= experts
    return (uint32_t)args->ids[choice] - first;
  };
  auto each_choice = [&](auto &&visit) __attribute__((always_inline)) { // of the live rows, in order
    for (int g = 0; g < c.groups; ++g) {
      int64_t begin = (int64_t)g * c.capacity * c.top_k, end = begin + (int64_t)args->live[g] * c.top_k;
      for (int64_t i = begin; i < end; ++i)
        visit(i);
    }
  };
  each_choice([&](int64_t i) __attribute__((always_inline)) {
    if (local(i) < (uint32_t)c.experts)
      ++offsets[local(i) + 1];
  });
  for (int e = 0; e < c.experts; ++e)
    offsets[e + 1] += offsets[e];
  each_choice([&](int64_t i) __attribute__((always_inline)) {
    uint32_t expert = local(i);
    if (expert >= (uint32_t)c.experts) {
      slots[i] = -1;
      return;
    }
    int32_t slot = slots[i] = offsets[expert]++;
    memcpy(element(args->out(c), c.type, (int64_t)slot * c.cols), element(args->x, c.type, i / c.top_k * c.ld_x), row_bytes);
  });
  // Each cursor now stands at the end of its expert, which is the start of the next one.
  for (int e = c.experts; e > 0; --e)
    offsets[e] = offsets[e - 1];
  offsets[0] = 0;
}
