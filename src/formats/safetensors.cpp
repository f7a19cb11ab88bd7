#include "formats/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "formats/half.h"
#include "formats/safetensors_header.h"

namespace stoker {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kChunk = std::size_t{1} << 16;

class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path) : name_(path.string()) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) fail(Code::io, "cannot open ", name_, ": ", std::strerror(errno));
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  [[nodiscard]] std::uint64_t size() const {
    struct stat info {};
    if (::fstat(fd_, &info) != 0) fail(Code::io, "cannot read ", name_, ": ", std::strerror(errno));
    require(S_ISREG(info.st_mode), Code::io, "cannot read ", name_, ": it is not a regular file");
    return static_cast<std::uint64_t>(info.st_size);
  }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(Code::io, "cannot read ", name_, ": ", std::strerror(errno));
      require(got > 0, Code::bad_file, name_, ": the file became shorter while it was read");
      out = out.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
  }

 private:
  std::string name_;
  int fd_ = -1;
};

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

float to_f32(StoredType type, const std::byte* from) {
  switch (type) {
    case StoredType::f64: return static_cast<float>(load<double>(from));
    case StoredType::f16: return float_from_f16(load<std::uint16_t>(from));
    case StoredType::bf16: return float_from_bf16(load<std::uint16_t>(from));
    default: return load<float>(from);
  }
}

std::int64_t to_i64(StoredType type, const std::byte* from) {
  switch (type) {
    case StoredType::i64: return load<std::int64_t>(from);
    case StoredType::i32: return load<std::int32_t>(from);
    default: return std::to_integer<std::int64_t>(*from);
  }
}

bool is_floating(StoredType type) {
  return type == StoredType::f64 || type == StoredType::f32 || type == StoredType::f16 || type == StoredType::bf16;
}

std::uint64_t expected_bytes(const TensorToStore& tensor) {
  return static_cast<std::uint64_t>(tensor.shape.elements() * size_of(tensor.type));
}

}  // namespace

StoredType stored_type(DType type) {
  switch (type) {
    case DType::f32: return StoredType::f32;
    case DType::f16: return StoredType::f16;
    case DType::i32: return StoredType::i32;
    case DType::i64: return StoredType::i64;
    case DType::u8: return StoredType::u8;
    case DType::b8: return StoredType::b8;
  }
  return StoredType::u8;
}

std::optional<DType> tensor_type(StoredType type) {
  switch (type) {
    case StoredType::f32: return DType::f32;
    case StoredType::f16: return DType::f16;
    case StoredType::i32: return DType::i32;
    case StoredType::i64: return DType::i64;
    case StoredType::u8: return DType::u8;
    case StoredType::b8: return DType::b8;
    case StoredType::f64:
    case StoredType::bf16: return std::nullopt;
  }
  return std::nullopt;
}

SafetensorsFile::SafetensorsFile(std::string file, std::uint64_t size, ReadAt read_at)
    : file_(std::move(file)), read_at_(std::move(read_at)) {
  require(size >= 8, Code::bad_file, file_, ": not a safetensors file: it has only ", size, " bytes");
  std::byte prefix[8];
  read_at_(0, prefix);
  const auto length = load<std::uint64_t>(prefix);
  require(length <= kMostHeaderBytes, Code::bad_file, file_, ": not a safetensors file: its header would have ", length,
          " bytes");
  require(length <= size - 8, Code::bad_file, file_, ": truncated: a header of ", length, " bytes in a file of ", size);
  std::string text(static_cast<std::size_t>(length), '\0');
  read_at_(8, std::as_writable_bytes(std::span(text)));
  values_at_ = 8 + length;
  SafetensorsHeader header = parse_safetensors_header(text, size - values_at_, file_);
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
  for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  const auto file = std::make_shared<const OpenFile>(path);
  return {path.string(), file->size(),
          [file](std::uint64_t offset, std::span<std::byte> out) { file->read_at(offset, out); }};
}

