#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/math/dcg.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// dcg_gain of every grade.
using GainTable = std::array<double, kHighestGrade + 1>;

GainTable gain_table(Gain gain);

/// Discounts of the first ranks, computed once and extended as needed.
class DiscountTable {
 public:
  explicit DiscountTable(Discount discount = Discount::kLog2) : discount_(discount) {}
  void reach(std::int64_t ranks);
  std::span<const double> values() const { return values_; }

 private:
  Discount discount_;
  std::vector<double> values_;
};

/// Σ gain · discount over the given grades, best rank first. `discounts` covers them.
double dcg_of_list(std::span<const std::uint8_t> shown_grades, const GainTable& gains,
                   std::span<const double> discounts);

/// The largest DCG that `ranks` ranks can have. Summed in the order of ranks as dcg_of_list does, so that
/// an ideal list divided by it is exactly 1.
double ideal_dcg(const GradeCounts& counts, std::int64_t ranks, const GainTable& gains,
                 std::span<const double> discounts);

/// DCG of a random list: its mean and variance over all orders of a query's documents, each equally likely.
struct RandomDcg {
  double mean = 0.0;
  double variance = 0.0;
};

/// Lists of these documents are cut off after `ranks`. The result is exact, from the grades alone.
RandomDcg random_dcg(const GradeCounts& counts, std::int64_t ranks, const GainTable& gains,
                     std::span<const double> discounts);

/// Number of mis-ordered pairs: different grades, the lower one ranked first. O(V · max_grade), cheaper
/// than a V log V merge for the few grades in use.
std::int64_t misordered_pairs(std::span<const std::uint8_t> list_grades, int max_grade);

/// Puts the documents of one query in order of descending score, ties by index: order[rank] is a document.
/// An order with fewer places than documents gets the first ranks, and the rest is not sorted. −0 and +0
/// tie; infinities are scores like others. Returns the first document whose score is not a number, or −1
/// when all are; the order is not written in the first case.
std::int64_t order_by_score(std::span<const float> scores, std::span<std::int32_t> order, Scratch& scratch);
std::int64_t order_by_score(std::span<const double> scores, std::span<std::int32_t> order,
                            Scratch& scratch);

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
