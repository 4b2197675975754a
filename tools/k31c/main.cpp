// k31c: compiles a checkpoint to an execution plan.
#include "runtime/base/cat.h"
#include "runtime/base/plan_trailer.h"
#include "runtime/base/process.h"
#include "tools/k31c/commands.h"
#include "tools/usage.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Signals.h"
#include <atomic>
#include <cstdio>
#include <exception>
#include <new>
#include <unistd.h>

int k31::tool::fail(int code, const std::string &message) {
  std::fflush(stdout);
  std::fprintf(stderr, "k31c: error: %s\n", one_line(message).c_str());
  return code;
}

// The first thread that gives up speaks; others wait for its end.
static void takeTheWord() {
  static std::atomic_flag taken;
  while (taken.test_and_set())
    ::pause();
}

// Where LLVM or the allocator gives up, in whatever thread: they end the process, but with a line and a code of ours.
static void giveUp(void *, const char *reason, bool) {
  takeTheWord();
  std::fprintf(stderr, "k31c: error: the compiler cannot go on: %s; free memory, or raise the limits of the process\n",
               k31::one_line(reason).c_str());
  llvm::sys::RunInterruptHandlers(); // removes temporary files
  _exit(1);
}
static void noMemory() {
  constexpr std::string_view line =
      "k31c: error: the compiler cannot go on: no memory is left; free memory, or raise the limits of the process\n";
  takeTheWord();
  [[maybe_unused]] const auto put = ::write(STDERR_FILENO, line.data(), line.size()); // printf may want memory
  llvm::sys::RunInterruptHandlers();
  _exit(1);
}

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
