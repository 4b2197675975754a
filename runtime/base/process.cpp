#include "runtime/base/process.h"
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace k31 {

void settle_process() {
  for (int standard = 0; standard <= 2; ++standard)
    if (::fcntl(standard, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", O_RDONLY) < 0) // takes the lowest free number
      ::_exit(1);                                                                              // and nobody can be told
  ::signal(SIGXFSZ, SIG_IGN);
}

} // namespace k31
