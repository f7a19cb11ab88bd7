// Binder: turns the places of a plan's launches into buffers, offsets and image views, and sets them as arguments once.
// It owns what an executable adds of its own: constants, tables, the ring of results, sub-buffers and views.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "backends/opencl/kernel.h"
#include "backends/opencl/memory.h"

namespace stoker::opencl {

class Binder {
 public:
  // A place of the executable's own: its number is kept apart from those of the graph's constants.
  static constexpr int kRing = -1;

  Binder(Api& api, cl_context context, cl_command_queue queue, const Device& device, const Plan& plan,
         const Bindings& bindings, std::int64_t piece_bytes);

  // First all launches are announced, then the own memory is made, then arguments are set.
  void announce(const Launch& launch);
  void reserve_ring(std::int64_t bytes) { ring_bytes_ = bytes; }
  void allocate();
  void set_args(cl_kernel kernel, const Launch& launch, int slot);

  [[nodiscard]] static bool reads_batch(const Launch& launch);
  // Places of equal numbers lie in one buffer.
  [[nodiscard]] int buffer_number(const Place& place) const;
  [[nodiscard]] Where ring() const { return own_->at(0); }

 private:
  using Range = std::tuple<cl_mem, std::int64_t, std::int64_t>;  // buffer, offset, bytes

  [[nodiscard]] Where where(const Place& place, int slot) const;
  cl_mem sub_buffer(const Range& range);
  cl_mem image_view(const Range& range);
  void add_constant(const Place& place);
  std::int64_t add_own(std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<std::int32_t> resolved(const Table& table) const;
  void set_tensor(cl_kernel kernel, int& index, const Arg& arg, Where where, bool apart);

  Api& api_;
  cl_context context_;
  cl_command_queue queue_;
  const Device& device_;
  const Plan& plan_;
  const Bindings& bindings_;
  std::int64_t piece_bytes_;
  std::int64_t ring_bytes_ = 0;
  std::vector<std::byte> own_bytes_;       // behind the ring: constants and tables
  std::map<int, std::int64_t> constants_;  // offset by node
  std::map<const Table*, std::int64_t> tables_;
  std::unique_ptr<DeviceMemory> own_;
  std::map<Range, Handle<cl_mem>> sub_buffers_;
  std::map<Range, Handle<cl_mem>> views_;
};

}  // namespace stoker::opencl
