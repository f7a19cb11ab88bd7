#include "run/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "formats/safetensors.h"

namespace stoker {
namespace {

constexpr const char* kVersion = "1";
constexpr std::string_view kOptimizerPrefix = "optimizer.";
constexpr std::string_view kNotePrefix = "stoker.note.";

// Position p of a file's shape is dimension order[p] of the memory's.
constexpr std::array<int, 4> kFileOrder{3, 2, 0, 1};  // [KH, KW, I, O] -> [O, I, KH, KW]

// Calls visit(memory index, file index) for every element of a convolution weight.
template <typename Visit>
void for_each_conv_element(const Shape& memory, const Visit& visit) {
  const std::int64_t taps = memory[0] * memory[1];
  const std::int64_t inputs = memory[2];
  const std::int64_t outputs = memory[3];
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::int64_t i = 0; i < inputs; ++i) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        visit(static_cast<std::size_t>((tap * inputs + i) * outputs + o),
              static_cast<std::size_t>((o * inputs + i) * taps + tap));
      }
    }
  }
}

std::vector<float> to_file_layout(const StateVar& state, std::vector<float> values) {
  if (state.layout == FileLayout::plain) return values;
  std::vector<float> result(values.size());
  for_each_conv_element(state.spec.shape, [&](std::size_t memory, std::size_t file) { result[file] = values[memory]; });
  return result;
}

std::vector<float> to_memory_layout(const StateVar& state, std::span<const float> values) {
  if (state.layout == FileLayout::plain) return {values.begin(), values.end()};
  std::vector<float> result(values.size());
  for_each_conv_element(state.spec.shape, [&](std::size_t memory, std::size_t file) { result[memory] = values[file]; });
  return result;
}

bool is_integer(const StateVar& state) { return state.spec.dtype == DType::i32; }

// Integers are I64 in files, as PyTorch's num_batches_tracked is.
TensorToStore to_store(const Session& session, const StateVar& state) {
  TensorToStore tensor{.name = state.name, .shape = file_shape(state)};
  tensor.type = is_integer(state) ? StoredType::i64 : StoredType::f32;
  tensor.values = [&session, &state](const WritePart& write) {
    const auto count = static_cast<std::size_t>(state.spec.shape.elements());
    if (is_integer(state)) {
      std::vector<std::int32_t> values(count);
      session.read_state(state.name, std::as_writable_bytes(std::span(values)));
      const std::vector<std::int64_t> wide(values.begin(), values.end());
      write(std::as_bytes(std::span(wide)));
    } else {
      const std::vector<float> stored = read_in_file_layout(session, state);
      write(std::as_bytes(std::span(stored)));
    }
  };
  return tensor;
}

void load_state(const SafetensorsFile& file, const StateVar& state, Session& session) {
  if (is_integer(state)) {
    const std::vector<std::int64_t> wide = file.read_i64(state.name);
    const std::vector<std::int32_t> values(wide.begin(), wide.end());
    session.write_state(state.name, std::as_bytes(std::span(values)));
  } else {
    write_from_file_layout(session, state, file.read_f32(state.name));
  }
}

bool is_optimizer_state(std::string_view name) { return name.starts_with(kOptimizerPrefix); }

// What of the session's states the file has; `with_optimizer` includes the optimizer's.
LoadReport compare(const SafetensorsFile& file, const Session& session, bool with_optimizer) {
  LoadReport report;
  std::map<std::string_view, bool> known;
  for (const StateVar& state : session.states()) {
    if (state.role == StateRole::transient) continue;
    known[state.name] = true;
    if (!with_optimizer && is_optimizer_state(state.name)) continue;
    const StoredTensor* stored = file.find(state.name);
    if (stored == nullptr) {
      report.missing.push_back(state.name);
    } else if (!(stored->shape == file_shape(state))) {
      report.wrong_shape.push_back(str(state.name, " is ", stored->shape, " and should be ", file_shape(state)));
    } else {
      report.loaded.push_back(state.name);
    }
  }
  for (const StoredTensor& stored : file.tensors()) {
    if (known.contains(stored.name) || (!with_optimizer && is_optimizer_state(stored.name))) continue;
    report.extra.push_back(stored.name);
  }
  return report;
}

