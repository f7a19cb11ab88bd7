// What the process has used of the machine.
#include <sys/resource.h>

#include "stoker/stoker.hpp"

namespace stoker {

std::int64_t peak_rss() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#ifdef __APPLE__
  return usage.ru_maxrss;  // bytes there, KiB elsewhere
#else
  return std::int64_t{usage.ru_maxrss} * 1024;
#endif
}

}  // namespace stoker
