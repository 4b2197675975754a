// Decays of attn.kda's tests, in log space.
#pragma once
#include "test/kernels/common/host_tensor.h"

namespace k31::test {

// Bounded: K3's gate, above -5. Strong: Kimi-Linear's softplus gate has no bound. Weak: the state never fades. Cut: now and then
// nothing is left, and what comes after decays as usual.
enum class Decay { bounded, weak, strong, mixed, cut };

inline float draw_decay(Decay d) {
  switch (d) {
  case Decay::bounded:
    return uniform(-5, 0);
  case Decay::weak:
    return uniform(0, 1) < 0.5f ? 0 : uniform(-1e-3f, 0);
  case Decay::strong:
    return uniform(0, 1) < 0.1f ? -1e4f : uniform(-300, 0);
  case Decay::mixed:
    return uniform(0, 1) < 0.5f ? uniform(-0.1f, 0) : uniform(-90, -5);
  case Decay::cut:
    return uniform(0, 1) < 0.1f ? (uniform(0, 1) < 0.5f ? -1e30f : -INFINITY) : uniform(-1, 0);
  }
  return 0;
}

} // namespace k31::test
