#include "backends/opencl/binder.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace stoker::opencl {
namespace {

DeviceMemory& device(Memory* memory) { return dynamic_cast<DeviceMemory&>(*memory); }

bool has_place(const Arg& arg) { return arg.kind == Arg::Kind::tensor || arg.kind == Arg::Kind::image; }

}  // namespace

Binder::Binder(Api& api, cl_context context, cl_command_queue queue, const Device& device, const Plan& plan,
               const Bindings& bindings)
    : api_(api), context_(context), queue_(queue), device_(device), plan_(plan), bindings_(bindings) {}

void Binder::announce(const Launch& launch) {
  for (const Arg& arg : launch.args) {
    if (has_place(arg) && arg.place.kind == Place::Kind::constant && arg.place.index >= 0)
      add_constant(arg.place.index);
  }
}

void Binder::add_constant(int node) {
  if (constants_.contains(node)) return;
  const std::vector<float>& values = plan_.graph.nodes[static_cast<std::size_t>(node)].attrs.floats("values");
  const auto bytes = std::as_bytes(std::span(values));
  constants_[node] = static_cast<std::int64_t>(own_bytes_.size());
  own_bytes_.insert(own_bytes_.end(), bytes.begin(), bytes.end());
  own_bytes_.resize(
      static_cast<std::size_t>(round_up(static_cast<std::int64_t>(own_bytes_.size()), device_.base_alignment)));
}

void Binder::allocate(std::int64_t piece_bytes) {
  ring_bytes_ = round_up(ring_bytes_, device_.base_alignment);
  const auto bytes = ring_bytes_ + static_cast<std::int64_t>(own_bytes_.size());
  own_ = std::make_unique<DeviceMemory>(api_, context_, queue_, bytes, MemoryKind::plain, piece_bytes);
  if (!own_bytes_.empty()) own_->upload(ring_bytes_, own_bytes_);
}

Where Binder::where(const Place& place, int slot) const {
  const auto index = static_cast<std::size_t>(place.index);
  switch (place.kind) {
    case Place::Kind::arena: return device(bindings_.arena).at(place.offset);
    case Place::Kind::state:
      return device(bindings_.states[index].memory).at(bindings_.states[index].offset + place.offset);
    case Place::Kind::input: return device(bindings_.batches[static_cast<std::size_t>(slot)][index]).at(place.offset);
    case Place::Kind::constant:
      if (place.index == kRing) return own_->at(place.offset);
      return own_->at(ring_bytes_ + constants_.at(place.index) + place.offset);
    case Place::Kind::none: break;
  }
  DCHECK(false);
  return {};
}

bool Binder::reads_batch(const Launch& launch) {
  return std::ranges::any_of(launch.args,
                             [](const Arg& arg) { return has_place(arg) && arg.place.kind == Place::Kind::input; });
}

cl_mem Binder::sub_buffer(const Range& range) {
  Handle<cl_mem>& handle = sub_buffers_[range];
  if (!handle) handle = api_.create_sub_buffer(std::get<0>(range), std::get<1>(range), std::get<2>(range));
  return handle.get();
}

cl_mem Binder::image_view(const Range& range) {
  Handle<cl_mem>& handle = views_[range];
  if (!handle) handle = api_.create_image_view(context_, sub_buffer(range), std::get<2>(range));
  return handle.get();
}

// Reading a view of a buffer while writing to that buffer is undefined, so a launch with a view sees the rest of that
// buffer through sub-buffers that do not overlap it (`apart`).
void Binder::set_tensor(cl_kernel kernel, int& index, const Arg& arg, Where place, bool apart) {
  std::int64_t origin = 0;
  if (apart) {
    origin = place.offset / device_.base_alignment * device_.base_alignment;
    const std::int64_t end = place.offset + std::max<std::int64_t>(arg.place.bytes, arg.element_bytes);
    place.buffer = sub_buffer({place.buffer, origin, end - origin});
  }
  const auto at = static_cast<cl_int>((place.offset - origin) / arg.element_bytes);
  api_.set_arg(kernel, index++, sizeof(cl_mem), &place.buffer);
  api_.set_arg(kernel, index++, sizeof(at), &at);
}

void Binder::set_args(cl_kernel kernel, const Launch& launch, int slot) {
  std::vector<cl_mem> viewed;
  for (const Arg& arg : launch.args) {
    if (arg.kind == Arg::Kind::image) viewed.push_back(where(arg.place, slot).buffer);
  }
  int index = 0;
  for (const Arg& arg : launch.args) {
    switch (arg.kind) {
      case Arg::Kind::tensor: {
        const Where place = where(arg.place, slot);
        set_tensor(kernel, index, arg, place, std::ranges::find(viewed, place.buffer) != viewed.end());
        break;
      }
      case Arg::Kind::image: {
        const Where place = where(arg.place, slot);
        const cl_mem view = image_view({place.buffer, place.offset, arg.place.bytes});
        api_.set_arg(kernel, index++, sizeof(cl_mem), &view);
        break;
      }
      case Arg::Kind::integer: {
        const auto number = static_cast<cl_int>(arg.number);
        api_.set_arg(kernel, index++, sizeof(number), &number);
        break;
      }
      case Arg::Kind::real: api_.set_arg(kernel, index++, sizeof(arg.value), &arg.value); break;
      case Arg::Kind::local: api_.set_arg(kernel, index++, static_cast<std::size_t>(arg.number), nullptr); break;
    }
  }
}

}  // namespace stoker::opencl
