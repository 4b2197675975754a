// k31-run: runs execution plans on the weights of a checkpoint.
//
// Exit codes: 0 done, 1 refused or failed (one line on stderr), 2 wrong usage.
#include "runtime/base/cat.h"
#include "runtime/base/plan_trailer.h"
#include "runtime/base/process.h"
#include "runtime/comm/mpi.h"
#include "tools/k31_run/commands.h"
#include "tools/k31_run/ranks.h"
#include "tools/usage.h"
#include <cstdio>
#include <exception>

int main(int argc, char **argv) {
  k31::settle_process();
  CLI::App app("k31-run: run a plan that k31c made, on the weights of its checkpoint.", "k31-run");
  k31::usage::add_to(app);
  app.set_version_flag("--version",
                       k31::cat("k31-run ", K31_VERSION, ", runs plans of version ", k31::kPlanMajor, ".0 to ", k31::kPlanMajor,
                                ".", k31::kPlanMinor),
                       "Print the version of k31-run and of the plans that it runs");
  app.footer("Example:\n  k31c compile models/tiny-k31 --target cpu -o tiny.k31\n"
             "  k31-run generate --plan tiny.k31 --weights models/tiny-k31 --prompt \"What is bit bucket?\" --chat\n"
             "Exit codes: 0 done, 1 refused or failed (one line on stderr), 2 wrong usage.");
  const std::vector<k31::run::Command> commands = {k31::run::add_generate(app), k31::run::add_logits(app),
                                                   k31::run::add_perplexity(app), k31::run::add_verify(app),
                                                   k31::run::add_bench(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) ? 2 : 0; // help and version are no errors
  }
  const auto fail = [](const char *reason) {
    std::fflush(stdout);
    if (k31::run::ranks().several())
      k31::run::ranks().fail(reason);
    std::fprintf(stderr, "k31-run: error: %s\n", reason);
    return 1;
  };
  try {
    if (const auto started = k31::run::ranks().start_launched(); !started)
      return k31::comm::launched_rank() == 0 ? fail(started.error().message.c_str()) : 1;
    for (const auto &[command, run] : commands)
      if (command->parsed())
        if (const auto done = run(); !done)
          return fail(done.error().message.c_str());
  } catch (const std::exception &error) { // memory or threads of the host; our own errors are values
    return fail(k31::cat("the host has no room for this: ", k31::one_line(error.what()),
                         "; free memory, or raise the limits of the process")
                    .c_str());
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) // what was printed must have arrived
    return fail("standard output takes no more: it is full or closed; make room there");
  k31::run::ranks().finish();
  return 0;
}
