#include "formats/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"

namespace stoker {
namespace {

using nlohmann::json;

constexpr const char* kMetadataKey = "__metadata__";
constexpr int kMostDepth = 3;  // header, tensor, list of sizes

struct TypeRow {
  StoredType type;
  const char* name;
  int size;
};

constexpr TypeRow kTypes[] = {
    {StoredType::f64, "F64", 8},   {StoredType::f32, "F32", 4}, {StoredType::f16, "F16", 2},
    {StoredType::bf16, "BF16", 2}, {StoredType::i64, "I64", 8}, {StoredType::i32, "I32", 4},
    {StoredType::u8, "U8", 1},     {StoredType::b8, "BOOL", 1},
};

const TypeRow& row_of(StoredType type) {
  return *std::ranges::find_if(kTypes, [&](const TypeRow& row) { return row.type == type; });
}

// nlohmann keeps the last of two equal keys; a file that says two things about one tensor is refused here.
json parse_strictly(std::string_view text, const std::string& file) {
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      require(keys.back().insert(key).second, Code::bad_file, file, ": the header has '", key, "' twice");
    }
    require(depth <= kMostDepth, Code::bad_file, file, ": the header is nested too deeply");
    return true;
  };
  try {
    return json::parse(text, check);
  } catch (const json::exception& error) {
    fail(Code::bad_file, file, ": the header is not valid JSON: ", error.what());
  }
}

// One entry of the header, and what messages call it.
class Entry {
 public:
  Entry(const std::string& file, const std::string& name, const json& value)
      : where_(str(file, ": tensor '", name, "'")), value_(value) {
    require(value.is_object(), Code::bad_file, where_, " is not described by an object");
    require(value.size() == 3, Code::bad_file, where_, " has keys other than dtype, shape and data_offsets");
  }

  [[nodiscard]] StoredType type() const {
    const json& name = member("dtype");
    require(name.is_string(), Code::bad_file, where_, " has a dtype that is not a string");
    for (const TypeRow& row : kTypes) {
      if (name.get_ref<const std::string&>() == row.name) return row.type;
    }
    fail(Code::bad_file, where_, " has dtype ", name.get_ref<const std::string&>(), ", which is not supported");
  }

  [[nodiscard]] Shape shape() const {
    const std::vector<std::uint64_t> sizes = numbers("shape");
    require(sizes.size() <= Shape::kMaxRank, Code::bad_file, where_, " has ", sizes.size(), " dimensions, more than ",
            Shape::kMaxRank);
    Shape shape;
    try {
      for (const std::uint64_t size : sizes) {
        require(size <= INT64_MAX, Code::bad_file, "a dimension of ", size, " is too large");
        shape.push_back(static_cast<std::int64_t>(size));
      }
    } catch (const Error& error) {
      fail(Code::bad_file, where_, ": ", error.what());
    }
    return shape;
  }

  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> place() const {
    const std::vector<std::uint64_t> ends = numbers("data_offsets");
    require(ends.size() == 2 && ends[0] <= ends[1], Code::bad_file, where_,
            " has data_offsets that are not a begin and an end");
    return {ends[0], ends[1]};
  }

  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  [[nodiscard]] const json& member(const char* key) const {
    const auto found = value_.find(key);
    require(found != value_.end(), Code::bad_file, where_, " has no ", key);
    return *found;
  }

  [[nodiscard]] std::vector<std::uint64_t> numbers(const char* key) const {
    const json& list = member(key);
    require(list.is_array(), Code::bad_file, where_, ": ", key, " is not a list");
    std::vector<std::uint64_t> values;
    for (const json& value : list) {
      require(value.is_number_unsigned(), Code::bad_file, where_, ": ", key, " has ", value.type_name(),
              " where whole numbers >= 0 were expected");
      values.push_back(value.get<std::uint64_t>());
    }
    return values;
  }

  std::string where_;
  const json& value_;
};

