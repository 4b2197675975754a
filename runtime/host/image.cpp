#include "runtime/host/image.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <elf.h>
#include <optional>
#include <sys/mman.h>
#include <vector>

namespace k31::host {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMostZeros = 1 << 20; // bytes of memory beyond the file's

uint64_t page_of(uint64_t address) { return address / kPage * kPage; }

// [begin, begin + bytes) lies in [from, from + size).
bool inside(uint64_t begin, uint64_t bytes, uint64_t from, uint64_t size) {
  return begin >= from && bytes <= size && begin - from <= size - bytes;
}

tl::unexpected<Error> wrong(const std::string &what) {
  return fail(Code::invalid_input, "the plan's kernels cannot be loaded: " + what + "; compile the plan again");
}

// What of an object is needed to run it. Everything is copied out: a plan's bytes have any alignment.
struct Object {
  std::span<const uint8_t> bytes;
  std::vector<Elf64_Phdr> segments; // of code and data, by address
  std::vector<Elf64_Shdr> sections;

  // `count` records of a table; none when it does not lie in the object.
  template <class T> std::optional<std::vector<T>> table(uint64_t offset, uint64_t count) const {
    if (count > bytes.size() / sizeof(T) || !inside(offset, count * sizeof(T), 0, bytes.size()))
      return std::nullopt;
    std::vector<T> records(count);
    if (count)
      memcpy(records.data(), bytes.data() + offset, count * sizeof(T));
    return records;
  }

  Result<void> read_headers() {
    const auto first = table<Elf64_Ehdr>(0, 1);
    if (!first || memcmp((*first)[0].e_ident, ELFMAG, SELFMAG) != 0)
      return wrong("they are no ELF object");
    const Elf64_Ehdr &head = (*first)[0];
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_type != ET_DYN ||
        head.e_machine != EM_X86_64)
      return wrong(cat("they are an ELF object of class ", int(head.e_ident[EI_CLASS]), ", type ", head.e_type, ", machine ",
                       head.e_machine, ", expected a shared object of 64 bits for x86-64"));
    if (head.e_phentsize != sizeof(Elf64_Phdr) || head.e_shentsize != sizeof(Elf64_Shdr))
      return wrong(cat("their ELF headers have ", head.e_phentsize, " and ", head.e_shentsize, " bytes, expected 56 and 64"));
    const auto programs = table<Elf64_Phdr>(head.e_phoff, head.e_phnum);
    auto all = table<Elf64_Shdr>(head.e_shoff, head.e_shnum);
    if (!programs || !all || head.e_shoff + head.e_shnum * sizeof(Elf64_Shdr) != bytes.size())
      return wrong(cat("they end after ", bytes.size(), " bytes, the headers say ", head.e_shnum, " sections at ", head.e_shoff));
    sections = std::move(*all);
    for (const Elf64_Phdr &program : *programs)
      if (program.p_type == PT_LOAD)
        segments.push_back(program);
    return {};
  }

  Result<void> check_segments() const {
    uint64_t end = 0; // of the segments before
    for (const Elf64_Phdr &s : segments) {
      const bool placed = inside(s.p_offset, s.p_filesz, 0, bytes.size()) && s.p_filesz <= s.p_memsz &&
                          page_of(s.p_vaddr) >= end && inside(s.p_vaddr, s.p_memsz, 0, bytes.size() + kMostZeros);
      const uint32_t rights = s.p_flags;
      if (!placed || (rights != PF_R && rights != (PF_R | PF_W) && rights != (PF_R | PF_X)))
        return wrong(cat("a segment of ", s.p_filesz, " bytes at ", s.p_offset, " is to be ", s.p_memsz, " at address ",
                         s.p_vaddr, " with flags ", s.p_flags, ", in an object of ", bytes.size(), " bytes"));
      end = s.p_vaddr + s.p_memsz;
    }
    return segments.empty() ? wrong("no segment is to be loaded") : Result<void>();
  }

  // The segment that holds the section at the section's place, with its rights.
  const Elf64_Phdr *segment_of(const Elf64_Shdr &section) const {
    for (const Elf64_Phdr &s : segments)
      if (inside(section.sh_addr, section.sh_size, s.p_vaddr, s.p_memsz) &&
          section.sh_addr - s.p_vaddr == section.sh_offset - s.p_offset &&
          bool(section.sh_flags & SHF_WRITE) == bool(s.p_flags & PF_W) &&
          bool(section.sh_flags & SHF_EXECINSTR) == bool(s.p_flags & PF_X) &&
          (section.sh_type == SHT_NOBITS || inside(section.sh_offset, section.sh_size, s.p_offset, s.p_filesz)))
        return &s;
    return nullptr;
  }

