#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "core/data/dataset.h"

namespace olrank {

/// A document's name in run files: its own, or its index within the query, from 0.
class DocLabel {
 public:
  DocLabel(const Dataset& data, std::int64_t query, std::int64_t doc)
      : name_(data.doc_name(data.offset(query) + doc)) {
    if (!name_.empty()) return;
    const auto end = std::to_chars(digits_.data(), digits_.data() + digits_.size(), doc).ptr;
    length_ = static_cast<std::size_t>(end - digits_.data());
  }

  /// Valid while this label and the data set live.
  std::string_view view() const {
    return name_.empty() ? std::string_view(digits_.data(), length_) : name_;
  }

 private:
  std::string_view name_;
  std::array<char, 20> digits_;
  std::size_t length_ = 0;
};

}  // namespace olrank
