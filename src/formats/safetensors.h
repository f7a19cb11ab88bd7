// safetensors files: a length, a JSON header with each tensor's type, shape and place, then the raw values.
// Reading checks everything before it believes it; values are read one tensor at a time. Assumes a little-endian host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/shape.h"

namespace stoker {

// Files hold two types that no tensor of a graph has, so this is not DType.
enum class StoredType : std::uint8_t { f64, f32, f16, bf16, i64, i32, u8, b8 };

[[nodiscard]] int size_of(StoredType type);
[[nodiscard]] std::string_view to_string(StoredType type);  // as in the file: "F32", "BOOL"
[[nodiscard]] StoredType stored_type(DType type);
[[nodiscard]] std::optional<DType> tensor_type(StoredType type);

struct StoredTensor {
  std::string name;
  StoredType type = StoredType::f32;
  Shape shape;
  std::uint64_t begin = 0;  // bytes from the start of the values
  std::uint64_t bytes = 0;
};

using Metadata = std::map<std::string, std::string>;

class SafetensorsFile {
 public:
  // Reads and checks the header. Errors: Code::io, or Code::bad_file with what is wrong.
  [[nodiscard]] static SafetensorsFile open(const std::filesystem::path& path);
  // Over bytes that outlive the result; `file` stands in messages.
  [[nodiscard]] static SafetensorsFile over(std::span<const std::byte> bytes, std::string file);

  // In the order of their values.
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;  // null if there is none
  [[nodiscard]] const StoredTensor& at(std::string_view name) const;    // an Error if there is none

  // The values as they are stored; `out` has at(name).bytes.
  void read(std::string_view name, std::span<std::byte> out) const;
  // F64, F16 and BF16 are converted; other types are an Error.
  [[nodiscard]] std::vector<float> read_f32(std::string_view name) const;
  void read_f32(std::string_view name, std::span<float> out) const;
  // I32, I64, U8 and BOOL; other types are an Error.
  [[nodiscard]] std::vector<std::int64_t> read_i64(std::string_view name) const;

 private:
  // Copies bytes at an offset of the file; throws if they cannot be had.
  using ReadAt = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;

  SafetensorsFile(std::string file, std::uint64_t size, ReadAt read_at);
  template <typename Out, typename Convert>
  void read_converted(const StoredTensor& tensor, std::span<Out> out, const Convert& convert) const;

  std::string file_;
  ReadAt read_at_;
  std::uint64_t values_at_ = 0;
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string, std::size_t> by_name_;
  Metadata metadata_;
};

struct TensorToStore {
  std::string name;
  StoredType type = StoredType::f32;
  Shape shape;
  // Hands over exactly size_of(type) * shape.elements() bytes, in one part or several, when its turn comes.
  std::function<void(const WritePart&)> values;
};

// A tensor whose values stay where they are; they must outlive the writing.
[[nodiscard]] TensorToStore stored_f32(std::string name, const Shape& shape, std::span<const float> values);

// Writes atomically (write_file_atomically), tensors in the order given.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToStore> tensors,
                       const Metadata& metadata = {});

}  // namespace stoker