void load_states(const SafetensorsFile& file, const LoadReport& report, Session& session) {
  std::map<std::string_view, bool> wanted;
  for (const std::string& name : report.loaded) wanted[name] = true;
  for (const StateVar& state : session.states()) {
    if (wanted.contains(state.name)) load_state(file, state, session);
  }
}

std::string describe(const nn::Optimizer& optimizer) {
  return nlohmann::ordered_json{{"kind", nn::to_string(optimizer.kind)},
                                {"momentum", optimizer.momentum},
                                {"nesterov", optimizer.nesterov},
                                {"weight_decay", optimizer.weight_decay},
                                {"beta1", optimizer.beta1},
                                {"beta2", optimizer.beta2},
                                {"alpha", optimizer.alpha},
                                {"eps", optimizer.eps}}
      .dump();
}

std::string describe(const nn::Schedule& schedule) {
  return nlohmann::ordered_json{{"kind", nn::to_string(schedule.kind)},  {"rate", schedule.rate},
                                {"warmup_steps", schedule.warmup_steps}, {"total_steps", schedule.total_steps},
                                {"step_size", schedule.step_size},       {"gamma", schedule.gamma},
                                {"final_rate", schedule.final_rate}}
      .dump();
}

// How a checkpoint names a device: its place in the list may change, its name tells it again.
std::string recorded(const DeviceInfo& device) {
  return device.id == "cpu" ? device.id : device.id + " " + device.name;
}

const std::string& entry(const Metadata& metadata, const std::string& key, const std::filesystem::path& path) {
  const auto found = metadata.find(key);
  require(found != metadata.end(), Code::bad_file, path.string(), " is no checkpoint of Stoker's: its metadata lack '",
          key, "' (weights alone can be loaded with --init)");
  return found->second;
}

template <typename Integer>
Integer integer_entry(const Metadata& metadata, const std::string& key, const std::filesystem::path& path) {
  const std::string& text = entry(metadata, key, path);
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size() && value >= 0, Code::bad_file, path.string(), ": '",
          key, "' is '", text, "', not a number");
  return value;
}

CheckpointInfo parse_info(const Metadata& metadata, const std::filesystem::path& path) {
  const std::string& version = entry(metadata, "stoker.version", path);
  require(version == kVersion, Code::bad_file, path.string(), " is a checkpoint of version ", version,
          "; this build reads version ", kVersion);
  CheckpointInfo info;
  info.model = entry(metadata, "stoker.model", path);
  info.step = integer_entry<std::int64_t>(metadata, "stoker.step", path);
  info.seed = integer_entry<std::uint64_t>(metadata, "stoker.seed", path);
  info.epoch = integer_entry<std::int64_t>(metadata, "stoker.epoch", path);
  info.batch = integer_entry<std::int64_t>(metadata, "stoker.batch", path);
  info.optimizer = entry(metadata, "stoker.optimizer", path);
  info.schedule = entry(metadata, "stoker.schedule", path);
  info.numerics = entry(metadata, "stoker.numerics", path);
  const auto device = metadata.find("stoker.device");
  info.device = device == metadata.end() ? "cpu" : device->second;  // older files do not say: there was no other
  for (const auto& [key, value] : metadata) {
    if (key.starts_with(kNotePrefix)) info.notes[key.substr(kNotePrefix.size())] = value;
  }
  return info;
}

void append_list(std::string& text, const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return;
  text += (text.empty() ? "" : "; ") + std::string(title) + ": ";
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kShown) text += str(" and ", names.size() - kShown, " more");
}

}  // namespace

Shape file_shape(const StateVar& state) {
  if (state.layout == FileLayout::plain) return state.spec.shape;
  Shape shape;
  for (const int dim : kFileOrder) shape.push_back(state.spec.shape[dim]);
  return shape;
}

std::vector<float> read_in_file_layout(const Session& session, const StateVar& state) {
  std::vector<float> values(static_cast<std::size_t>(state.spec.shape.elements()));
  session.read_state(state.name, std::as_writable_bytes(std::span(values)));
  return to_file_layout(state, std::move(values));
}

