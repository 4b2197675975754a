#include "tools/k31_run/windows.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include "runtime/engine/engine.h"
#include <algorithm>
#include <cstdio>

namespace k31::run {

Result<std::vector<int32_t>> TextSource::ids(const ModelOptions &options, const engine::ModelFacts &facts) const {
  if (file.empty())
    return tokens;
  K31_ASSIGN(const text::Tokenizer tokenizer, open_tokenizer(options, facts));
  K31_ASSIGN(const std::string content, read_text(file));
  return tokenizer.encode(content);
}

Result<void> run_windows(const Model &model, std::span<const int32_t> ids, uint32_t window, uint32_t chunk,
                         const std::function<void(size_t row, std::span<const float> logits)> &use) {
  const size_t rows = window_rows(ids.size(), window);
  const size_t step = window ? window : rows;
  if (!rows)
    return fail(Code::invalid_input, cat("the text has ", ids.size(), " tokens; expected at least ", window ? 2 : 1));
  size_t given = 0, wanted = 0;
  engine::Engine engine(*model.executor, {.chunk = chunk});
  std::vector<engine::SequenceId> sequences;
  for (size_t begin = 0; begin < rows; begin += step) {
    const std::span<const int32_t> part = ids.subspan(begin, std::min(step, rows - begin));
    if (!model.runs(begin / step))
      continue;
    wanted += part.size();
    const auto id = engine.add(
        {.tokens = {part.begin(), part.end()}, .on_logits = [&, begin](uint64_t position, std::span<const float> logits) {
           ++given;
           use(begin + position, logits);
         }});
    if (!id)
      return window ? context(cat("a window of ", part.size()), id.error()) : tl::unexpected(id.error());
    sequences.push_back(*id);
  }
  for (bool more = true; more;) {
    K31_ASSIGN(const engine::StepReport report, engine.step());
    more = report.ran;
    if (on_terminal())
      std::fprintf(stderr, "\rtokens: %zu of %zu ", given, wanted);
  }
  if (on_terminal())
    std::fprintf(stderr, "\r\033[K");
  for (const engine::SequenceId id : sequences)
    if (const auto output = engine.take(id); output && output->error)
      return tl::unexpected(*output->error);
  if (given != wanted)
    return fail(Code::internal, cat("the engine gave ", given, " rows of logits of ", wanted));
  return {};
}

Result<void> share_windows(const Model &model, size_t rows, uint32_t window, size_t row_bytes, std::span<std::byte> values) {
  const size_t step = window ? window : rows;
  for (size_t begin = 0; begin < rows; begin += step)
    K31_TRY(model.share(begin / step, values.subspan(begin * row_bytes, std::min(step, rows - begin) * row_bytes)));
  return {};
}

} // namespace k31::run
