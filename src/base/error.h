// require() reports a caller's mistake as an Error; DCHECK stops on a mistake of our own.
#pragma once

#include <cassert>
#include <sstream>
#include <string>

#include "stoker/error.hpp"

namespace stoker {

template <typename... Parts>
[[nodiscard]] std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <typename... Parts>
[[noreturn]] void fail(Code code, const Parts&... parts) {
  throw Error(code, str(parts...));
}

template <typename... Parts>
void require(bool condition, Code code, const Parts&... parts) {
  if (!condition) fail(code, parts...);
}

}  // namespace stoker

// Active in dev and sanitizer builds; no input can reach a failing one.
#ifdef NDEBUG
#define DCHECK(condition) static_cast<void>(sizeof(condition))
#else
#define DCHECK(condition) assert(condition)
#endif
