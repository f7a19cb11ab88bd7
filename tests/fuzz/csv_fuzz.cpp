// CSV with every way to choose label column and header: the table is rectangular, finite, and its labels in range.
#include <algorithm>
#include <cmath>

#include "formats/csv.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  const std::string_view text = fuzz::text_of(data, size);
  for (const char* column : {"", "first", "last", "a"}) {
    for (const CsvHeader header : {CsvHeader::detect, CsvHeader::yes, CsvHeader::no}) {
      fuzz::errors_allowed([&] {
        const CsvTable table = parse_csv(text, "fuzz", {.label_column = column, .header = header});
        fuzz::expect(table.rows > 0 && table.columns > 0);
        fuzz::expect(table.values.size() == static_cast<std::size_t>(table.rows * table.columns));
        fuzz::expect(table.labels.size() == static_cast<std::size_t>(table.rows));
        fuzz::expect(std::ranges::all_of(table.values, [](float v) { return std::isfinite(v); }));
        fuzz::expect(std::ranges::all_of(table.labels, [](int label) { return label >= 0 && label < kMostClasses; }));
      });
    }
  }
  return 0;
}
