#include "runtime/cuda/nccl.h"
#include "runtime/base/cat.h"
#include "runtime/comm/abort.h"
#include "runtime/cuda/memory.h"
#include "runtime/plan/dtype.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <optional>

namespace k31::cuda {
namespace {

using Comm = struct ncclComm *;
struct UniqueId {
  char bytes[128];
};
constexpr int kSum = 0;                                            // ncclSum
constexpr int kUint8 = 1, kInt32 = 2, kFloat32 = 7, kBfloat16 = 9; // ncclDataType_t

struct Library {
#define K31_NCCL_FUNCTION(result, name, symbol, parameters) result(*name) parameters;
#include "runtime/cuda/nccl_functions.h"
#undef K31_NCCL_FUNCTION
};

int type_of(plan::DType type) {
  switch (type) {
  case plan::DType::f32:
    return kFloat32;
  case plan::DType::bf16:
    return kBfloat16;
  case plan::DType::i32:
    return kInt32;
  case plan::DType::u8:
    return kUint8;
  }
  return kUint8;
}

Result<Library> open_library() {
  void *handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return fail(Code::unsupported, cat("the plan is for several GPUs, but NCCL cannot be opened: ", quote(dlerror(), 400),
                                       "; install NCCL 2.14 or later, or name its folder in LD_LIBRARY_PATH"));
  Library library{};
#define K31_NCCL_FUNCTION(result, name, symbol, parameters)                                                                      \
  if (!(library.name = reinterpret_cast<result(*) parameters>(dlsym(handle, symbol))))                                           \
    return fail(Code::unsupported, "libnccl.so.2 has no function " symbol "; install NCCL 2.14 or later");
#include "runtime/cuda/nccl_functions.h"
#undef K31_NCCL_FUNCTION
  return library;
}

// NCCL looks for an interface other than the loopback to meet its peers; a machine that has none must be told.
bool only_loopback() {
  ifaddrs *list = nullptr;
  if (::getifaddrs(&list) != 0)
    return false;
  bool only = true;
  for (const ifaddrs *one = list; one; one = one->ifa_next)
    only &= !one->ifa_addr || (one->ifa_addr->sa_family != AF_INET && one->ifa_addr->sa_family != AF_INET6) ||
            (one->ifa_flags & IFF_LOOPBACK);
  ::freeifaddrs(list);
  return only;
}

class Communicators : public Nccl {
public:
  Communicators(const Library &library, const comm::Communicator &ranks) : library(library), ranks(ranks) {
    on_abort.emplace([this] { abort(); });
  }

  ~Communicators() override {
    on_abort.reset(); // first: what is destroyed must not be aborted
    for (const auto &[members, comm] : comms)
      library.destroy(comm);
  }

  Result<void> connect(const plan::Mesh &mesh, const Driver &driver, Stream stream) {
    comms.reserve(std::size(by_axis)); // abort() may look at it meanwhile
    for (const plan::MeshAxis axis : plan::EnumValuesMeshAxis()) {
      comm::Group &group = ranks.group(axis);
      if (group.size() == 1)
        continue;
      const std::vector<uint32_t> members = group_of(mesh, axis, ranks.rank());
      auto found = std::find_if(comms.begin(), comms.end(), [&](const auto &one) { return one.first == members; });
      if (found == comms.end()) {
        UniqueId id{};
        if (group.rank() == 0)
          K31_TRY(good(library.unique_id(&id), "cannot make an identifier"));
        K31_TRY(group.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0));
        Comm comm = nullptr;
        K31_TRY(good(library.init(&comm, int(group.size()), id, int(group.rank())),
                     cat("cannot connect the ", group.size(), " ranks of axis ", plan::EnumNameMeshAxis(axis))));
        found = comms.emplace(comms.end(), members, comm);
      }
      by_axis[size_t(axis)] = found->second;
    }
    // The first collective of a communicator makes its connections; that is no work for a capture.
    K31_ASSIGN(const Memory scratch, Memory::allocate(driver, "first collective", 1024, 256));
    for (const auto &[members, comm] : comms) {
      auto *at = reinterpret_cast<void *>(scratch.address());
      K31_TRY(good(library.all_reduce(at, at, 256, kFloat32, kSum, comm, stream), "the first collective failed"));
    }
    K31_CUDA(driver, stream_synchronize(stream), "the first collective of NCCL failed");
    return {};
  }