SafetensorsFile SafetensorsFile::over(std::span<const std::byte> bytes, std::string file) {
  return {std::move(file), bytes.size(), [bytes](std::uint64_t offset, std::span<std::byte> out) {
            std::ranges::copy(bytes.subspan(static_cast<std::size_t>(offset), out.size()), out.begin());
          }};
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

const StoredTensor& SafetensorsFile::at(std::string_view name) const {
  const StoredTensor* tensor = find(name);
  require(tensor != nullptr, Code::bad_file, file_, ": no tensor is named '", name, "'");
  return *tensor;
}

void SafetensorsFile::read(std::string_view name, std::span<std::byte> out) const {
  const StoredTensor& tensor = at(name);
  require(out.size() == tensor.bytes, Code::bad_argument, file_, ": tensor '", name, "' has ", tensor.bytes,
          " bytes, the destination ", out.size());
  read_at_(values_at_ + tensor.begin, out);
}

// In chunks, so that a large tensor is never held in both types.
template <typename Out, typename Convert>
void SafetensorsFile::read_converted(const StoredTensor& tensor, std::span<Out> out, const Convert& convert) const {
  const auto size = static_cast<std::size_t>(size_of(tensor.type));
  std::vector<std::byte> chunk(std::min<std::size_t>(kChunk, static_cast<std::size_t>(tensor.bytes)));
  std::uint64_t at = values_at_ + tensor.begin;
  while (!out.empty()) {
    const std::size_t count = std::min(out.size(), kChunk / size);
    read_at_(at, std::span(chunk).first(count * size));
    for (std::size_t i = 0; i < count; ++i) out[i] = convert(tensor.type, chunk.data() + i * size);
    out = out.subspan(count);
    at += count * size;
  }
}

void SafetensorsFile::read_f32(std::string_view name, std::span<float> out) const {
  const StoredTensor& tensor = at(name);
  require(is_floating(tensor.type), Code::bad_file, file_, ": tensor '", name, "' is ", to_string(tensor.type),
          " where a floating type was expected");
  require(out.size() == static_cast<std::size_t>(tensor.shape.elements()), Code::bad_argument, file_, ": tensor '",
          name, "' has ", tensor.shape.elements(), " values, the destination ", out.size());
  if (tensor.type == StoredType::f32) return read(name, std::as_writable_bytes(out));
  read_converted(tensor, out, to_f32);
}

std::vector<float> SafetensorsFile::read_f32(std::string_view name) const {
  std::vector<float> values(static_cast<std::size_t>(at(name).shape.elements()));
  read_f32(name, values);
  return values;
}

std::vector<std::int64_t> SafetensorsFile::read_i64(std::string_view name) const {
  const StoredTensor& tensor = at(name);
  require(!is_floating(tensor.type), Code::bad_file, file_, ": tensor '", name, "' is ", to_string(tensor.type),
          " where an integer type was expected");
  std::vector<std::int64_t> values(static_cast<std::size_t>(tensor.shape.elements()));
  read_converted(tensor, std::span(values), to_i64);
  return values;
}

TensorToStore stored_f32(std::string name, const Shape& shape, std::span<const float> values) {
  require(static_cast<std::size_t>(shape.elements()) == values.size(), Code::bad_argument, "safetensors: '", name,
          "' has ", values.size(), " values where ", shape, " asks for ", shape.elements());
  return {.name = std::move(name), .type = StoredType::f32, .shape = shape, .values = [values](const WritePart& write) {
            write(std::as_bytes(values));
          }};
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToStore> tensors,
                       const Metadata& metadata) {
  const std::string header = render_safetensors_header(tensors, metadata);
  write_file_atomically(path, [&](const WritePart& write) {
    write(std::as_bytes(std::span(header)));
    for (const TensorToStore& tensor : tensors) {
      std::uint64_t written = 0;
      tensor.values([&](std::span<const std::byte> part) {
        written += part.size();
        write(part);
      });
      require(written == expected_bytes(tensor), Code::bad_argument, "safetensors: '", tensor.name, "' gave ", written,
              " bytes where ", to_string(tensor.type), tensor.shape, " needs ", expected_bytes(tensor));
    }
  });
}

}  // namespace stoker
