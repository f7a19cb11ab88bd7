// Ctrl-C and SIGTERM as a CancelToken: the first signal asks to stop, the second one quits.
#pragma once

#include "stoker/stoker.hpp"

namespace stoker::cli {

// While it lives, signals cancel the token, which must outlive it. One at a time.
class SignalGuard {
 public:
  explicit SignalGuard(const CancelToken& token);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
};

}  // namespace stoker::cli
