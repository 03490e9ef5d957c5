#include "core/data/doc_finder.h"

#include <algorithm>
#include <charconv>

namespace olrank {

std::int32_t DocFinder::by_name(std::int64_t query, std::string_view name) {
  const auto [known, is_new] = sorted_.try_emplace(query);
  std::vector<std::int32_t>& docs = known->second;
  const auto name_of = [&](std::int32_t doc) { return data_.doc_name(data_.offset(query) + doc); };
  if (is_new) {
    for (std::int32_t doc = 0; doc < data_.docs_of(query); ++doc) {
      if (!name_of(doc).empty()) docs.push_back(doc);
    }
    std::sort(docs.begin(), docs.end(),
              [&](std::int32_t a, std::int32_t b) { return name_of(a) < name_of(b); });
  }
  const auto found =
      std::lower_bound(docs.begin(), docs.end(), name,
                       [&](std::int32_t doc, std::string_view sought) { return name_of(doc) < sought; });
  if (found == docs.end() || name_of(*found) != name) return kUnknown;
  const auto next = found + 1;
  return next != docs.end() && name_of(*next) == name ? kAmbiguous : *found;
}

std::int32_t DocFinder::by_label(std::int64_t query, std::string_view label) {
  const std::int32_t named = by_name(query, label);
  std::int32_t index = 0;
  const auto [end, failed] = std::from_chars(label.data(), label.data() + label.size(), index);
  const bool written_so = failed == std::errc() && end == label.data() + label.size() &&
                          (label.size() == 1 || label.front() != '0') && label.front() != '-';
  const bool unnamed =
      written_so && index < data_.docs_of(query) && data_.doc_name(data_.offset(query) + index).empty();
  if (!unnamed) return named;
  return named == kUnknown ? index : kAmbiguous;
}

}  // namespace olrank
