#include "runtime/weights/loader.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include "runtime/plan/mesh.h"
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

// Rows [begin, end) of one member, counted from the share's row_begin.
struct Item {
  uint32_t stack, member;
  uint64_t begin, end;
};

// In the order of the files, so that disks read forward, and all ranks of a host ask for the same pages at about the same time.
std::vector<Item> list_items(const plan::Plan &plan, const std::vector<Share> &shares) {
  std::vector<Item> items;
  for (uint32_t s = 0; s < plan.weights()->size(); ++s) {
    const Share &share = shares[s];
    if (share.empty())
      continue;
    const uint64_t rows = share.layout.row_count, step = std::max<uint64_t>(kItem / share.layout.row_bytes, 1);
    for (uint32_t m = share.first; m < share.first + share.count; ++m)
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

std::vector<Share> list_shares(const plan::Plan &plan, const Holder &holder) {
  std::vector<Share> shares;
  for (const plan::WeightStack *stack : *plan.weights())
    shares.push_back(held_by(holder, *stack));
  return shares;
}

class Checkpoint : public Source {
public:
  explicit Checkpoint(std::vector<File> files) : files(std::move(files)) {}
  Result<void> read(const plan::WeightStack &stack, uint32_t member, uint64_t offset, std::span<std::byte> out) const override {
    return files[stack.files()->Get(member)].read_at(stack.offsets()->Get(member) + offset, out);
  }

private:
  std::vector<File> files;
};

class Loader {
public:
  Loader(const plan::Plan &plan, const Holder &holder, const Source &source, const MakeSink &make_sink)
      : plan(plan), source(source), make_sink(make_sink), shares(list_shares(plan, holder)), items(list_items(plan, shares)) {
    for (const Share &share : shares)
      total += share.empty() ? 0 : share.layout.row_count * share.layout.byte_count * share.count;
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
    const Share &share = shares[item.stack];
    const Layout &l = share.layout;
    const uint64_t member = stack.dest() + stack.stride() * (item.member - share.first);

    for (uint64_t r = item.begin; r < item.end;) {
      uint64_t rows = run_length(l, r, item.end - r);
      const uint64_t bytes = rows == 1 ? l.byte_count : rows * l.row_bytes;
      const uint64_t from = (l.row_begin + r) * l.row_bytes + l.byte_begin, to = member + dest_row(l, r) * l.dest_row_bytes;
      std::byte *direct = sink.direct(stack.arena(), to);
      // The last rows of a run are read straight into place too: they need no buffer either.
      if (direct && (bytes >= kDirect || rows == item.end - r || l.row_bytes > kBuffer || sliced(l))) {
        K31_TRY(source.read(stack, item.member, from, {direct, bytes}));
        done.fetch_add(bytes, std::memory_order_relaxed);
      } else if (l.byte_count > kBuffer) { // a row in pieces
        rows = 1;
        for (uint64_t at = 0, piece; at < l.byte_count; at += piece) {
          piece = std::min(kBuffer, l.byte_count - at);
          K31_ASSIGN(const std::span<std::byte> buffer, sink.buffer());
          K31_TRY(source.read(stack, item.member, from + at, buffer.first(piece)));
          K31_TRY(sink.put(piece, stack.arena(), to + at));
          done.fetch_add(piece, std::memory_order_relaxed);
        }
      } else {
        K31_ASSIGN(rows, read_rows(item, r, stack, l, sink, member));
      }
      r += rows;
    }
    return {};
  }

  // Rows of which a part is used that is worth a read of its own.
  static bool sliced(const Layout &l) { return l.byte_count < l.row_bytes && l.byte_count >= kSlice; }

  // As many rows as the buffer holds, from row r on; how many that were.
  Result<uint64_t> read_rows(const Item &item, uint64_t r, const plan::WeightStack &stack, const Layout &l, Sink &sink,
                             uint64_t member) {
    K31_ASSIGN(const std::span<std::byte> buffer, sink.buffer());
    const uint64_t first = (l.row_begin + r) * l.row_bytes;
    uint64_t rows = 0;
    if (sliced(l) || l.row_bytes > kBuffer) {
      Layout packed = l; // the used parts of the rows follow each other in the buffer
      packed.row_bytes = l.byte_count, packed.byte_begin = 0;
      rows = std::min(item.end - r, kBuffer / l.byte_count);
      for (uint64_t i = 0; i < rows; ++i)
        K31_TRY(source.read(stack, item.member, first + i * l.row_bytes + l.byte_begin,
                            buffer.subspan(i * l.byte_count, l.byte_count)));
      K31_TRY(sink.place(packed, r, rows, stack.arena(), member));
    } else {
      rows = std::min(item.end - r, kBuffer / l.row_bytes);
      K31_TRY(source.read(stack, item.member, first, buffer.first(rows * l.row_bytes)));
      K31_TRY(sink.place(l, r, rows, stack.arena(), member));
    }
    done.fetch_add(rows * l.byte_count, std::memory_order_relaxed);
    return rows;
  }

  const plan::Plan &plan;
  const Source &source;
  const MakeSink &make_sink;
  std::vector<Share> shares; // by stack
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

Share held_by(const Holder &holder, const plan::WeightStack &stack) {
  const plan::MeshAxis axis = stack.shard() ? stack.shard()->axis() : plan::MeshAxis::none;
  Share share = share_of(stack, coordinate(holder.mesh, axis, holder.rank), plan::ranks_along(holder.mesh, axis));
  if (stack.stage() != coordinate(holder.mesh, plan::MeshAxis::pp, holder.rank))
    share.count = 0;
  return share;
}

Result<std::unique_ptr<Source>> open_checkpoint(const plan::Plan &plan, const std::string &folder) {
  std::vector<File> files;
  for (const plan::CheckpointFile *file : *plan.files()) {
    K31_ASSIGN(File opened, File::open((std::filesystem::path(folder) / file->name()->str()).string()));
    files.push_back(std::move(opened));
  }
  return std::make_unique<Checkpoint>(std::move(files));
}

Result<std::unique_ptr<Source>> open_source(const plan::Plan &plan, const std::string &folder, std::optional<uint64_t> seed,
                                            bool skewed) {
  return seed ? make_synthetic(*seed, skewed) : open_checkpoint(plan, folder);
}

Result<void> load(const plan::Plan &plan, const Holder &holder, const Source &source, const MakeSink &sink, int threads,
                  const Progress &progress) {
  return Loader(plan, holder, source, sink).run(threads, progress);
}

} // namespace k31::weights
