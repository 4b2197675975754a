// --memory-limit: what fits, and the arithmetic of what does not.
#include "dialects/Attn/Attn.h"
#include "runtime/base/cat.h"
#include "tools/k31c/commands.h"
#include <charconv>

namespace k31::tool {

std::optional<uint64_t> parseMemoryLimit(const std::string &text) {
  // As the driver reports them: the whole memory of the device.
  if (text == "h100")
    return uint64_t(81559) << 20;
  if (text == "h200")
    return uint64_t(143771) << 20;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number == 0)
    return std::nullopt;
  const std::string unit(end, text.data() + text.size());
  constexpr const char *units[] = {"", "K", "M", "G", "T"};
  for (int i = 0; i < 5; ++i)
    if (unit == units[i] || (i && unit == std::string(units[i]) + "iB"))
      return number > (~uint64_t(0) >> (10 * i)) ? std::nullopt : std::optional(number << (10 * i));
  return std::nullopt;
}

std::string overLimit(const MemoryTable &table, uint64_t limit, bool &cacheFits) {
  cacheFits = true;
  if (table.total <= limit)
    return "";
  const uint64_t fixed = table.total - table.cache - table.state;
  std::string why = cat("the plan needs ", table.total, " bytes (", readableBytes(table.total), "), --memory-limit is ", limit,
                        " (", readableBytes(limit), "): ", fixed, " for weights, activations and the rest + ", table.cache,
                        " for ", table.cacheTokens, " cached tokens + ", table.state, " for ", table.sequences, " sequences");
  constexpr uint64_t block = kBlockTokens;
  const uint64_t withState = fixed + table.state;
  if (withState < limit && table.bytesPerToken > 0)
    if (const uint64_t tokens = (limit - withState) / table.bytesPerToken / block * block; tokens >= block)
      return cat(why, "; --cache-tokens ", tokens, " fits");
  // One sequence of one block is the least that serves anything.
  const uint64_t least = fixed + (table.sequences ? table.state / table.sequences : 0) + table.bytesPerToken * block;
  if (least <= limit) {
    const uint64_t each = table.state / table.sequences;
    uint64_t sequences = 1;
    while (sequences + 1 < table.sequences && fixed + (sequences + 1) * (each + table.bytesPerToken * block) <= limit)
      ++sequences;
    const uint64_t tokens =
        table.bytesPerToken ? (limit - fixed - sequences * each) / table.bytesPerToken / block * block : block;
    return cat(why, "; --max-batch ", sequences, " --cache-tokens ", tokens, " fits");
  }
  cacheFits = false;
  uint64_t rows = 0; // what a smaller chunk may save at most
  for (const MemoryLine &line : table.lines)
    if (line.name == "activations" || line.name == "io" || line.name == "workspace")
      rows += line.bytes;
  return cat(why, "; no cache size fits: the rest alone needs ", least, " bytes with one sequence, so use ",
             least - limit < rows ? "a smaller --prefill-chunk or " : "", "more memory");
}

} // namespace k31::tool
