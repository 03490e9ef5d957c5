#include "core/data/letor_writer.h"

#include <bit>
#include <charconv>
#include <string>

namespace olrank {
namespace {

template <class Number>
void append(std::string& text, Number number) {
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace

void write_letor(const Dataset& data, const LetorFormat& format,
                 const std::function<void(std::string_view)>& sink) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::string text;
  // The first line that has to name the last feature, so that it is not lost with its zeros.
  bool last_feature_named = false;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    for (std::int64_t doc = data.offset(query); doc < data.offset(query + 1); ++doc) {
      append(text, int{data.all_grades()[doc]});
      text += " qid:";
      text += data.qid(query);
      const auto row = data.all_features().doc(doc);
      for (std::size_t f = 0; f < row.size(); ++f) {
        const bool keeps_width = !last_feature_named && f + 1 == row.size();
        if (format.sparse && std::bit_cast<std::uint32_t>(row[f]) == 0 && !keeps_width) continue;
        text += ' ';
        append(text, f + 1);
        text += ':';
        append(text, row[f]);
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
