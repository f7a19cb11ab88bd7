#include "formats/csv.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace stoker {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Splits text into rows of fields. A field's text is unquoted; line() is for messages, since a quoted field may span
// lines.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string_view file, char separator)
      : text_(text), file_(file), separator_(separator) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // the byte-order mark that spreadsheets write
  }

  // The next row that is not blank; false at the end.
  bool next(std::vector<std::string>& fields) {
    while (at_ < text_.size() && end_of_line()) ++line_;
    if (at_ >= text_.size()) return false;
    row_line_ = line_;
    std::size_t count = 0;
    do {
      if (count == fields.size()) fields.emplace_back();
      read_field(fields[count++]);
    } while (separator());
    fields.resize(count);
    const bool ended = at_ >= text_.size() || end_of_line();
    require(ended, Code::bad_file, file_, ": row ", row_line_, ", column ", count, ": text after a closing quote");
    ++line_;
    return true;
  }

  [[nodiscard]] std::int64_t row() const { return row_line_; }

 private:
  bool separator() {
    if (at_ >= text_.size() || text_[at_] != separator_) return false;
    ++at_;
    return true;
  }

  bool end_of_line() {
    const std::string_view rest = text_.substr(at_);
    const std::size_t length = rest.starts_with("\r\n") ? 2 : rest.starts_with('\n') || rest.starts_with('\r') ? 1 : 0;
    at_ += length;
    return length > 0;
  }

  void read_field(std::string& field) {
    field.clear();
    if (at_ < text_.size() && text_[at_] == '"') return read_quoted(field);
    const char stops[] = {separator_, '\n', '\r'};
    const std::size_t end = std::min(text_.find_first_of(std::string_view(stops, 3), at_), text_.size());
    field.assign(text_.substr(at_, end - at_));
    at_ = end;
  }

  void read_quoted(std::string& field) {
    ++at_;
    for (;;) {
      const std::size_t quote = text_.find('"', at_);
      require(quote != std::string_view::npos, Code::bad_file, file_, ": row ", row_line_, ": a quote is never closed");
      field.append(text_.substr(at_, quote - at_));
      at_ = quote + 1;
      if (at_ >= text_.size() || text_[at_] != '"') break;
      field.push_back('"');
      ++at_;
    }
    line_ += std::ranges::count(field, '\n');
  }

  std::string_view text_;
  std::string_view file_;
  char separator_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::int64_t row_line_ = 1;
};

bool is_header(const std::vector<std::string>& fields, const CsvOptions& options) {
  if (options.header != CsvHeader::detect) return options.header == CsvHeader::yes;
  const std::string_view wanted = options.label_column.empty() ? "label" : std::string_view(options.label_column);
  return std::ranges::any_of(fields, [&](const std::string& f) { return trimmed(f) == wanted; }) ||
         std::ranges::none_of(fields, [](const std::string& f) { return parse_number(f).has_value(); });
}

std::size_t find_label_column(const std::vector<std::string>& fields, bool header, const CsvOptions& options,
                              std::string_view file) {
  const std::string& wanted = options.label_column;
  if (wanted == "last") return fields.size() - 1;
  if (wanted == "first") return 0;
  const std::string_view name = wanted.empty() ? "label" : std::string_view(wanted);
  if (header) {
    const auto found = std::ranges::find_if(fields, [&](const std::string& f) { return trimmed(f) == name; });
    if (found != fields.end()) return static_cast<std::size_t>(found - fields.begin());
  }
  require(wanted.empty(), Code::bad_file, file, ": no column is named '", wanted, "'");
  return 0;
}

// Names a field in a message without pouring a whole damaged file into it.
std::string shortened(const std::string& field) { return field.size() <= 40 ? field : field.substr(0, 40) + "..."; }

// Reads data rows into a table whose label stands in `label_column`.
class TableBuilder {
 public:
  TableBuilder(std::size_t fields, std::size_t label_column, const CsvOptions& options, std::string_view file)
      : fields_(fields), label_column_(label_column), most_(options.classes), file_(file) {
    table.columns = static_cast<std::int64_t>(fields) - 1;
  }

