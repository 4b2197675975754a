// The entry of libFuzzer for the one target that K31_FUZZ_TARGET names.
#include "tools/dev/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  k31::fuzz::K31_FUZZ_TARGET(std::as_bytes(std::span(data, size)));
  return 0;
}
