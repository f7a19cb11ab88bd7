#include "backends/host_memory.h"

#include <sys/mman.h>

#include "base/error.h"

namespace stoker {

namespace {

std::size_t mapped_size(std::int64_t bytes) { return static_cast<std::size_t>(bytes > 0 ? bytes : 1); }

}  // namespace

// Pages come zeroed from the system, and only those that are touched count as used.
HostMemory::HostMemory(std::int64_t bytes) : bytes_(bytes) {
  const std::size_t size = mapped_size(bytes);
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(data != MAP_FAILED, Code::no_memory, "cannot allocate ", bytes, " bytes");
#ifdef MADV_HUGEPAGE
  // Fewer TLB misses in large arenas; the system may decline.
  if (size >= (std::size_t{4} << 20)) static_cast<void>(::madvise(data, size, MADV_HUGEPAGE));
#endif
  data_ = static_cast<std::byte*>(data);
}

HostMemory::~HostMemory() { ::munmap(data_, mapped_size(bytes_)); }

}  // namespace stoker
