// Device memory as OpenCL buffers: one, or several pieces where it passes the device's largest allocation. Batch memory
// can be mapped, so that the host fills it without a copy.
#pragma once

#include <vector>

#include "backends/backend.h"
#include "backends/opencl/api.h"

namespace stoker::opencl {

// A byte of device memory.
struct Where {
  cl_mem buffer = nullptr;
  std::int64_t offset = 0;
};

class DeviceMemory : public Memory {
 public:
  // Zeroed, but for staging. `piece_bytes` is Target::largest_buffer(): nothing that is planned lies across a multiple
  // of it.
  DeviceMemory(Api& api, cl_context context, cl_command_queue queue, std::int64_t bytes, MemoryKind kind,
               std::int64_t piece_bytes);
  ~DeviceMemory() override;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] std::int64_t bytes() const override { return bytes_; }
  [[nodiscard]] Where at(std::int64_t offset) const;

  void upload(std::int64_t offset, std::span<const std::byte> bytes, bool blocking);
  void download(std::int64_t offset, std::span<std::byte> bytes) const;

  void copy_to(std::int64_t offset, DeviceMemory& to, std::int64_t to_offset, std::int64_t bytes) const;

  // Batch memory (other memory is not mapped). begin_map() asks the queue for a mapping, behind the steps submitted so
  // far; map() waits for it.
  void begin_map();
  [[nodiscard]] std::span<std::byte> map();
  void unmap();

 private:
  // Calls `piece(buffer, offset, part of the range)` for each piece that the range lies in.
  template <typename F>
  void for_pieces(std::int64_t offset, std::int64_t bytes, F piece) const;

  Api& api_;
  cl_command_queue queue_;
  std::int64_t bytes_;
  MemoryKind kind_;
  std::int64_t piece_bytes_;
  std::vector<Handle<cl_mem>> pieces_;
  std::byte* mapped_ = nullptr;
  Handle<cl_event> mapping_;  // done when `mapped_` may be used
};

}  // namespace stoker::opencl
