#include "runtime/comm/lines.h"
#include "runtime/base/cat.h"
#include "runtime/base/file.h"
#include "runtime/comm/collectives.h"
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <random>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace k31::comm {
namespace {

constexpr int kPatience = 30'000; // milliseconds

// Where rank 0 listens, and a number that only its ranks know.
struct Meeting {
  uint32_t addresses[16] = {}; // IPv4 in network order; loopback comes first when all ranks are on one host, else last
  uint32_t count = 0;
  uint16_t port = 0;
  uint64_t secret = 0;
};
struct Greeting {
  uint64_t secret;
  uint32_t rank;
};

Result<int> listen_anywhere(Meeting &meeting, bool one_host) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(one_host ? INADDR_LOOPBACK : INADDR_ANY);
  socklen_t length = sizeof at;
  if (socket < 0 || ::bind(socket, reinterpret_cast<sockaddr *>(&at), length) != 0 || ::listen(socket, 1024) != 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr *>(&at), &length) != 0)
    return system_error("rank 0 cannot listen for the lines of the others", errno);
  meeting.port = at.sin_port;
  const auto add = [&](uint32_t address) {
    if (meeting.count < std::size(meeting.addresses))
      meeting.addresses[meeting.count++] = address;
  };
  ifaddrs *list = nullptr;
  if (!one_host && ::getifaddrs(&list) == 0)
    for (const ifaddrs *one = list; one; one = one->ifa_next)
      if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET)
        if (const uint32_t address = reinterpret_cast<const sockaddr_in *>(one->ifa_addr)->sin_addr.s_addr;
            address != htonl(INADDR_LOOPBACK))
          add(address);
  if (list)
    ::freeifaddrs(list);
  add(htonl(INADDR_LOOPBACK));
  std::random_device random;
  meeting.secret = uint64_t(random()) << 32 | random();
  return socket;
}

bool ready(int socket, short events, int milliseconds) {
  pollfd waiting{socket, events, 0};
  return ::poll(&waiting, 1, milliseconds) > 0;
}

// A connected socket, or -1.
int reach(uint32_t address, uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET, to.sin_addr.s_addr = address, to.sin_port = port;
  if (socket < 0)
    return -1;
  const int started = ::connect(socket, reinterpret_cast<sockaddr *>(&to), sizeof to);
  int error = started == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    socklen_t length = sizeof error;
    if (!ready(socket, POLLOUT, 3000) || ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
      error = ETIMEDOUT;
  }
  if (error != 0) {
    ::close(socket);
    return -1;
  }
  return socket;
}

Result<int> call(const Meeting &meeting, uint32_t rank) {
  for (uint32_t i = 0; i < meeting.count; ++i) {
    const int socket = reach(meeting.addresses[i], meeting.port);
    if (socket < 0)
      continue;
    Greeting greeting{};
    greeting.secret = meeting.secret, greeting.rank = rank;
    char answer = 0;
    if (::send(socket, &greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting && ready(socket, POLLIN, kPatience) &&
        ::recv(socket, &answer, 1, 0) == 1) {
      ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) & ~O_NONBLOCK);
      return socket;
    }
    ::close(socket); // another machine has that address too
  }
  return fail(Code::io, cat("rank ", rank, " cannot reach rank 0 at any of its ", meeting.count,
                            " addresses; the hosts of the ranks must reach each other by TCP"));
}

Result<void> answer(int listening, const Meeting &meeting, std::vector<int> &lines) {
  for (uint32_t missing = uint32_t(lines.size()) - 1; missing > 0;) {
    if (!ready(listening, POLLIN, kPatience))
      return fail(Code::io, cat(missing, " of ", lines.size(), " ranks did not call rank 0 within ", kPatience / 1000, " s"));
    const int socket = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0)
      return system_error("rank 0 cannot take a call of another rank", errno);
    const timeval patience{5, 0}; // who calls may be anybody, and say half a greeting
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    Greeting greeting{};
    if (::recv(socket, &greeting, sizeof greeting, MSG_WAITALL) == sizeof greeting && greeting.secret == meeting.secret &&
        greeting.rank < lines.size() && lines[greeting.rank] < 0 && ::send(socket, "+", 1, MSG_NOSIGNAL) == 1) {
      lines[greeting.rank] = socket;
      --missing;
    } else {
      ::close(socket);
    }
  }
  return {};
}

} // namespace

Result<Lines> connect_lines(const World &world, Group &all) {
  Lines lines;
  Meeting meeting;
  int listening = -1;
  if (world.rank() == 0) {
    K31_ASSIGN(listening, listen_anywhere(meeting, world.local_size() == world.size()));
  }
  K31_TRY(all.broadcast(std::as_writable_bytes(std::span(&meeting, 1)), 0));
  if (world.rank() != 0) {
    K31_ASSIGN(lines.mine, call(meeting, world.rank()));
    return lines;
  }
  lines.hub.assign(world.size(), -1);
  int own[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, own) != 0)
    return system_error("cannot make a pair of sockets", errno);
  lines.mine = own[0], lines.hub[0] = own[1];
  const Result<void> answered = answer(listening, meeting, lines.hub);
  ::close(listening);
  K31_TRY(answered);
  return lines;
}

} // namespace k31::comm
