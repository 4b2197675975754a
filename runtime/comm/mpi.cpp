#include "runtime/comm/mpi.h"
#include "runtime/base/cat.h"
#include "runtime/comm/mpi_module.h"
#include "runtime/comm/wait.h"
#include <climits>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <mutex>

namespace k31::comm {
namespace {

constexpr const char *kFile = "libk31_mpi.so";

// MPI may be entered by one thread at a time; two sessions of a process may run on two threads.
std::mutex mutex;

tl::unexpected<Error> mpi_error(const MpiModule &mpi, const std::string &what, int error) {
  char text[512] = "";
  mpi.message(error, text, sizeof text);
  return fail(Code::io, cat(what, ": MPI says ", quote(text, 400)));
}

class MpiGroup : public Group {
public:
  MpiGroup(const MpiModule &mpi, void *handle, uint32_t rank, uint32_t size)
      : Group(rank, size), mpi(mpi), handle(handle), sent(size), received(size), places(size), posts(kPosts) {}
  ~MpiGroup() override {
    for (Post &post : posts) // others may still read them
      (void)finish(post);
    const std::lock_guard lock(mutex);
    mpi.free_group(handle);
  }

  Result<void> all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (mine.empty()) { // MPI waits for nobody where no bytes move
      std::vector<std::byte> arrived(size());
      return all_gather(std::span(arrived).subspan(rank(), 1), arrived);
    }
    const bool in_place = mine.data() == all.data() + rank() * mine.size();
    return wait("all_gather", mine.size(), [&](int bytes, void **request) {
      return mpi.all_gather(handle, in_place ? nullptr : mine.data(), all.data(), bytes, request);
    });
  }
  Result<void> all_to_all(std::span<const std::byte> source, std::span<std::byte> dest) override {
    return wait("all_to_all", source.size() / size(),
                [&](int piece, void **request) { return mpi.all_to_all(handle, source.data(), dest.data(), piece, request); });
  }
  Result<void> exchange(std::span<const std::byte> source, std::span<std::byte> dest, std::span<const uint64_t> live) override {
    const size_t piece = source.size() / size();
    K31_TRY(fits("exchange", piece));
    for (uint32_t r = 0; r < size(); ++r)
      sent[r] = int(live[r]), places[r] = int(r * piece);
    K31_TRY(wait("exchange", sizeof(int), [&](int bytes, void **request) {
      return mpi.all_to_all(handle, sent.data(), received.data(), bytes, request);
    }));
    return wait("exchange", piece, [&](int, void **request) {
      return mpi.exchange(handle, source.data(), sent.data(), dest.data(), received.data(), places.data(), request);
    });
  }
  Result<void> broadcast(std::span<std::byte> bytes, uint32_t root) override {
    return wait("broadcast", bytes.size(),
                [&](int count, void **request) { return mpi.broadcast(handle, bytes.data(), count, int(root), request); });
  }
  Result<void> send(std::span<const std::byte> bytes, uint32_t to) override {
    return wait("send", bytes.size(),
                [&](int count, void **request) { return mpi.send(handle, bytes.data(), count, int(to), request); });
  }
  Result<void> receive(std::span<std::byte> bytes, uint32_t from) override {
    return wait("receive", bytes.size(),
                [&](int count, void **request) { return mpi.receive(handle, bytes.data(), count, int(from), request); });
  }

  // Sends that wait in buffers of their own.
  Result<void> post(std::span<const std::byte> bytes) override {
    Post &post = posts[posted++ % kPosts];
    K31_TRY(finish(post));
    post.bytes.assign(bytes.begin(), bytes.end());
    const std::lock_guard lock(mutex);
    for (uint32_t r = 0; r < size(); ++r)
      if (r != rank())
        if (const int error = mpi.send(handle, post.bytes.data(), int(bytes.size()), int(r), &post.requests.emplace_back()))
          return mpi_error(mpi, "post", error);
    return {};
  }
  Result<void> collect(std::span<std::byte> bytes, uint32_t from) override { return receive(bytes, from); }

private:
  struct Post {
    std::vector<std::byte> bytes;
    std::vector<void *> requests;
  };
  Result<void> finish(Post &post) {
    for (void *request : post.requests)
      K31_TRY(finish("post", request));
    post.requests.clear();
    return {};
  }
  Result<void> fits(const char *what, size_t bytes) const {
    if (bytes > INT_MAX / size())
      return fail(Code::unsupported, cat(what, " of ", bytes, " bytes a rank over ", size(), " ranks; MPI moves at most ",
                                         INT_MAX / size(), ": compile with a smaller --prefill-chunk"));
    return {};
  }
  template <class Start> Result<void> wait(const char *what, size_t bytes, Start &&start) {
    K31_TRY(fits(what, bytes));
    void *request = nullptr;
    {
      const std::lock_guard lock(mutex);
      if (const int error = start(int(bytes), &request))
        return mpi_error(mpi, what, error);
    }
    return finish(what, request);
  }
  Result<void> finish(const char *what, void *request) {
    return wait_until([&]() -> Result<bool> {
      const std::lock_guard lock(mutex);
      int done = 0;
      if (const int error = mpi.test(request, &done))
        return mpi_error(mpi, what, error);
      return done != 0;
    });
  }

