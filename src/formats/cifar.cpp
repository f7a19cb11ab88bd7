#include "formats/cifar.h"

#include "base/error.h"

namespace stoker {
namespace {

constexpr std::size_t kPlane = std::size_t{kCifarSide} * kCifarSide;
constexpr std::size_t kPixels = kPlane * kCifarChannels;
constexpr std::size_t kRecord = kPixels + 1;

}  // namespace

void parse_cifar10(std::span<const std::byte> bytes, std::string_view file, CifarImages& images) {
  require(!bytes.empty(), Code::bad_file, file, ": the file is empty");
  require(bytes.size() % kRecord == 0, Code::bad_file, file, ": ", bytes.size(),
          " bytes are not a whole number of CIFAR-10 records of ", kRecord, " bytes");
  const std::size_t records = bytes.size() / kRecord;
  for (std::size_t n = 0; n < records; ++n) {
    const int label = std::to_integer<int>(bytes[n * kRecord]);
    require(label < kCifarClasses, Code::bad_file, file, ": record ", n, " has label ", label, ", not in 0..9");
  }
  const std::size_t first = images.labels.size();
  images.labels.resize(first + records);
  images.pixels.resize((first + records) * kPixels);
  for (std::size_t n = 0; n < records; ++n) {
    const auto record = bytes.subspan(n * kRecord, kRecord);
    images.labels[first + n] = std::to_integer<std::int32_t>(record[0]);
    std::uint8_t* out = images.pixels.data() + (first + n) * kPixels;
    for (std::size_t p = 0; p < kPlane; ++p) {
      for (std::size_t c = 0; c < kCifarChannels; ++c) {
        *out++ = std::to_integer<std::uint8_t>(record[1 + c * kPlane + p]);
      }
    }
  }
}

}  // namespace stoker
