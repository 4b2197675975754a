// Logits of every position of a text, whole or in windows that each start from an empty cache.
#pragma once
#include "tools/k31_run/model.h"

namespace k31::run {

// What to run: the ids are given or encoded from a file.
struct TextSource {
  std::vector<int32_t> tokens;
  std::string file;

  Result<std::vector<int32_t>> ids(const ModelOptions &options, const engine::ModelFacts &facts) const;
};

// Rows that run_windows gives: with a window each token but the last has a target, and so a row.
inline size_t window_rows(size_t tokens, uint32_t window) { return window && tokens ? tokens - 1 : tokens; }

// Calls `use` with the logits of every row that this rank's dp group runs: windows are dealt out in turn. The others come by
// share_windows(). Rows come in order inside a window; row r predicts ids[r + 1]. Windows hold `window` targets
// each; 0 runs all ids as one sequence. `chunk`: most tokens of a window in one step, 0 for what fits. Progress on a terminal.
Result<void> run_windows(const Model &model, std::span<const int32_t> ids, uint32_t window, uint32_t chunk,
                         const std::function<void(size_t row, std::span<const float> logits)> &use);

// `values` holds `row_bytes` for each row; what the windows of other dp groups have is fetched from their ranks.
Result<void> share_windows(const Model &model, size_t rows, uint32_t window, size_t row_bytes, std::span<std::byte> values);

} // namespace k31::run
