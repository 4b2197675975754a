// k31c: compiles a checkpoint to an execution plan.
#include "runtime/base/cat.h"
#include "runtime/base/plan_trailer.h"
#include "runtime/base/process.h"
#include "tools/k31c/commands.h"
#include "tools/usage.h"
#include "llvm/Support/ErrorHandling.h"
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>
#include <unistd.h>

int k31::tool::fail(int code, const std::string &message) {
  std::fflush(stdout);
  std::fprintf(stderr, "k31c: error: %s\n", one_line(message).c_str());
  return code;
}

// Where LLVM or the allocator gives up, in whatever thread: they end the process, but with a line and a code of ours. Nothing
// here takes memory or a lock: another thread may hold it, or this one come here again for the want of it.
static void giveUp(void *, const char *reason, bool) {
  char line[512];
  const int length = std::snprintf(line, sizeof line, "k31c: error: the compiler cannot go on: %.300s", reason);
  for (int i = 0; i < length; ++i)
    if (static_cast<unsigned char>(line[i]) < 0x20)
      line[i] = ' ';
  constexpr std::string_view what = "; free memory, or raise the limits of the process\n";
  std::copy(what.begin(), what.end(), line + length);
  static std::atomic_flag spoken; // by the first thread; others wait for the end that it brings
  if (spoken.test_and_set())
    for (;;)
      ::pause();
  [[maybe_unused]] const auto put = ::write(STDERR_FILENO, line, size_t(length) + what.size());
  _exit(1);
}
static void noMemory() { giveUp(nullptr, "no memory is left", false); }

int main(int argc, char **argv) {
  k31::settle_process();
  llvm::install_fatal_error_handler(giveUp);
  llvm::install_bad_alloc_error_handler(giveUp);
  std::set_new_handler(noMemory);
  CLI::App app("k31c: compile a checkpoint of the Kimi family to an execution plan, and look into plans.", "k31c");
  k31::usage::add_to(app);
  app.set_version_flag("--version", k31::cat("k31c ", K31_VERSION, ", plans of version ", k31::kPlanMajor, ".", k31::kPlanMinor),
                       "Print the version of k31c and of its plans");
  app.footer("Examples:\n"
             "  k31c compile models/tiny-k31 --target cpu -o tiny.k31\n"
             "  k31c compile models/tiny-k31 --target cpu --max-context 4096 --max-batch 2 --memory-limit 2G\n"
             "  k31c inspect tiny.k31 --memory\n"
             "  k31c explain tiny.k31 --entry decode_b1 --layer 3\n"
             "  k31c diff old.k31 new.k31\n"
             "Exit codes: 0 done, 1 refused or failed (one line on stderr), 2 wrong usage.");
  using namespace k31::tool;
  const Command commands[] = {addCompile(app), addInspect(app), addExplain(app), addDiff(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) ? 2 : 0; // help is no error
  }
  try {
    for (const auto &[command, run] : commands)
      if (command->parsed()) {
        const int code = run();
        // What was printed must have arrived; buffers are written at the latest here.
        const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
        return code || !lost ? code : k31::tool::fail(1, "standard output takes no more: it is full or closed; make room there");
      }
  } catch (const std::exception &error) { // our own errors are values
    giveUp(nullptr, error.what(), false);
  }
  return 2;
}