  // Segments and sections say the same, and the code refers to nothing outside.
  Result<void> check_sections() const {
    constexpr uint32_t outside[] = {SHT_RELA, SHT_REL, SHT_RELR, SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY};
    for (size_t i = 0; i < sections.size(); ++i) {
      const Elf64_Shdr &section = sections[i];
      if (!(section.sh_flags & SHF_ALLOC))
        continue;
      if (section.sh_flags & SHF_TLS || std::count(std::begin(outside), std::end(outside), section.sh_type))
        return wrong(cat("section ", i, " of type ", section.sh_type, " refers to what is not in the plan"));
      if (!segment_of(section))
        return wrong(cat("section ", i, " of ", section.sh_size, " bytes at ", section.sh_offset, ", address ", section.sh_addr,
                         ", is in no segment"));
    }
    return {};
  }

  Result<std::unordered_map<std::string, uint64_t>> functions() const {
    std::unordered_map<std::string, uint64_t> found;
    for (const Elf64_Shdr &section : sections) {
      if (section.sh_type != SHT_DYNSYM)
        continue;
      const Elf64_Shdr *names = section.sh_link < sections.size() ? &sections[section.sh_link] : nullptr;
      const auto symbols = table<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym));
      if (!names || names->sh_type != SHT_STRTAB || !inside(names->sh_offset, names->sh_size, 0, bytes.size()) || !symbols)
        return wrong("their table of symbols lies outside");
      const auto text = bytes.subspan(names->sh_offset, names->sh_size);
      for (size_t i = 1; i < symbols->size(); ++i) { // 0 is reserved
        const Elf64_Sym &symbol = (*symbols)[i];
        const auto begin = text.begin() + std::min<uint64_t>(symbol.st_name, text.size());
        const auto end = std::find(begin, text.end(), 0);
        const bool code = std::any_of(segments.begin(), segments.end(), [&](const Elf64_Phdr &s) {
          return s.p_flags & PF_X && symbol.st_size && inside(symbol.st_value, symbol.st_size, s.p_vaddr, s.p_filesz);
        });
        if (end == text.end() || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF || !code)
          return wrong(cat("symbol ", i, " is no function in them: ", symbol.st_size, " bytes at address ", symbol.st_value));
        found.emplace(std::string(begin, end), symbol.st_value);
      }
    }
    return found;
  }
};

} // namespace

Result<Image> Image::open(std::span<const uint8_t> code) {
  Object object{code, {}, {}};
  K31_TRY(object.read_headers());
  K31_TRY(object.check_segments());
  K31_TRY(object.check_sections());
  Image image;
  K31_ASSIGN(image.symbols, object.functions());
  const Elf64_Phdr &last = object.segments.back();
  const size_t bytes = page_of(last.p_vaddr + last.p_memsz + kPage - 1);
  void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    return system_error(cat("cannot map ", bytes, " bytes for the plan's kernels"), errno);
  image.map = {static_cast<uint8_t *>(at), bytes};
  for (const Elf64_Phdr &s : object.segments)
    if (s.p_filesz)
      memcpy(&image.map[s.p_vaddr], &code[s.p_offset], s.p_filesz);
  for (const Elf64_Phdr &s : object.segments) {
    const uint64_t begin = page_of(s.p_vaddr);
    const int rights =
        (s.p_flags & PF_R ? PROT_READ : 0) | (s.p_flags & PF_W ? PROT_WRITE : 0) | (s.p_flags & PF_X ? PROT_EXEC : 0);
    if (mprotect(image.map.data() + begin, s.p_vaddr + s.p_memsz - begin, rights) != 0)
      return system_error("cannot make the plan's kernels executable", errno);
  }
  return image;
}

Image::~Image() {
  if (!map.empty())
    munmap(map.data(), map.size());
}

Result<KernelFunction> Image::find(const std::string &symbol) const {
  const auto at = symbols.find(symbol);
  if (at == symbols.end())
    return fail(Code::invalid_input, "the image has no symbol " + quote(symbol) + "; the plan is wrong, compile it again");
  return reinterpret_cast<KernelFunction>(const_cast<uint8_t *>(map.data()) + at->second);
}

} // namespace k31::host
