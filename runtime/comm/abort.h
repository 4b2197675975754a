// What to abort before this process ends for a failure of some rank: communicators of libraries, which others may hang in.
#pragma once
#include <functional>
#include <list>

namespace k31::comm {

// Registered while it lives. The function is called at most once, on a thread of the watchdog.
class OnAbort {
public:
  explicit OnAbort(std::function<void()> function);
  ~OnAbort();
  OnAbort(const OnAbort &) = delete;

private:
  std::list<std::function<void()>>::iterator place;
};

void abort_all();

} // namespace k31::comm
