// CIFAR-10's binary batches: records of a label byte and 3x32x32 pixels, channel by channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stoker {

constexpr int kCifarSide = 32;
constexpr int kCifarChannels = 3;
constexpr int kCifarClasses = 10;

struct CifarImages {
  std::vector<std::uint8_t> pixels;  // [n, 32, 32, 3]: converted to NHWC
  std::vector<std::int32_t> labels;
};

// Appends the records to `images`. Errors (Code::bad_file) name `file`.
void parse_cifar10(std::span<const std::byte> bytes, std::string_view file, CifarImages& images);

}  // namespace stoker
