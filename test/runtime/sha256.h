// SHA-256 of a buffer, in hex: golden files name ids by it.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace k31::test {

inline std::string sha256(const void *data, size_t size) {
  // The first 32 bits of the fractional parts: of the cube roots of the first 64 primes (k), of the square roots of the first 8
  // (h).
  static constexpr std::array<uint32_t, 64> k = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
      0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
      0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
      0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
      0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
      0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  std::array<uint32_t, 8> h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const auto *bytes = static_cast<const uint8_t *>(data);
  std::vector<uint8_t> message(bytes, bytes + size);
  message.push_back(0x80);
  while (message.size() % 64 != 56)
    message.push_back(0);
  for (int i = 7; i >= 0; --i)
    message.push_back(uint8_t(uint64_t(size) * 8 >> 8 * i));
  const auto rotate = [](uint32_t x, int n) { return x >> n | x << (32 - n); };
  for (size_t at = 0; at < message.size(); at += 64) {
    std::array<uint32_t, 64> w;
    for (size_t i = 0; i < 16; ++i)
      w[i] = uint32_t(message[at + 4 * i]) << 24 | uint32_t(message[at + 4 * i + 1]) << 16 |
             uint32_t(message[at + 4 * i + 2]) << 8 | message[at + 4 * i + 3];
    for (size_t i = 16; i < 64; ++i)
      w[i] = w[i - 16] + w[i - 7] + (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
             (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
    auto [a, b, c, d, e, f, g, z] = h;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t t1 = z + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i];
      const uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      z = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<uint32_t, 8> add = {a, b, c, d, e, f, g, z};
    for (size_t i = 0; i < 8; ++i)
      h[i] += add[i];
  }
  std::string hex;
  for (const uint32_t word : h)
    for (int shift = 28; shift >= 0; shift -= 4)
      hex += "0123456789abcdef"[word >> shift & 15];
  return hex;
}

template <class T> std::string sha256(const std::vector<T> &values) { return sha256(values.data(), values.size() * sizeof(T)); }

} // namespace k31::test
