// The one exception type that Stoker throws. It names what was wrong, what was expected and what came.
#pragma once

#include <stdexcept>
#include <string>

namespace stoker {

enum class Code {
  bad_argument,  // the caller's mistake: a wrong shape, an unknown name, an option out of range
  bad_file,      // a file that is damaged, truncated or of another kind
  io,            // the operating system refused: no such file, no permission, disk full
  no_memory,     // the device or the host has not enough memory
  unsupported,   // the device cannot run an op of the model
  device,        // the device was lost or its driver failed
  not_finite,    // a loss or a gradient was NaN or infinite; it was not applied
  cancelled,     // the caller asked to stop
};

[[nodiscard]] const char* to_string(Code code);

class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] Code code() const { return code_; }

 private:
  Code code_;
};

}  // namespace stoker
