#include "runtime/weights/loader.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include "runtime/weights/placement.h"
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

namespace k31::weights {
namespace {

constexpr uint64_t kMaxReaders = 16;
constexpr uint64_t kDirect = 256u << 10; // a run of at least this many bytes is read straight into place
constexpr uint64_t kItem = 32u << 20;    // bytes of one piece of work

// Rows [begin, end) of one member, counted from row_begin.
struct Item {
  uint32_t stack, member;
  uint64_t begin, end;
};

// In the order of the files, so that disks read forward.
std::vector<Item> list_items(const plan::Plan &plan) {
  std::vector<Item> items;
  for (uint32_t s = 0; s < plan.weights()->size(); ++s) {
    const plan::WeightStack &stack = *plan.weights()->Get(s);
    const uint64_t rows = stack.layout()->row_count(), step = std::max<uint64_t>(kItem / stack.layout()->row_bytes(), 1);
    for (uint32_t m = 0; m < stack.files()->size(); ++m)
      for (uint64_t begin = 0; begin < rows; begin += std::min(step, rows - begin))
        items.push_back({s, m, begin, std::min(rows, begin + std::min(step, rows - begin))});
  }
  std::sort(items.begin(), items.end(), [&](const Item &a, const Item &b) {
    const plan::WeightStack &x = *plan.weights()->Get(a.stack), &y = *plan.weights()->Get(b.stack);
    return std::tuple(x.files()->Get(a.member), x.offsets()->Get(a.member), a.begin) <
           std::tuple(y.files()->Get(b.member), y.offsets()->Get(b.member), b.begin);
  });
  return items;
}

class Loader {
public:
  Loader(const plan::Plan &plan, const MakeSink &make_sink, std::vector<File> files)
      : plan(plan), make_sink(make_sink), files(std::move(files)), items(list_items(plan)) {
    for (const plan::WeightStack *stack : *plan.weights())
      total += stack->layout()->row_count() * stack->layout()->byte_count() * stack->files()->size();
  }

  Result<void> run(int threads, const Progress &progress) {
    const size_t count = std::clamp<size_t>(static_cast<size_t>(std::max(threads, 1)), 1,
                                            std::min<size_t>(kMaxReaders, std::max<size_t>(items.size(), 1)));
    active = count;
    std::vector<std::jthread> readers;
    try {
      for (size_t i = 0; i < count; ++i)
        readers.emplace_back([this] { read_items(); });
    } catch (const std::exception &refused) { // no more threads: those that there are do the work
      const std::lock_guard lock(mutex);
      active -= count - readers.size();
      if (readers.empty())
        error = Error{Code::out_of_memory,
                      cat("cannot start a thread that reads weights: ", refused.what(), "; raise the limits of the process")};
    }
    {
      std::unique_lock lock(mutex);
      while (!finished.wait_for(lock, std::chrono::milliseconds(100), [this] { return active == 0; }))
        if (progress)
          progress(done.load(std::memory_order_relaxed), total);
    }
    readers.clear();
    if (error)
      return tl::unexpected(std::move(*error));
    if (progress)
      progress(total, total);
    return {};
  }

private:
  void read_items() {
    if (auto result = read_all_or_report(); !result) {
      const std::lock_guard lock(mutex);
      if (!error)
        error = std::move(result.error());
      stop = true;
    }
    const std::lock_guard lock(mutex);
    if (--active == 0)
      finished.notify_one();
  }

  // Nothing is thrown out of a reader: that would end the process.
  Result<void> read_all_or_report() try { return read_all(); } catch (const std::exception &problem) {
    return fail(Code::out_of_memory, cat("no memory is left to read weights: ", problem.what()));
  }

  Result<void> read_all() {
    K31_ASSIGN(const std::unique_ptr<Sink> sink, make_sink());
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < items.size() && !stop.load(std::memory_order_relaxed);)
      if (auto result = read_item(items[i], *sink); !result)
        return context("tensor '" + member_name(*plan.weights()->Get(items[i].stack), items[i].member) + "'",
                       std::move(result.error()));
    return sink->finish();
  }

  Result<void> read_item(const Item &item, Sink &sink) {
    const plan::WeightStack &stack = *plan.weights()->Get(item.stack);
    const plan::Layout &l = *stack.layout();
    const File &file = files[stack.files()->Get(item.member)];
    const uint64_t source = stack.offsets()->Get(item.member) + l.row_begin() * l.row_bytes();
    const uint64_t member = stack.dest() + stack.stride() * item.member;

    for (uint64_t r = item.begin; r < item.end;) {
      uint64_t rows = run_length(l, r, item.end - r);
      const uint64_t bytes = rows == 1 ? l.byte_count() : rows * l.row_bytes();
      const uint64_t from = source + r * l.row_bytes() + l.byte_begin(), to = member + dest_row(l, r) * l.dest_row_bytes();
      std::byte *direct = sink.direct(stack.arena(), to);
      // The last rows of a run are read straight into place too: they need no buffer either.
      if (direct && (bytes >= kDirect || rows == item.end - r || l.row_bytes() > kBuffer)) {
        K31_TRY(file.read_at(from, {direct, bytes}));
        done.fetch_add(bytes, std::memory_order_relaxed);
      } else if (l.row_bytes() > kBuffer) { // a row in pieces
        rows = 1;
        for (uint64_t at = 0, piece; at < l.byte_count(); at += piece) {
          piece = std::min(kBuffer, l.byte_count() - at);
          K31_ASSIGN(const std::span<std::byte> buffer, sink.buffer());
          K31_TRY(file.read_at(from + at, buffer.first(piece)));
          K31_TRY(sink.put(piece, stack.arena(), to + at));
          done.fetch_add(piece, std::memory_order_relaxed);
        }
      } else {
        rows = std::min(item.end - r, kBuffer / l.row_bytes());
        K31_ASSIGN(const std::span<std::byte> buffer, sink.buffer());
        K31_TRY(file.read_at(source + r * l.row_bytes(), buffer.first(rows * l.row_bytes())));
        K31_TRY(sink.place(l, r, rows, stack.arena(), member));
        done.fetch_add(rows * l.byte_count(), std::memory_order_relaxed);
      }
      r += rows;
    }
    return {};
  }

  const plan::Plan &plan;
  const MakeSink &make_sink;
  std::vector<File> files;
  std::vector<Item> items;
  uint64_t total = 0;
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex; // guards the three below
  std::condition_variable finished;
  size_t active = 0;
  std::optional<Error> error;
};

} // namespace

Result<void> load(const plan::Plan &plan, const std::string &folder, const MakeSink &sink, int threads,
                  const Progress &progress) {
  std::vector<File> files;
  for (const plan::CheckpointFile *file : *plan.files()) {
    K31_ASSIGN(File opened, File::open((std::filesystem::path(folder) / file->name()->str()).string()));
    files.push_back(std::move(opened));
  }
  return Loader(plan, sink, std::move(files)).run(threads, progress);
}

} // namespace k31::weights
