#include "core/data/letor_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <string>

#include "core/error.h"

namespace olrank {
namespace {

template <class Number>
void append(std::string& text, Number number) {
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

/// Another name would read back as something else, such as a further document.
bool is_one_word(std::string_view name) {
  return std::none_of(name.begin(), name.end(), [](unsigned char c) { return c <= ' ' || c == 0x7F; });
}

void require_names_of_one_word(const Dataset& data) {
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const std::string_view name = data.qid(query);
    if (!name.empty() && is_one_word(name) && name.find('#') == std::string_view::npos) continue;
    throw InvalidArgument(
        fmt::format("Query {} has a name that LETOR text cannot hold: choose one without spaces, control "
                    "characters and '#'.",
                    query + 1));
  }
  for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
    if (is_one_word(data.doc_name(doc))) continue;
    throw InvalidArgument(
        fmt::format("Document {} has a name that LETOR text cannot hold: choose one without spaces and "
                    "control characters.",
                    doc + 1));
  }
}

}  // namespace

void write_letor(const Dataset& data, const LetorFormat& format,
                 const std::function<void(std::string_view)>& sink) {
  require_names_of_one_word(data);
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::string text;
  // The first line that has to name the last feature, so that it is not lost with its zeros.
  bool last_feature_named = false;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    for (std::int64_t doc = data.offset(query); doc < data.offset(query + 1); ++doc) {
      append(text, int{data.all_grades()[doc]});
      text += " qid:";
      text += data.qid(query);
      const auto append_value = [&](std::int64_t feature, float value) {
        text += ' ';
        append(text, feature + 1);
        text += ':';
        append(text, value);
      };
      const std::int64_t last = data.features() - 1;
      if (data.is_sparse()) {
        const SparseRow row = data.all_rows().sparse_doc(doc);
        for (std::size_t i = 0; i < row.columns.size(); ++i) append_value(row.columns[i], row.values[i]);
        if (!last_feature_named && (row.columns.empty() || row.columns.back() != last))
          append_value(last, 0.0F);
      } else {
        const auto row = data.all_features().doc(doc);
        for (std::int64_t f = 0; f <= last; ++f) {
          const bool keeps_width = !last_feature_named && f == last;
          if (format.sparse && std::bit_cast<std::uint32_t>(row[f]) == 0 && !keeps_width) continue;
          append_value(f, row[f]);
        }
      }
      last_feature_named = true;
      if (const std::string_view name = data.doc_name(doc); !name.empty()) {
        text += " # docid = ";
        text += name;
      }
      text += '\n';
      if (text.size() >= kPiece) {
        sink(text);
        text.clear();
      }
    }
  }
  sink(text);
}

}  // namespace olrank
