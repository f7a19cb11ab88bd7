// idx files, plain or gzip: the values stay inside the file and are as many as the shape says.
#include "formats/gzip.h"
#include "formats/idx.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  const auto parse = [](std::span<const std::byte> bytes) {
    const IdxView view = parse_idx(bytes, "fuzz");
    fuzz::expect(static_cast<std::size_t>(view.shape.elements()) == view.values.size());
    fuzz::expect(view.values.data() + view.values.size() == bytes.data() + bytes.size());
  };
  fuzz::errors_allowed([&] {
    const auto bytes = fuzz::bytes_of(data, size);
    if (!is_gzip(bytes)) return parse(bytes);
    parse(inflate_gzip(bytes, "fuzz", 1 << 20));
  });
  return 0;
}