StoredTensor parse_tensor(const std::string& file, const std::string& name, const json& value,
                          std::uint64_t value_bytes) {
  const Entry entry(file, name, value);
  StoredTensor tensor{.name = name, .type = entry.type(), .shape = entry.shape()};
  const auto [begin, end] = entry.place();
  // A Shape bounds its elements to 2^59, so that the product fits.
  const std::uint64_t expected =
      static_cast<std::uint64_t>(tensor.shape.elements()) * static_cast<std::uint64_t>(size_of(tensor.type));
  require(end - begin == expected, Code::bad_file, entry.where(), " occupies ", end - begin, " bytes where ",
          to_string(tensor.type), tensor.shape, " needs ", expected);
  require(end <= value_bytes, Code::bad_file, entry.where(), " ends at byte ", end, ", but only ", value_bytes,
          " bytes of values are there: the file is truncated or damaged");
  tensor.begin = begin;
  tensor.bytes = expected;
  return tensor;
}

Metadata parse_metadata(const json& value, const std::string& file) {
  require(value.is_object(), Code::bad_file, file, ": ", kMetadataKey, " is not an object");
  Metadata metadata;
  for (const auto& [key, text] : value.items()) {
    require(text.is_string(), Code::bad_file, file, ": ", kMetadataKey, ": '", key, "' is not a string");
    metadata.emplace(key, text.get<std::string>());
  }
  return metadata;
}

// Sorted by place, the tensors must follow each other and end with the file.
void check_places(const std::vector<StoredTensor>& tensors, std::uint64_t value_bytes, const std::string& file) {
  std::uint64_t at = 0;
  for (const StoredTensor& tensor : tensors) {
    require(tensor.begin >= at, Code::bad_file, file, ": tensor '", tensor.name, "' overlaps the one before it");
    require(tensor.begin == at, Code::bad_file, file, ": a gap of ", tensor.begin - at, " bytes before tensor '",
            tensor.name, "'");
    at = tensor.begin + tensor.bytes;
  }
  require(at == value_bytes, Code::bad_file, file, ": ", value_bytes - at, " bytes after the last tensor");
}

}  // namespace

int size_of(StoredType type) { return row_of(type).size; }

std::string_view to_string(StoredType type) { return row_of(type).name; }

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t value_bytes, const std::string& file) {
  require(text.starts_with('{'), Code::bad_file, file, ": not a safetensors file: its header does not begin with '{'");
  const json parsed = parse_strictly(text, file);
  SafetensorsHeader header;
  for (const auto& [name, value] : parsed.items()) {
    if (name == kMetadataKey) {
      header.metadata = parse_metadata(value, file);
    } else {
      header.tensors.push_back(parse_tensor(file, name, value, value_bytes));
    }
  }
  // Empty tensors share their place with the next one and go first.
  std::ranges::stable_sort(header.tensors, {}, [](const StoredTensor& t) { return std::pair(t.begin, t.bytes); });
  check_places(header.tensors, value_bytes, file);
  return header;
}

std::string render_safetensors_header(std::span<const TensorToStore> tensors, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  std::set<std::string_view> names{kMetadataKey};
  std::uint64_t at = 0;
  for (const TensorToStore& tensor : tensors) {
    require(names.insert(tensor.name).second, Code::bad_argument, "safetensors: the name '", tensor.name,
            "' is used twice or reserved");
    const std::uint64_t end = at + static_cast<std::uint64_t>(tensor.shape.elements() * size_of(tensor.type));
    const auto dims = tensor.shape.dims();
    header.push_back({tensor.name,
                      {{"dtype", to_string(tensor.type)},
                       {"shape", std::vector<std::int64_t>(dims.begin(), dims.end())},
                       {"data_offsets", {at, end}}}});
    at = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    fail(Code::bad_argument, "safetensors: a name or metadata text is not valid UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  require(text.size() <= kMostHeaderBytes, Code::bad_argument, "safetensors: a header of ", text.size(),
          " bytes is too large");
  std::string result(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) result[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return result + text;
}

}  // namespace stoker
