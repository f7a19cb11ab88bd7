#include "cli/signals.h"

#include <unistd.h>

#include <csignal>

#include "cli/cli.h"

namespace stoker::cli {
namespace {

// The handler may touch nothing but this.
const CancelToken* cancel_on_signal = nullptr;

extern "C" void on_signal(int) {
  if (cancel_on_signal == nullptr || cancel_on_signal->cancelled()) ::_exit(kInterrupted);
  cancel_on_signal->cancel();
}

}  // namespace

SignalGuard::SignalGuard(const CancelToken& token) {
  cancel_on_signal = &token;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

SignalGuard::~SignalGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  cancel_on_signal = nullptr;
}

}  // namespace stoker::cli
