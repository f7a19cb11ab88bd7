#include "backends/opencl/binder.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace stoker::opencl {
namespace {

DeviceMemory& device(Memory* memory) { return dynamic_cast<DeviceMemory&>(*memory); }

// Of what the executable adds: enough for any vector. Constants are read through images nowhere.
constexpr std::int64_t kOwnAlignment = 128;

bool has_place(const Arg& arg) {
  return arg.kind == Arg::Kind::tensor || arg.kind == Arg::Kind::image || arg.kind == Arg::Kind::buffer;
}

}  // namespace

Binder::Binder(Api& api, cl_context context, cl_command_queue queue, const Device& device, const Plan& plan,
               const Bindings& bindings, std::int64_t piece_bytes)
    : api_(api),
      context_(context),
      queue_(queue),
      device_(device),
      plan_(plan),
      bindings_(bindings),
      piece_bytes_(piece_bytes) {}

void Binder::announce(const Launch& launch) {
  for (const Arg& arg : launch.args) {
    if (has_place(arg)) add_constant(arg.place);
    if (arg.kind != Arg::Kind::table) continue;
    for (const Table::Patch& patch : arg.words->patches) add_constant(patch.place);
    tables_[arg.words.get()] = add_own(std::as_bytes(std::span(arg.words->words)));
  }
}

void Binder::add_constant(const Place& place) {
  if (place.kind != Place::Kind::constant || place.index == kRing || constants_.contains(place.index)) return;
  const Node& node = plan_.graph.nodes[static_cast<std::size_t>(place.index)];
  constants_[place.index] = add_own(std::as_bytes(std::span(node.attrs.floats("values"))));
}

std::int64_t Binder::add_own(std::span<const std::byte> bytes) {
  const auto at = static_cast<std::int64_t>(own_bytes_.size());
  own_bytes_.insert(own_bytes_.end(), bytes.begin(), bytes.end());
  own_bytes_.resize(static_cast<std::size_t>(round_up(static_cast<std::int64_t>(own_bytes_.size()), kOwnAlignment)));
  return at;
}

void Binder::allocate() {
  ring_bytes_ = round_up(ring_bytes_, kOwnAlignment);
  const auto bytes = ring_bytes_ + static_cast<std::int64_t>(own_bytes_.size());
  own_ = std::make_unique<DeviceMemory>(api_, context_, queue_, bytes, MemoryKind::plain, piece_bytes_);
  for (const auto& [table, at] : tables_) {
    const std::vector<std::int32_t> words = resolved(*table);
    std::memcpy(own_bytes_.data() + at, words.data(), words.size() * sizeof(std::int32_t));
  }
  if (!own_bytes_.empty()) own_->upload(ring_bytes_, own_bytes_, true);
}

// A table's offsets are the same for every batch slot: a batch buffer holds one tensor.
std::vector<std::int32_t> Binder::resolved(const Table& table) const {
  std::vector<std::int32_t> words = table.words;
  for (const Table::Patch& patch : table.patches) {
    words[static_cast<std::size_t>(patch.word)] =
        static_cast<std::int32_t>(where(patch.place, 0).offset / patch.element_bytes);
  }
  return words;
}

int Binder::buffer_number(const Place& place) const {
  const auto piece = [&](std::int64_t offset) { return static_cast<int>(offset / piece_bytes_); };
  constexpr int kNext = 10000;  // more pieces than any memory has
  switch (place.kind) {
    case Place::Kind::arena: return piece(place.offset);
    case Place::Kind::state: {
      const MemoryRef& state = bindings_.states[static_cast<std::size_t>(place.index)];
      const auto first = std::ranges::find(bindings_.states, state.memory, &MemoryRef::memory);
      return kNext * (3 + static_cast<int>(first - bindings_.states.begin())) + piece(state.offset + place.offset);
    }
    case Place::Kind::input: return kNext + place.index;
    case Place::Kind::constant:
    case Place::Kind::none: break;
  }
  return 2 * kNext;
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
      case Arg::Kind::buffer: {
        const cl_mem buffer = where(arg.place, slot).buffer;
        api_.set_arg(kernel, index++, sizeof(cl_mem), &buffer);
        break;
      }
      case Arg::Kind::table: {
        const Where place = own_->at(ring_bytes_ + tables_.at(arg.words.get()));
        const auto at = static_cast<cl_int>(place.offset / static_cast<std::int64_t>(sizeof(std::int32_t)));
        api_.set_arg(kernel, index++, sizeof(cl_mem), &place.buffer);
        api_.set_arg(kernel, index++, sizeof(at), &at);
        break;
      }
      case Arg::Kind::real: api_.set_arg(kernel, index++, sizeof(arg.value), &arg.value); break;
      case Arg::Kind::local: api_.set_arg(kernel, index++, static_cast<std::size_t>(arg.number), nullptr); break;
    }
  }
}

}  // namespace stoker::opencl
