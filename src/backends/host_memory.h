// Memory for devices that are the host itself: aligned, zeroed, and returned to the system when freed.
#pragma once

#include "backends/backend.h"

namespace stoker {

class HostMemory : public Memory {
 public:
  // An Error (Code::no_memory) names the size if there is none.
  explicit HostMemory(std::int64_t bytes);
  ~HostMemory() override;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  [[nodiscard]] std::int64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] const std::byte* data() const { return data_; }
  [[nodiscard]] std::span<std::byte> span() { return {data_, static_cast<std::size_t>(bytes_)}; }

 private:
  std::int64_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace stoker
