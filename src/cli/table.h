// A table of text for people (aligned columns), Markdown or CSV.
#pragma once

#include <string>
#include <vector>

namespace stoker::cli {

enum class TableFormat { plain, markdown, csv };

struct Column {
  std::string title;
  bool is_number = true;  // aligned to the right
};

[[nodiscard]] std::string format_table(const std::vector<Column>& columns,
                                       const std::vector<std::vector<std::string>>& rows,
                                       TableFormat format = TableFormat::plain);

}  // namespace stoker::cli
