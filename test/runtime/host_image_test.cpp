// Images of machine code, whole and damaged.
#include "runtime/host/image.h"
#include "test/runtime/plan_builder.h"
#include <cstring>
#include <elf.h>
#include <gtest/gtest.h>

namespace k31::test {
namespace {

constexpr const char *kSymbols[] = {"test_gather", "test_add", "test_scale"};

struct HostImage : ::testing::Test {
  std::vector<uint8_t> good = sample_plan().images[0]->code;

  template <class T> T at(uint64_t offset) const {
    T record;
    memcpy(&record, good.data() + offset, sizeof record);
    return record;
  }
  Elf64_Ehdr head() const { return at<Elf64_Ehdr>(0); }

  static std::string refusal(const std::vector<uint8_t> &code) {
    const auto image = host::Image::open(code);
    return image ? "(accepted)" : image.error().message;
  }

  // The bytes of memory from the first kernel on, as the image has them; empty when it or a kernel is refused.
  static std::vector<std::vector<uint8_t>> functions(const std::vector<uint8_t> &code) {
    const auto image = host::Image::open(code);
    std::vector<std::vector<uint8_t>> bytes;
    for (const char *symbol : kSymbols) {
      const auto function = image ? image->find(symbol) : fail(Code::not_found, "");
      if (!function)
        return {};
      const auto *begin = reinterpret_cast<const uint8_t *>(*function);
      bytes.emplace_back(begin, begin + 64);
    }
    return bytes;
  }
};

TEST_F(HostImage, IsRefusedWhenCutAnywhere) {
  EXPECT_EQ(functions(good).size(), 3u);
  for (size_t size = 0; size < good.size(); ++size)
    ASSERT_NE(refusal({good.begin(), good.begin() + ptrdiff_t(size)}), "(accepted)") << size << " of " << good.size() << " bytes";
  std::vector<uint8_t> longer = good;
  longer.push_back(0);
  EXPECT_NE(refusal(longer).find("they end after"), std::string::npos) << refusal(longer);
}

// A header changed in one bit is refused, or says nothing that the kernels depend on.
TEST_F(HostImage, ChangedHeadersAreRefusedOrHarmless) {
  const auto expected = functions(good);
  const std::pair<uint64_t, uint64_t> headers[] = {{0, sizeof(Elf64_Ehdr)},
                                                   {head().e_phoff, head().e_phnum * sizeof(Elf64_Phdr)},
                                                   {head().e_shoff, head().e_shnum * sizeof(Elf64_Shdr)}};
  size_t refused = 0;
  for (const auto &[begin, bytes] : headers)
    for (uint64_t bit = begin * 8; bit < (begin + bytes) * 8; ++bit) {
      std::vector<uint8_t> bad = good;
      bad[bit / 8] ^= uint8_t(1 << bit % 8);
      const auto found = functions(bad);
      refused += found.empty();
      ASSERT_TRUE(found.empty() || found == expected) << "bit " << bit;
    }
  EXPECT_GT(refused, 2000u);
}

// Symbols and names with any byte changed: opened or refused, and nothing outside of the image is found.
TEST_F(HostImage, ChangedSymbolsStayInside) {
  for (unsigned i = 0; i < head().e_shnum; ++i) {
    const auto section = at<Elf64_Shdr>(head().e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_DYNSYM && section.sh_type != SHT_STRTAB)
      continue;
    for (uint64_t byte = section.sh_offset; byte < section.sh_offset + section.sh_size; ++byte)
      for (uint8_t value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
        std::vector<uint8_t> bad = good;
        bad[byte] = value;
        functions(bad); // reads what it finds
      }
  }
}

TEST_F(HostImage, SaysWhatIsWrong) {
  const auto changed = [&](uint64_t offset, auto value) {
    std::vector<uint8_t> bad = good;
    memcpy(bad.data() + offset, &value, sizeof value);
    return refusal(bad);
  };
  EXPECT_EQ(refusal({}), "the plan's kernels cannot be loaded: they are no ELF object; compile the plan again");
  EXPECT_EQ(
      changed(offsetof(Elf64_Ehdr, e_machine), uint16_t(EM_AARCH64)),
      "the plan's kernels cannot be loaded: they are an ELF object of class 2, type 3, machine 183, expected a shared object of "
      "64 bits for x86-64; compile the plan again");
  EXPECT_NE(changed(head().e_phoff + offsetof(Elf64_Phdr, p_memsz), UINT64_MAX).find("a segment of"), std::string::npos);
  for (unsigned i = 0; i < head().e_shnum; ++i)
    if (const uint64_t offset = head().e_shoff + i * sizeof(Elf64_Shdr); at<Elf64_Shdr>(offset).sh_flags & SHF_EXECINSTR) {
      const std::string number = "section " + std::to_string(i);
      EXPECT_NE(
          changed(offset + offsetof(Elf64_Shdr, sh_type), uint32_t(SHT_RELA)).find(number + " of type 4 refers to what is not"),
          std::string::npos);
      EXPECT_NE(changed(offset + offsetof(Elf64_Shdr, sh_addr), uint64_t(16)).find("is in no segment"), std::string::npos);
    }
}

} // namespace
} // namespace k31::test
