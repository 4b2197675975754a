// Time and traffic of every launch of observed runs.
#pragma once
#include "runtime/session.h"
#include "tools/k31_run/op_bytes.h"
#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace k31::run {

double median(std::vector<double> values); // at least one

class Profile {
public:
  // Launches of the same operation in all layers together: "layers.*.self_attn.q_proj".
  struct Op {
    std::string op, kernel;
    uint64_t launches = 0, bytes = 0;
    double seconds = 0; // of a run
  };

  // Observes the session until stop(); `live` says what the runs do.
  void start(Session &session, uint32_t entry, const Live &live);
  void stop();
  void next_run() { ++runs; }

  // A run, made of each launch's median over the runs, most time first: a run that was interrupted does not count.
  std::vector<Op> ops() const;
  double seconds() const; // of all of them

  // Events of the last run as members of a Chrome trace, separated by commas; times in microseconds from the first launch of all.
  std::string trace_events(const std::string &process, int number) const;

private:
  using Clock = std::chrono::steady_clock;
  struct Event {
    const plan::Launch *launch;
    Clock::time_point begin, end;
    uint64_t bytes;
  };

  Session *session = nullptr;
  uint32_t entry = 0, runs = 0, traced = 0;
  Live live;
  struct Samples {
    std::vector<double> seconds;
    uint64_t bytes = 0; // sum
  };
  std::map<const plan::Launch *, Samples> by_launch;
  std::vector<Event> events; // of one run
  Clock::time_point begin;
};

} // namespace k31::run
