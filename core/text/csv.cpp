#include "core/text/csv.h"

#include <fmt/format.h>

#include <cmath>

namespace olrank {

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

std::string csv_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : std::string();
}

std::string split_csv(std::string_view line, std::vector<std::string>& fields) {
  fields.clear();
  if (line.ends_with('\r')) line.remove_suffix(1);
  for (bool more = true; more;) {
    std::string& field = fields.emplace_back();
    if (line.starts_with('"')) {
      for (;;) {
        line.remove_prefix(1);
        const std::size_t quote = line.find('"');
        if (quote == std::string_view::npos)
          return fmt::format("Field {} begins with a quote that does not end on this line.", fields.size());
        field += line.substr(0, quote);
        line.remove_prefix(quote + 1);
        if (!line.starts_with('"')) break;
        field += '"';
      }
      if (!line.empty() && line.front() != ',')
        return fmt::format("Field {} goes on after its closing quote.", fields.size());
    } else {
      field = line.substr(0, line.find(','));
      line.remove_prefix(field.size());
      if (field.find('"') != std::string::npos)
        return fmt::format("Field {} has a quote within: put the whole field in quotes and double it.",
                           fields.size());
    }
    more = !line.empty();
    line.remove_prefix(more ? 1 : 0);
  }
  return {};
}

}  // namespace olrank
