// The stoker program: finds the command, runs it, and turns errors into one clear line and an exit status
// (1: it failed, 2: it was called in a wrong way).
#include <cstdio>
#include <iostream>

#include "base/version.h"
#include "cli/cli.h"

namespace stoker::cli {
namespace {

const char* hint(Code code) {
  switch (code) {
    case Code::bad_argument: return "stoker COMMAND --help lists what there is";
    case Code::bad_file: return "is it the right file, and complete?";
    case Code::io: return "check the path, the permissions and the space on the disk";
    case Code::no_memory: return "a smaller --batch needs less";
    case Code::unsupported: return "try --device cpu";
    case Code::device: return "stoker devices lists what can be used";
    case Code::not_finite:
      return "nothing was saved after the last good checkpoint; --lr and --clip set the rate and the limit";
    case Code::cancelled: return "";
  }
  return "";
}

int run(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    // A table that did not arrive, on a full disk or behind a closed pipe, is no success.
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush()) return 0;
    std::fputs("stoker: error: cannot write the output (is the disk full?)\n", stderr);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::fprintf(stderr, "stoker: error: %s (see stoker %s--help)\n", error.what(),
                 app.get_subcommands().empty() ? "" : (app.get_subcommands()[0]->get_name() + " ").c_str());
    return 2;
  } catch (const Exit& exit) {
    return exit.status;
  } catch (const Error& error) {
    const std::string advice = hint(error.code());
    std::fprintf(stderr, "stoker: error: %s%s\n", error.what(), advice.empty() ? "" : (" (" + advice + ")").c_str());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "stoker: error: out of memory (%s)\n", hint(Code::no_memory));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stoker: error: %s\n", error.what());
  }
  return 1;
}

}  // namespace
}  // namespace stoker::cli

int main(int argc, char** argv) {
  CLI::App app("Stoker trains neural networks on the device at hand.", "stoker");
  app.set_version_flag("--version", std::string("stoker ") + stoker::version());
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  app.footer("Example:\n  stoker train lenet5 --data digits --epochs 3");
  stoker::cli::add_train(app);
  stoker::cli::add_eval(app);
  stoker::cli::add_predict(app);
  stoker::cli::add_bench(app);
  stoker::cli::add_plan(app);
  stoker::cli::add_profile(app);
  stoker::cli::add_devices(app);
  stoker::cli::add_check(app);
  stoker::cli::add_tune(app);
  stoker::cli::add_models(app);
  stoker::cli::add_study(app);
  stoker::cli::add_simulate(app);
  return stoker::cli::run(app, argc, argv);
}