void write_from_file_layout(Session& session, const StateVar& state, std::span<const float> values) {
  require(static_cast<std::int64_t>(values.size()) == state.spec.shape.elements(), Code::bad_argument, state.name,
          " has ", state.spec.shape.elements(), " values, not ", values.size());
  const std::vector<float> own = to_memory_layout(state, values);
  session.write_state(state.name, std::as_bytes(std::span(own)));
}

void save_checkpoint(const std::filesystem::path& path, const Session& session, LoaderPosition position,
                     const std::map<std::string, std::string>& notes) {
  // "pt" tells other tools that names and layouts are PyTorch's.
  Metadata metadata{{"format", "pt"},
                    {"stoker.version", kVersion},
                    {"stoker.model", session.model().name},
                    {"stoker.step", std::to_string(session.steps_done())},
                    {"stoker.seed", std::to_string(session.options().seed)},
                    {"stoker.epoch", std::to_string(position.epoch)},
                    {"stoker.batch", std::to_string(position.batch)},
                    {"stoker.optimizer", describe(session.options().optimizer)},
                    {"stoker.schedule", describe(session.options().schedule)},
                    {"stoker.device", recorded(session.device())},
                    {"stoker.numerics", session.numerics_key()}};
  for (const auto& [key, value] : notes) metadata[std::string(kNotePrefix) + key] = value;
  std::vector<TensorToStore> tensors;
  for (const StateVar& state : session.states()) {
    if (state.role != StateRole::transient) tensors.push_back(to_store(session, state));
  }
  write_safetensors(path, tensors, metadata);
}

CheckpointInfo read_checkpoint_info(const std::filesystem::path& path) {
  return parse_info(SafetensorsFile::open(path).metadata(), path);
}

std::string device_of(const CheckpointInfo& info) {
  std::string known;
  const std::string name = info.device.substr(std::min(info.device.find(' '), info.device.size()));
  const DeviceInfo* moved = nullptr;
  const std::vector<DeviceInfo> devices = list_devices();
  for (const DeviceInfo& device : devices) {
    if (recorded(device) == info.device) return device.id;
    if (!name.empty() && " " + device.name == name) moved = &device;
    known += (known.empty() ? "" : ", ") + recorded(device);
  }
  if (moved != nullptr) return moved->id;
  fail(Code::device, "the checkpoint was trained on ", info.device, ", which is not here (there are: ", known,
       "); to go on on another device, name it: --device cpu");
}

CheckpointInfo resume_checkpoint(const std::filesystem::path& path, Session& session) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  CheckpointInfo info = parse_info(file.metadata(), path);
  require(info.model == session.model().name, Code::bad_argument, path.string(), " is of model ", info.model,
          ", but this is ", session.model().name);
  const std::string optimizer = describe(session.options().optimizer);
  require(info.optimizer == optimizer, Code::bad_argument, path.string(), " was trained with optimizer ",
          info.optimizer, ", but this is ", optimizer);
  require(info.seed == session.options().seed, Code::bad_argument, path.string(), " was trained with seed ", info.seed,
          ", but this is ", session.options().seed);
  const LoadReport report = compare(file, session, true);
  require(report.complete(), Code::bad_file, path.string(), " does not fit ", session.model().name, ": ",
          to_string(report));
  load_states(file, report, session);
  return info;
}

LoadReport load_weights(const std::filesystem::path& path, Session& session) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  LoadReport report = compare(file, session, false);
  require(!report.loaded.empty(), Code::bad_file, path.string(), " has nothing that fits ", session.model().name, ": ",
          to_string(report));
  load_states(file, report, session);
  return report;
}

void load_all_weights(const std::filesystem::path& path, Session& session) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  LoadReport report = compare(file, session, false);
  // Counters say nothing about the weights; files of others may lack them.
  std::erase_if(report.missing, [&](const std::string& name) {
    return std::ranges::any_of(session.states(), [&](const StateVar& state) {
      return state.name == name && state.role == StateRole::counter;
    });
  });
  require(report.complete(), Code::bad_file, path.string(), " does not fit ", session.model().name, ": ",
          to_string(report));
  load_states(file, report, session);
}

std::string to_string(const LoadReport& report) {
  std::string text;
  append_list(text, "missing", report.missing);
  append_list(text, "extra", report.extra);
  append_list(text, "wrong shape", report.wrong_shape);
  return text;
}

}  // namespace stoker
