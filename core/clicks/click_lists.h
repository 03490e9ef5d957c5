#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace olrank {

/// A shown list: numbers of its documents, best first, and a click (1) or none (0) for each. A document
/// that two queries have has two numbers.
struct ClickedList {
  std::span<const std::int32_t> docs;
  std::span<const std::uint8_t> clicks;

  std::size_t size() const { return docs.size(); }
};

/// Shown lists in flat arrays: five bytes a document and eight a list.
class ClickLists {
 public:
  void add(std::span<const std::int32_t> docs, std::span<const std::uint8_t> clicks) {
    docs_.insert(docs_.end(), docs.begin(), docs.end());
    clicks_.insert(clicks_.end(), clicks.begin(), clicks.end());
    offsets_.push_back(std::ssize(docs_));
    ranks_ = std::max(ranks_, std::ssize(docs));
  }

  std::int64_t size() const { return std::ssize(offsets_) - 1; }
  std::int64_t shown() const { return std::ssize(docs_); }
  std::int64_t ranks() const { return ranks_; }  // of the longest list
  ClickedList operator[](std::int64_t list) const {
    const std::int64_t begin = offsets_[list];
    const std::int64_t length = offsets_[list + 1] - begin;
    return {std::span(docs_).subspan(begin, length), std::span(clicks_).subspan(begin, length)};
  }

 private:
  std::vector<std::int32_t> docs_;
  std::vector<std::uint8_t> clicks_;
  std::vector<std::int64_t> offsets_{0};  // [lists + 1]
  std::int64_t ranks_ = 0;
};

/// The documents that numbers of lists refer to.
struct ClickDocs {
  std::int64_t count = 0;
  std::int64_t columns = 0;        // inputs of a document; 0: not known
  std::vector<float> inputs = {};  // [count × columns]
};

}  // namespace olrank
