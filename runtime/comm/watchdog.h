// One rank that fails ends all, soon, with the first reason. Every rank has a line (a socket) to the hub, which hears when a rank
// fails, dies or falls silent, prints the reason once and tells the others to end. The hub is the process that started the ranks,
// or a thread of rank 0 under a launcher. None of this goes through the communicators: those may hang.
#pragma once
#include "runtime/base/result.h"
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace k31::comm {

// Both sides say that they are alive once a second; who is silent for so long counts as dead.
constexpr std::chrono::seconds kSilence{20};

// The rank's end of its line.
class Watchdog {
public:
  // `line`: a connected socket, now the watchdog's. Its thread ends the process when the hub says so or is gone,
  // after what runtime/comm/abort.h knows was aborted.
  // `heir`: this rank prints when the hub is gone; one rank should.
  // Where no thread can be started, it tells the hub and ends the process.
  Watchdog(int line, bool heir, std::chrono::seconds silence = kSilence);
  ~Watchdog();
  Watchdog(const Watchdog &) = delete;

  // Tells the hub and ends the process with exit code 1.
  [[noreturn]] void fail(const std::string &reason);

  // Returns when all ranks have come here.
  void finish();

private:
  void watch();
  [[noreturn]] void end();

  int line;
  bool heir;
  std::chrono::seconds silence;
  std::atomic<bool> failing = false, finished = false;
  std::thread thread;
};

// The other end of all lines.
class Hub {
public:
  // One connected socket a rank, in their order; the hub's now.
  explicit Hub(std::vector<int> lines, std::chrono::seconds silence = kSilence);
  ~Hub();
  Hub(const Hub &) = delete;

  // Until every rank has finished (nothing), or one failed: its reason, after all others were told to end. `ended` says how a
  // rank came to its end when it said nothing itself.
  Result<void> run(const std::function<std::string(uint32_t rank)> &ended);

private:
  struct Line {
    int socket; // -1 once it was cut
    bool finished = false;
    std::string received;
    std::chrono::steady_clock::time_point heard;
  };
  struct Failure {
    uint32_t rank;
    std::string reason;
  };
  void listen(int milliseconds);
  void take(uint32_t rank);

  std::vector<Line> lines;
  std::chrono::seconds silence;
  std::vector<Failure> failures; // in order of arrival
  std::vector<uint32_t> gone;    // ranks whose line was cut before they had finished
};

} // namespace k31::comm