  void add(const std::vector<std::string>& row, std::int64_t line) {
    require(row.size() == fields_, Code::bad_file, file_, ": row ", line, " has ", row.size(), " fields where ",
            fields_, " were expected");
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::optional<float> value = parse_number(row[i]);
      require(value.has_value(), Code::bad_file, file_, ": row ", line, ", column ", i + 1, ": '", shortened(row[i]),
              "' is not a finite number");
      if (i == label_column_) {
        table.labels.push_back(to_label(*value, line, row[i]));
      } else {
        table.values.push_back(*value);
      }
    }
    ++table.rows;
  }

  CsvTable table;

 private:
  [[nodiscard]] std::int32_t to_label(float value, std::int64_t line, const std::string& field) const {
    const std::int32_t most = most_ > 0 ? most_ : kMostClasses;
    require(value >= 0 && value < static_cast<float>(most) && value == std::floor(value), Code::bad_file, file_,
            ": row ", line, ", column ", label_column_ + 1, ": label '", shortened(field),
            "' is not a whole number in 0..", most - 1);
    return static_cast<std::int32_t>(value);
  }

  std::size_t fields_;
  std::size_t label_column_;
  std::int32_t most_;
  std::string_view file_;
};

struct Exponent {
  int value = 0;
  bool valid = true;
};

// What follows the digits of a number: nothing, or e, a sign and digits.
Exponent parse_exponent(std::string_view text) {
  if (text.empty()) return {};
  if (text[0] != 'e' && text[0] != 'E') return {.valid = false};
  text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !std::ranges::all_of(text, is_digit)) return {.valid = false};
  int value = 0;
  for (const char c : text) value = std::min(value * 10 + (c - '0'), 100000);
  return {.value = negative ? -value : value};
}

}  // namespace

// strtof follows the process's locale and from_chars for floats is missing in Android's C++ library, so this reads the
// digits itself: exact up to 15 digits with a small exponent, and within an ulp of double otherwise.
std::optional<float> parse_number(std::string_view text) {
  text = trimmed(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  double mantissa = 0;
  int scale = 0;
  int digits = 0;
  bool point = false;
  std::size_t i = 0;
  for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !point)); ++i) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    ++digits;
    const bool counts = mantissa < 1e17;  // later digits are below a float's precision by far
    if (counts) mantissa = mantissa * 10 + (text[i] - '0');
    if (counts == point) scale += point ? -1 : 1;
  }
  const Exponent exponent = parse_exponent(text.substr(i));
  if (digits == 0 || !exponent.valid) return std::nullopt;
  scale = std::clamp(scale + exponent.value, -400, 400);
  const double power = std::pow(10.0, std::abs(scale));
  const double value = mantissa == 0 ? 0.0 : scale < 0 ? mantissa / power : mantissa * power;
  if (!(value <= std::numeric_limits<float>::max())) return std::nullopt;
  return static_cast<float>(negative ? -value : value);
}

CsvTable parse_csv(std::string_view text, std::string_view file, const CsvOptions& options) {
  require(options.separator != '"' && options.separator != '\n' && options.separator != '\r', Code::bad_argument,
          "csv: a quote or line end cannot separate fields");
  require(options.classes >= 0 && options.classes <= kMostClasses, Code::bad_argument, "csv: ", options.classes,
          " classes are not in 0..", kMostClasses);
  CsvReader reader(text, file, options.separator);
  std::vector<std::string> row;
  require(reader.next(row), Code::bad_file, file, ": the file has no rows");
  const bool header = is_header(row, options);
  const std::size_t label_column = find_label_column(row, header, options, file);
  require(row.size() >= 2, Code::bad_file, file, ": row ", reader.row(),
          " has one field where a label and at least one value were expected");
  TableBuilder builder(row.size(), label_column, options, file);
  if (header) {
    builder.table.names = row;
    builder.table.names.erase(builder.table.names.begin() + static_cast<std::ptrdiff_t>(label_column));
  } else {
    builder.add(row, reader.row());
  }
  while (reader.next(row)) builder.add(row, reader.row());
  require(builder.table.rows > 0, Code::bad_file, file, ": the file has a header but no rows");
  return std::move(builder.table);
}

}  // namespace stoker
