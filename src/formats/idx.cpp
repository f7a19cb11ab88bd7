#include "formats/idx.h"

#include "base/error.h"

namespace stoker {
namespace {

constexpr int kUnsignedByte = 0x08;

std::int64_t big_endian(std::span<const std::byte> word) {
  std::int64_t value = 0;
  for (const std::byte byte : word) value = value << 8 | std::to_integer<std::int64_t>(byte);
  return value;
}

}  // namespace

IdxView parse_idx(std::span<const std::byte> bytes, std::string_view file) {
  require(bytes.size() >= 4, Code::bad_file, file, ": too short for an idx file: ", bytes.size(), " bytes");
  const int type = std::to_integer<int>(bytes[2]);
  const int rank = std::to_integer<int>(bytes[3]);
  require(big_endian(bytes.first(2)) == 0, Code::bad_file, file, ": not an idx file: it does not begin with two zeros");
  require(type == kUnsignedByte, Code::bad_file, file, ": idx type ", type, " where ", kUnsignedByte,
          " (unsigned bytes) was expected");
  require(rank >= 1 && rank <= Shape::kMaxRank, Code::bad_file, file, ": idx rank ", rank, " is not in 1..",
          Shape::kMaxRank);
  bytes = bytes.subspan(4);
  const std::size_t sizes_bytes = static_cast<std::size_t>(rank) * 4;
  require(bytes.size() >= sizes_bytes, Code::bad_file, file, ": the idx header is truncated");
  const auto values = bytes.subspan(sizes_bytes);
  IdxView view{.values = values};
  std::size_t elements = 1;
  for (int i = 0; i < rank; ++i) {
    const auto size = static_cast<std::size_t>(big_endian(bytes.subspan(static_cast<std::size_t>(i) * 4, 4)));
    require(size > 0, Code::bad_file, file, ": size ", i, " of the idx file is zero");
    // Bounded by what is there, the product cannot overflow.
    require(elements <= values.size() / size, Code::bad_file, file, ": truncated: its sizes ask for more than the ",
            values.size(), " values that follow");
    elements *= size;
    view.shape.push_back(static_cast<std::int64_t>(size));
  }
  require(elements == values.size(), Code::bad_file, file, ": ", values.size(), " values follow where ", view.shape,
          " asks for ", elements);
  return view;
}

}  // namespace stoker
