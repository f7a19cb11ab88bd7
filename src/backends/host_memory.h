// Memory for devices that are the host itself: aligned, zeroed, and returned to the system when freed.
#pragma once

#include <memory>

#include "backends/backend.h"

namespace stoker {

class HostMemory : public Memory {
 public:
  // An Error (Code::no_memory) names the size if there is none.
  explicit HostMemory(std::int64_t bytes);

  [[nodiscard]] std::int64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::byte* data() { return data_.get(); }
  [[nodiscard]] const std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    std::int64_t bytes = 0;
    void operator()(std::byte* data) const;
  };
  std::int64_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace stoker
