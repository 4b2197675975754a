#include "runtime/comm/watchdog.h"
#include "runtime/base/cat.h"
#include "runtime/comm/abort.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace k31::comm {
namespace {

using Clock = std::chrono::steady_clock;

std::mutex abort_mutex;
std::list<std::function<void()>> abort_list;

// A message: its kind, its length, its text.
enum Kind : char { kBeat = 'B', kFailed = 'F', kFinished = 'D', kEnd = 'A', kAllFinished = 'E' };
constexpr size_t kMaxText = 4096;
constexpr auto kGather = std::chrono::milliseconds(300); // in which ranks that fail alike may all speak

void say(int line, Kind kind, const std::string &text = {}) {
  const std::string part = text.substr(0, kMaxText);
  const uint32_t length = uint32_t(part.size());
  std::string bytes(1, kind);
  bytes.append(reinterpret_cast<const char *>(&length), 4).append(part);
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::send(line, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return; // the other side is gone, which is heard by reading
    at += size_t(n);
  }
}

// Reads what there is; false when the line is cut.
bool hear(int line, std::string &received) {
  char bytes[4096];
  const ssize_t n = ::recv(line, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n > 0)
    received.append(bytes, size_t(n));
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

// Takes one whole message off the front.
bool next(std::string &received, Kind *kind, std::string *text) {
  uint32_t length = 0;
  if (received.size() < 5)
    return false;
  memcpy(&length, received.data() + 1, 4);
  length = std::min<uint32_t>(length, kMaxText);
  if (received.size() < 5 + length)
    return false;
  *kind = Kind(received[0]);
  *text = received.substr(5, length);
  received.erase(0, 5 + length);
  return true;
}

bool readable(int line, int milliseconds) {
  pollfd waiting{line, POLLIN, 0};
  return ::poll(&waiting, 1, milliseconds) > 0;
}

} // namespace

OnAbort::OnAbort(std::function<void()> function) {
  const std::lock_guard lock(abort_mutex);
  place = abort_list.insert(abort_list.end(), std::move(function));
}
OnAbort::~OnAbort() {
  const std::lock_guard lock(abort_mutex);
  abort_list.erase(place);
}
void abort_all() {
  const std::lock_guard lock(abort_mutex);
  for (auto &function : abort_list)
    function();
}

Watchdog::Watchdog(int line, bool heir, std::chrono::seconds silence) : line(line), heir(heir), silence(silence) {
  try {
    thread = std::thread([this] { watch(); });
  } catch (const std::system_error &refused) {
    failing = true;
    say(line, kFailed,
        cat("cannot start the thread that watches the ranks: ", refused.what(), "; raise the limits of the process"));
    watch(); // the hub's answer ends the process
    ::_exit(1);
  }
}

Watchdog::~Watchdog() {
  finished = true;
  ::shutdown(line, SHUT_RDWR);
  thread.join();
  ::close(line);
}

void Watchdog::end() {
  // What cannot be aborted must not keep the process.
  auto aborted = std::make_shared<std::atomic<bool>>(false);
  try {
    std::thread([aborted] { abort_all(), *aborted = true; }).detach();
  } catch (const std::system_error &) { // no thread is left: the end of the process does the rest
  }
  for (int i = 0; i < 50 && !*aborted; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::fflush(stdout);
  ::_exit(1);
}

void Watchdog::watch() {
  std::string received, text;
  Clock::time_point heard = Clock::now(), told;
  const char *lost = "the process that watches the ranks is gone";
  while (!finished.load()) {
    const Clock::time_point now = Clock::now();
    if (now - told >= std::chrono::seconds(1))
      say(line, kBeat), told = now;
    bool there = true;
    if (readable(line, 200)) {
      there = hear(line, received);
      heard = Clock::now();
    } else if (now - heard > silence) {
      there = false, lost = "the process that watches the ranks does not answer";
    }
    for (Kind kind; next(received, &kind, &text);) {
      if (kind == kEnd)
        end();
      if (kind == kAllFinished) {
        finished = true;
        finished.notify_all();
        return;
      }
    }
    if (!there && !finished.load()) {
      if (heir && !failing.load())
        std::fprintf(stderr, "k31-run: error: %s; all ranks end\n", lost);
      end();
    }
  }
}

void Watchdog::fail(const std::string &reason) {
  failing = true;
  std::fflush(stdout);
  say(line, kFailed, reason);
  std::this_thread::sleep_for(silence); // the hub's answer ends the process
  std::fprintf(stderr, "k31-run: error: %s\n", reason.c_str());
  ::_exit(1);
}

void Watchdog::finish() {
  std::fflush(stdout);
  say(line, kFinished);
  finished.wait(false);
}

Hub::Hub(std::vector<int> sockets, std::chrono::seconds silence) : silence(silence) {
  for (const int socket : sockets)
    lines.push_back({socket, false, {}, Clock::now()});
}

Hub::~Hub() {
  for (const Line &line : lines)
    if (line.socket >= 0)
      ::close(line.socket);
}

void Hub::take(uint32_t rank) {
  Line &line = lines[rank];
  const bool there = hear(line.socket, line.received);
  line.heard = Clock::now();
  std::string text;
  for (Kind kind; next(line.received, &kind, &text);) {
    if (kind == kFailed)
      failures.push_back({rank, text});
    if (kind == kFinished)
      line.finished = true;
  }
  if (there)
    return;
  ::close(line.socket);
  line.socket = -1; // which poll() passes over
  if (!line.finished)
    gone.push_back(rank);
}

void Hub::listen(int milliseconds) {
  std::vector<pollfd> waiting;
  for (const Line &line : lines)
    waiting.push_back({line.socket, POLLIN, 0});
  ::poll(waiting.data(), waiting.size(), milliseconds);
  for (uint32_t r = 0; r < waiting.size(); ++r)
    if (waiting[r].revents)
      take(r);
}

Result<void> Hub::run(const std::function<std::string(uint32_t rank)> &ended) {
  const auto all_finished = [&] {
    return std::all_of(lines.begin(), lines.end(), [](const Line &line) { return line.finished; });
  };
  Clock::time_point told;
  while (failures.empty() && gone.empty() && !all_finished()) {
    listen(200);
    const Clock::time_point now = Clock::now();
    if (now - told >= std::chrono::seconds(1)) {
      for (const Line &line : lines)
        say(line.socket, kBeat);
      told = now;
    }
    for (uint32_t r = 0; r < lines.size(); ++r)
      if (!lines[r].finished && now - lines[r].heard > silence)
        failures.push_back({r, cat("has not answered for ", silence.count(), " s: it is stopped, or its machine is")});
  }
  if (failures.empty() && gone.empty()) {
    for (const Line &line : lines)
      say(line.socket, kAllFinished);
    return {};
  }
  // Who was killed says nothing, and others may see the consequence first; who fails for the same reason should be named once.
  const Clock::time_point until = Clock::now() + kGather;
  for (Clock::time_point now; (now = Clock::now()) < until && failures.size() + gone.size() < lines.size();)
    listen(int(std::chrono::duration_cast<std::chrono::milliseconds>(until - now).count()) + 1);
  for (const Line &line : lines)
    say(line.socket, kEnd);
  if (!gone.empty() && (failures.empty() || std::none_of(failures.begin(), failures.end(),
                                                         [&](const Failure &failure) { return failure.rank == gone[0]; })))
    return k31::fail(Code::io, cat("rank ", gone[0], " ", ended(gone[0]), "; all ranks end"));
  const Failure *first = &failures[0];
  for (const Failure &failure : failures)
    if (failure.reason == first->reason && failure.rank < first->rank)
      first = &failure;
  return k31::fail(Code::io, cat("rank ", first->rank, ": ", first->reason));
}

} // namespace k31::comm
