// The memory functions that LLVM may call from a kernel. They stay inside the image: it is linked against no C library.
// Built without builtins, so that these loops do not become calls of themselves. They are kept as they are: most copies are short
// rests of rows, for which more code would not be faster.
#include <cstddef>

typedef unsigned char Block __attribute__((ext_vector_type(64), aligned(1)));

extern "C" {

__attribute__((visibility("hidden"))) void *memcpy(void *to, const void *from, size_t n) {
  unsigned char *t = (unsigned char *)to;
  const unsigned char *f = (const unsigned char *)from;
#pragma clang loop vectorize(disable) unroll(disable)
  for (; n >= sizeof(Block); n -= sizeof(Block), t += sizeof(Block), f += sizeof(Block))
    *(Block *)t = *(const Block *)f;
#pragma clang loop vectorize(disable) unroll(disable)
  for (; n; --n)
    *t++ = *f++;
  return to;
}

__attribute__((visibility("hidden"))) void *memmove(void *to, const void *from, size_t n) {
  unsigned char *t = (unsigned char *)to;
  const unsigned char *f = (const unsigned char *)from;
  if (t <= f || t >= f + n) {
    // Forwards, by bytes where a block would overwrite what it has not read yet.
    if (t <= f && f - t < (ptrdiff_t)sizeof(Block)) {
#pragma clang loop vectorize(disable) unroll(disable)
      for (; n; --n)
        *t++ = *f++;
      return to;
    }
    return memcpy(to, from, n);
  }
#pragma clang loop vectorize(disable) unroll(disable)
  while (n--)
    t[n] = f[n];
  return to;
}

__attribute__((visibility("hidden"))) void *memset(void *to, int value, size_t n) {
  unsigned char *t = (unsigned char *)to;
  Block block = (Block)(unsigned char)value;
#pragma clang loop vectorize(disable) unroll(disable)
  for (; n >= sizeof(Block); n -= sizeof(Block), t += sizeof(Block))
    *(Block *)t = block;
#pragma clang loop vectorize(disable) unroll(disable)
  for (; n; --n)
    *t++ = (unsigned char)value;
  return to;
}
}
