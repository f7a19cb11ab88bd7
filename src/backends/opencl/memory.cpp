#include "backends/opencl/memory.h"

#include <algorithm>

#include "base/error.h"

namespace stoker::opencl {

DeviceMemory::DeviceMemory(Api& api, cl_context context, cl_command_queue queue, std::int64_t bytes, MemoryKind kind,
                           std::int64_t piece_bytes)
    : api_(api), queue_(queue), bytes_(bytes), kind_(kind), piece_bytes_(piece_bytes) {
  // A batch buffer is mapped as a whole, so it is one piece.
  require(kind != MemoryKind::batch || bytes <= piece_bytes, Code::no_memory, "a batch of ", bytes,
          " bytes is larger than the device's largest buffer, ", piece_bytes, " bytes; use a smaller batch");
  cl_mem_flags flags = CL_MEM_READ_WRITE;
  if (kind == MemoryKind::batch) flags = CL_MEM_READ_ONLY | CL_MEM_ALLOC_HOST_PTR | CL_MEM_HOST_WRITE_ONLY;
  if (kind == MemoryKind::staging) flags = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
  std::int64_t left = std::max<std::int64_t>(bytes, 4);  // OpenCL has no empty buffers
  while (left > 0) {
    const std::int64_t piece = std::min(left, piece_bytes);
    pieces_.push_back(api.create_buffer(context, flags, piece));
    if (kind != MemoryKind::staging) api.fill_zero(queue, pieces_.back().get(), piece);
    left -= piece;
  }
}

DeviceMemory::~DeviceMemory() {
  if (mapped_ == nullptr) return;
  try {
    unmap();
  } catch (const Error&) {  // a lost device: there is nothing left to give back
  }
}

Where DeviceMemory::at(std::int64_t offset) const {
  return {pieces_[static_cast<std::size_t>(offset / piece_bytes_)].get(), offset % piece_bytes_};
}

template <typename F>
void DeviceMemory::for_pieces(std::int64_t offset, std::int64_t bytes, F piece) const {
  DCHECK(offset >= 0 && offset + bytes <= bytes_);
  for (std::int64_t done = 0; done < bytes;) {
    const Where where = at(offset + done);
    const std::int64_t part = std::min(bytes - done, piece_bytes_ - where.offset);
    piece(where, done, part);
    done += part;
  }
}

void DeviceMemory::upload(std::int64_t offset, std::span<const std::byte> bytes, bool blocking) {
  for_pieces(offset, static_cast<std::int64_t>(bytes.size()), [&](Where where, std::int64_t at, std::int64_t part) {
    api_.write(queue_, where.buffer, where.offset,
               bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(part)), blocking);
  });
}

void DeviceMemory::download(std::int64_t offset, std::span<std::byte> bytes) const {
  for_pieces(offset, static_cast<std::int64_t>(bytes.size()), [&](Where where, std::int64_t at, std::int64_t part) {
    api_.read(queue_, where.buffer, where.offset,
              bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(part)), true);
  });
}

void DeviceMemory::copy_to(std::int64_t offset, DeviceMemory& to, std::int64_t to_offset, std::int64_t bytes) const {
  for_pieces(offset, bytes, [&](Where from, std::int64_t at, std::int64_t part) {
    to.for_pieces(to_offset + at, part, [&](Where where, std::int64_t done, std::int64_t piece) {
      api_.copy(queue_, from.buffer, from.offset + done, where.buffer, where.offset, piece);
    });
  });
}

void DeviceMemory::begin_map() {
  if (mapped_ != nullptr || bytes_ == 0 || kind_ != MemoryKind::batch) return;
  mapped_ = api_.map(queue_, pieces_[0].get(), bytes_, true, mapping_);
}

std::span<std::byte> DeviceMemory::map() {
  begin_map();
  if (mapping_) {
    api_.wait(mapping_.get(), api_.is_done(mapping_.get()) ? Wait::finished : Wait::back_pressure);
    mapping_ = {};
  }
  return {mapped_, static_cast<std::size_t>(bytes_)};
}

void DeviceMemory::unmap() {
  if (mapped_ == nullptr) return;
  api_.unmap(queue_, pieces_[0].get(), std::exchange(mapped_, nullptr));
  mapping_ = {};
}

}  // namespace stoker::opencl
