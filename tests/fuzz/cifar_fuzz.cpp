// CIFAR-10 batches: pixels and labels belong together, and a refused file leaves nothing behind.
#include "formats/cifar.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  CifarImages images;
  fuzz::errors_allowed([&] { parse_cifar10(fuzz::bytes_of(data, size), "fuzz", images); });
  fuzz::expect(images.pixels.size() == images.labels.size() * kCifarSide * kCifarSide * kCifarChannels);
  for (const int label : images.labels) fuzz::expect(label >= 0 && label < kCifarClasses);
  return 0;
}