  const MpiModule &mpi;
  void *handle;
  std::vector<int> sent, received, places; // of exchange(), by rank
  std::vector<Post> posts;                 // in turn
  uint64_t posted = 0;
};

class MpiWorld : public World {
public:
  explicit MpiWorld(const MpiModule &mpi) : mpi(mpi) {}
  ~MpiWorld() override {
    const std::lock_guard lock(mutex);
    if (started)
      mpi.stop();
  }
  Result<void> start() {
    if (const int error = mpi.start(&rank_, &size_, &local_rank_, &local_size_))
      return mpi_error(mpi, "MPI cannot start", error);
    started = true;
    return {};
  }
  uint32_t rank() const override { return uint32_t(rank_); }
  uint32_t size() const override { return uint32_t(size_); }
  uint32_t local_rank() const override { return uint32_t(local_rank_); }
  uint32_t local_size() const override { return uint32_t(local_size_); }
  Result<std::unique_ptr<Group>> group(const std::vector<uint32_t> &members, uint32_t place) override {
    const std::lock_guard lock(mutex);
    void *handle = nullptr;
    if (const int error = mpi.make_group(int(members[0]), int(place), &handle))
      return mpi_error(mpi, "cannot make a group of ranks", error);
    return std::make_unique<MpiGroup>(mpi, handle, place, uint32_t(members.size()));
  }

private:
  const MpiModule &mpi;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  bool started = false;
};

// The variables of Open MPI, of MPICH and its relatives, and of Slurm's srun, which also starts programs without MPI.
constexpr const char *kSizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
constexpr const char *kRanks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};

std::optional<uint32_t> variable(const char *name) {
  const char *text = std::getenv(name);
  if (!text || *text < '0' || *text > '9')
    return std::nullopt;
  return uint32_t(std::strtoul(text, nullptr, 10));
}

} // namespace

std::optional<uint32_t> launched_ranks() {
  for (size_t i = 0; i < std::size(kSizes); ++i)
    if (const auto size = variable(kSizes[i]); size && variable(kRanks[i]))
      return size;
  return std::nullopt;
}

uint32_t launched_rank() {
  for (size_t i = 0; i < std::size(kSizes); ++i)
    if (const auto rank = variable(kRanks[i]); rank && variable(kSizes[i]))
      return *rank;
  return 0;
}

Result<std::unique_ptr<World>> start_mpi() {
  std::error_code ignored;
  const std::filesystem::path beside = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / kFile;
  // Open MPI finds its own parts by the symbols of its library: global.
  void *library = dlopen(beside.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    return fail(Code::not_found, cat("a launcher started this process, but its MPI module cannot be opened: ",
                                     quote(dlerror(), 400), "; build ", kFile, " with the MPI of the launcher, or start ",
                                     "k31-run without a launcher: it starts the ranks of one host by itself"));
  const auto find = reinterpret_cast<decltype(&k31_mpi_module)>(dlsym(library, "k31_mpi_module"));
  const MpiModule *mpi = find ? find() : nullptr;
  if (!mpi || mpi->version != kMpiModuleVersion)
    return fail(Code::unsupported, cat(quote(beside.string(), 4096), " is of version ", mpi ? mpi->version : 0, ", expected ",
                                       kMpiModuleVersion, "; build both from the same sources"));
  auto world = std::make_unique<MpiWorld>(*mpi);
  K31_TRY(world->start());
  return world;
}

} // namespace k31::comm
