// safetensors files: every tensor of an accepted file can be read, in every way that its type allows.
#include <algorithm>
#include <vector>

#include "formats/safetensors.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  fuzz::errors_allowed([&] {
    const auto file = SafetensorsFile::over(fuzz::bytes_of(data, size), "fuzz");
    for (const StoredTensor& tensor : file.tensors()) {
      fuzz::expect(&file.at(tensor.name) == &tensor);
      fuzz::expect(tensor.bytes <= size);
      std::vector<std::byte> values(tensor.bytes);
      file.read(tensor.name, values);
      const auto elements = static_cast<std::size_t>(tensor.shape.elements());
      fuzz::errors_allowed([&] { fuzz::expect(file.read_f32(tensor.name).size() == elements); });
      fuzz::errors_allowed([&] { fuzz::expect(file.read_i64(tensor.name).size() == elements); });
    }
  });
  return 0;
}
