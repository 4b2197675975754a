#include "compiler/LinkCost.h"
#include "codegen/kernels/coll/peer.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace llvm;

namespace k31 {
namespace {

// Seconds to start, and bytes a second that pass a rank's link in one direction.
struct Link {
  double start, bytesPerSecond;
};
// Measured between two H200 of one host, operations in a graph: NCCL's all-reduce 7.4 us of 14 KB and 406 us of 117 MB, its
// all-to-all 7.3 and 222 us (half of it stays). Kernels that write to their peers: a sum 3.5 us of 14 KB and 54.9 us of 14.7 MB,
// an all-to-all 4.1 us and 66 us of 29.4 MB.
constexpr Link kLibrary = {7.4e-6, 293e9}, kAllToAll = {7.3e-6, 274e9}, kPeer = {3.5e-6, 286e9}, kPeerAllToAll = {4.1e-6, 237e9};
// Assumed, never measured here: 400 Gbit/s a GPU, and what each doubling of the ranks adds to the start.
constexpr Link kNetwork = {20e-6, 45e9};
constexpr double kDoublingSeconds = 1.5e-6;
// Between processes of one host that share memory, two copies a byte.
constexpr Link kSharedMemory = {20e-6, 4e9};

Link linkOf(Exchange exchange, coll::Transport transport, bool oneHost) {
  if (!oneHost)
    return kNetwork;
  if (transport == coll::Transport::peer)
    return exchange == Exchange::allToAll ? kPeerAllToAll : kPeer;
  return exchange == Exchange::allToAll ? kAllToAll : kLibrary;
}

// Bytes that enter a rank, as parts of `bytes`. Rings pass a sum on twice; so does the kernel of the peer transport when x is
// long, else each rank gets all addends.
double passes(Exchange exchange, coll::Transport transport, uint64_t bytes, int64_t ranks) {
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  if (exchange != Exchange::allReduce)
    return others;
  const bool once = transport == coll::Transport::peer && !kernels::peer::by_pieces(static_cast<int64_t>(bytes / 16), ranks);
  return once ? static_cast<double>(ranks - 1) : 2 * others;
}

// The second exchange of a long sum.
double secondExchange(Exchange exchange, coll::Transport transport, uint64_t bytes, int64_t ranks) {
  const bool second = transport == coll::Transport::peer && exchange == Exchange::allReduce &&
                      kernels::peer::by_pieces(static_cast<int64_t>(bytes / 16), ranks);
  return second ? static_cast<double>(16 * kernels::peer::kSecondExchange) / kPeer.bytesPerSecond : 0;
}

} // namespace

int64_t sizeOf(const Mesh &mesh, coll::Axis axis) {
  switch (axis) {
  case coll::Axis::tp:
    return mesh.tp;
  case coll::Axis::dp:
    return mesh.dp;
  case coll::Axis::ep:
    return mesh.ep;
  case coll::Axis::pp:
    return mesh.pp;
  case coll::Axis::edp:
    return mesh.edp();
  case coll::Axis::node:
    return mesh.hosts() > 1 ? mesh.node : 1;
  case coll::Axis::rail:
    return mesh.hosts();
  }
  llvm_unreachable("an axis");
}

// rank = (p dp + d) tp + t, hosts are runs of `node` ranks: a group spans its size times the distance of its neighbours.
bool insideHost(const Mesh &mesh, coll::Axis axis) {
  int64_t span = sizeOf(mesh, axis);
  if (axis == coll::Axis::dp || axis == coll::Axis::edp)
    span *= mesh.tp;
  else if (axis == coll::Axis::pp)
    span *= mesh.tp * mesh.dp;
  else if (axis == coll::Axis::rail)
    span *= mesh.node;
  return mesh.node % span == 0;
}

double exchangeSeconds(Exchange exchange, coll::Transport transport, uint64_t bytes, int64_t ranks, bool oneHost) {
  if (ranks < 2)
    return 0;
  const Link link = linkOf(exchange, transport, oneHost);
  const double doublings = std::log2(static_cast<double>(ranks)) - 1;
  return link.start + kDoublingSeconds * doublings + secondExchange(exchange, transport, bytes, ranks) +
         passes(exchange, transport, bytes, ranks) * static_cast<double>(bytes) / link.bytesPerSecond;
}

double librarySeconds(bool cuda, Exchange exchange, uint64_t bytes, int64_t ranks, bool oneHost) {
  if (cuda)
    return exchangeSeconds(exchange, coll::Transport::library, bytes, ranks, oneHost);
  if (ranks < 2)
    return 0;
  const Link link = oneHost ? kSharedMemory : kNetwork;
  return link.start + passes(exchange, coll::Transport::library, bytes, ranks) * static_cast<double>(bytes) / link.bytesPerSecond;
}

std::string groupText(const Mesh &mesh, coll::Axis axis) {
  return formatv("over {0}, {1} ranks {2}", coll::stringifyAxis(axis), sizeOf(mesh, axis),
                 insideHost(mesh, axis) ? "of one host" : "of several hosts");
}

Note transportNote(const Mesh &mesh, coll::Axis axis, Exchange exchange, uint64_t bytes, ArrayRef<coll::Transport> possible,
                   coll::Transport chosen, StringRef why) {
  Note note{"transport", coll::stringifyTransport(chosen).str(), {}, {}};
  for (coll::Transport transport : possible)
    note.candidates.push_back(
        {coll::stringifyTransport(transport).str(),
         nanoseconds(exchangeSeconds(exchange, transport, bytes, sizeOf(mesh, axis), insideHost(mesh, axis)))});
  note.reason = formatv("{0} bytes {1}; {2}", bytes, groupText(mesh, axis), why);
  return note;
}

} // namespace k31
