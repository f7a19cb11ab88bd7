// CSV tables of numbers with a class label in each row: quoted fields, optional header, LF or CRLF.
// Numbers are read the same in every locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

enum class CsvHeader {
  detect,  // the first row is a header if it names the label column or has no number
  yes,
  no,
};

struct CsvOptions {
  // "first", "last" or a name of the header. Empty: the column named "label" if there is one, else the first.
  std::string label_column;
  CsvHeader header = CsvHeader::detect;
  char separator = ',';
  int classes = 0;  // labels are below it; 0: any label up to kMostClasses
};

constexpr std::int32_t kMostClasses = 1 << 20;

struct CsvTable {
  std::int64_t rows = 0;
  std::int64_t columns = 0;          // without the label's
  std::vector<float> values;         // [rows, columns]
  std::vector<std::int32_t> labels;  // [rows]
  std::vector<std::string> names;    // of the columns, if there is a header
};

// Errors (Code::bad_file) name `file`, and the row and column (from 1) of a bad value.
[[nodiscard]] CsvTable parse_csv(std::string_view text, std::string_view file, const CsvOptions& options = {});

// A decimal number, spaces around it allowed; nothing for any other text. NaN and infinity are no numbers here.
[[nodiscard]] std::optional<float> parse_number(std::string_view text);

}  // namespace stoker
