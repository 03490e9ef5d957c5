#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/interface.h"
#include "core/settings/enum_names.h"

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

/// A forecast holds what a model says of a list.
struct ListForecast {
  std::vector<double> given_above;  // P(click at each rank | the clicks above)
  std::vector<double> alone;        // P(click at each rank), whatever is above
  std::vector<double> examined;     // P(examined), whatever is above
  std::vector<double> last_click;   // scratch

  void resize(std::size_t ranks) {
    given_above.resize(ranks);
    alone.resize(ranks);
    examined.resize(ranks);
  }
};

/// The parameters are what a model has learned of reading; those that it does not have are empty or none.
struct ReadingParameters {
  std::vector<double> by_rank;        // P(examined), of the rank-only model P(click)
  std::vector<double> by_last_click;  // γ(rank, last click), as in ExaminationTable of sim
  std::vector<double> continuation;   // P(next rank examined | click), of all ranks but the last
  std::optional<double> perseverance;
  std::vector<double> trust;  // P(click | examined, not attracted), by rank
};

/// How users read a list: the part of a click model that is not the documents' attraction. An examined
/// document is clicked with the probability of its attraction, and with trust(rank) where it does not
/// attract; models differ in what is examined.
class ReadingModel : public Interface {
 public:
  /// The E step for a list: counts what is expected of reading given all its clicks, fills in how likely
  /// each document was examined, and returns ln P(clicks). `attraction` is above 0 and below 1 (1 is
  /// allowed where clicks tell of examination alone).
  virtual double expect(ClickedList list, std::span<const double> attraction,
                        std::span<double> examined) = 0;
  /// The M step.
  virtual void maximise() = 0;
  /// ln of the prior's density, but for a constant.
  virtual double log_prior() const = 0;

  virtual void forecast(ClickedList list, std::span<const double> attraction,
                        ListForecast& forecast) const = 0;
  virtual ReadingParameters parameters() const = 0;
  /// P(satisfied | click) of a document; 0 in models without satisfaction.
  virtual double satisfaction(std::int32_t /*doc*/) const { return 0.0; }
  /// P(click | examined, not attracted); 0 in models without trust.
  virtual double trust(std::size_t /*rank*/) const { return 0.0; }
};

/// The models' papers are named in sim/*_click_model.h. Those that look at ranks one by one examine each by
/// a coin of its own, and the first one always, but for kRankOnly: examination and attraction are known up
/// to a common factor, and this is the one that is chosen. Those that scan from the top (kCascade,
/// kDependent, kDynamicBayesian) examine a rank only after the rank above.
enum class FittedModel {
  kRankOnly,         // P(click) is that of the rank
  kPosition,         // looks by rank
  kCascade,          // ends at the first click, and learns nothing from what is below
  kDependent,        // after a click, users go on with a probability that depends on its rank
  kDynamicBayesian,  // a click satisfies with the document's probability; if not, users go on with γ
  kUserBrowsing,     // looks by rank and last click
  kTwoTower,         // looks by rank
  kTrust             // looks by rank; and users click what the rank alone commends
};

template <>
struct EnumNames<FittedModel> {
  static constexpr std::array values =
      names_in_order<FittedModel>("rank-only", "pbm", "cascade", "dcm", "dbn", "ubm", "two-tower", "trust");
};

/// For lists of at most `ranks` of `docs` documents.
std::unique_ptr<ReadingModel> make_reading_model(FittedModel model, std::int64_t ranks, std::int64_t docs);

/// A prior holds what is counted before anything is seen. The estimate is then the largest posterior under
/// a prior Beta(yes + 1, no + 1), which is never 0 or 1.
struct CoinPrior {
  double yes = 1.0;
  double no = 1.0;
};

/// A probability with its expected counts of yes and no. Every parameter of a click model is one.
struct Coin {
  double probability = 0.5;
  double yes = 0.0;
  double no = 0.0;

  void count(double more_yes, double more_no) {
    yes += more_yes;
    no += more_no;
  }
  /// The most likely probability; counting starts again.
  void maximise(const CoinPrior& prior) {
    probability = (prior.yes + yes) / (prior.yes + prior.no + yes + no);
    yes = 0.0;
    no = 0.0;
  }
  /// ln of the prior's density, but for a constant.
  double log_prior(const CoinPrior& prior) const {
    return prior.yes * std::log(probability) + prior.no * std::log1p(-probability);
  }
};

}  // namespace olrank