  Result<void> issue(const plan::Collective &c, Address source, Address dest, Stream stream) const override {
    const Comm comm = by_axis[size_t(c.axis())];
    const size_t size = ranks.group(c.axis()).size(), count = c.count();
    const auto *from = reinterpret_cast<const std::byte *>(source);
    auto *to = reinterpret_cast<std::byte *>(dest);
    const int type = type_of(c.dtype());
    const std::string what = c.label() ? c.label()->str() : plan::EnumNameCollectiveOp(c.op());
    switch (c.op()) {
    case plan::CollectiveOp::all_reduce:
      return good(library.all_reduce(from, to, count, type, kSum, comm, stream), what);
    case plan::CollectiveOp::reduce_scatter:
      return good(library.reduce_scatter(from, to, count / size, type, kSum, comm, stream), what);
    case plan::CollectiveOp::all_gather:
      return good(library.all_gather(from, to, count, type, comm, stream), what);
    case plan::CollectiveOp::broadcast:
      return good(library.broadcast(from, to, count, type, 0, comm, stream), what);
    case plan::CollectiveOp::send:
      return good(library.send(from, count, type, int(c.peer()), comm, stream), what);
    case plan::CollectiveOp::recv:
      return good(library.receive(to, count, type, int(c.peer()), comm, stream), what);
    case plan::CollectiveOp::dispatch:
    case plan::CollectiveOp::combine: {
      const size_t piece = count / size, bytes = piece * bytes_of(c.dtype());
      K31_TRY(good(library.group_start(), what));
      for (size_t r = 0; r < size; ++r) {
        K31_TRY(good(library.send(from + r * bytes, piece, type, int(r), comm, stream), what));
        K31_TRY(good(library.receive(to + r * bytes, piece, type, int(r), comm, stream), what));
      }
      return good(library.group_end(), what);
    }
    }
    return {};
  }

  Result<void> check() const override {
    for (const auto &[members, comm] : comms) {
      int error = 0;
      K31_TRY(good(library.async_error(comm, &error), "cannot be asked for errors"));
      K31_TRY(good(error, "a collective failed"));
    }
    return {};
  }

private:
  // Ends collectives that wait for ranks that are gone.
  void abort() {
    for (const auto &[members, comm] : comms)
      library.abort(comm);
  }

  Result<void> good(int error, const std::string &what) const {
    if (error == 0)
      return {};
    const char *text = library.error_string(error), *last = library.last_error(nullptr);
    return fail(Code::io, cat("NCCL: ", what, ": ", text ? text : "unknown error", last && *last ? cat(" (", last, ")") : "",
                              "; NCCL_DEBUG=INFO tells more"));
  }

  Library library;
  const comm::Communicator &ranks;
  std::vector<std::pair<std::vector<uint32_t>, Comm>> comms; // by members, in the order of the axes on every rank
  Comm by_axis[size_t(plan::MeshAxis::MAX) + 1] = {};
  std::optional<comm::OnAbort> on_abort;
};

} // namespace

Result<std::unique_ptr<Nccl>> Nccl::open(const Driver &driver, const comm::Communicator &ranks, const plan::Mesh &mesh,
                                         Stream stream) {
  ::setenv("NCCL_NVLS_ENABLE", "0", 0);
  if (only_loopback())
    ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  K31_ASSIGN(const Library library, open_library());
  auto made = std::make_unique<Communicators>(library, ranks);
  K31_TRY(made->connect(mesh, driver, stream));
  return made;
}

} // namespace k31::cuda
