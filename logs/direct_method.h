#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/clicks/click_fit.h"
#include "core/random/rng_stream.h"
#include "core/settings/enum_names.h"

namespace olrank {

/// A click at a rank is worth one, its discount 1/log₂(rank + 1), one for the first of a list, or what its
/// events are (a record's rewards).
enum class ClickReward { kClicks, kDcg, kFirstClick, kWeight };

template <>
struct EnumNames<ClickReward> {
  static constexpr std::array values =
      names_in_order<ClickReward>("clicks", "dcg", "first-click", "weight");
};

/// Returns what a click at a rank (from 0) is worth; `first`: nothing above it was clicked.
double reward_at(ClickReward reward, std::size_t rank, bool first);

/// Values any list of a log's documents by the log's clicks: by a click model that is fitted to all of
/// them, and by the clicks that each document has got for each time that users are expected to have seen
/// it. Documents that were never shown have the model's prior attraction; with a two-tower model, that of
/// their inputs. Memory grows with the log, five bytes for each shown document.
class DirectMethod {
 public:
  DirectMethod(FittedModel model, ClickReward reward, std::int64_t ranks)
      : model_(model), reward_(reward), ranks_(ranks) {}

  /// A list by the numbers of its documents, and what all its clicks are worth.
  void add(std::span<const std::int32_t> docs, std::span<const std::uint8_t> clicks, double worth);
  /// Fits the model. Throws InvalidArgument without a click.
  void fit(ClickDocs docs);

  struct Forecast {
    double reward = 0.0;
    double by_exposure = 0.0;  // reward by clicks for each exposure
    double unseen = 0.0;       // share of what users are expected to see that was never shown
  };
  /// Documents that were never shown may have any number, −1 as well.
  Forecast forecast(std::span<const std::int32_t> docs);
  /// The reward of each rank by the model, whatever is clicked above.
  void expect(std::span<const std::int32_t> docs, std::span<double> rewards);

 private:
  void read(std::span<const std::int32_t> docs);
  double worth_of(std::size_t rank, double alone, double given_none) const;

  FittedModel model_;
  ClickReward reward_;
  std::int64_t ranks_;
  ClickLists lists_;
  double clicks_ = 0.0;
  double worth_ = 0.0;
  ClickDocs docs_;
  FittedClicks fit_;
  std::vector<double> examination_;  // of each rank
  std::vector<double> clicks_of_;    // each document
  std::vector<double> exposure_of_;  // each document
  // These belong to the list at hand.
  std::vector<std::int32_t> known_;
  std::vector<std::uint8_t> none_;
  std::vector<double> attraction_;
  ListForecast forecast_;
};

/// How lists follow from the scores of a model: by score, drawn in proportion to e^score, or by score with
/// a random document at some ranks; the order that requests brought, or that the learner would have shown.
struct ListPolicy {
  enum class Kind { kGreedy, kPlackettLuce, kEpsilon, kIncumbent, kCandidate };
  Kind kind = Kind::kGreedy;
  double epsilon = 0.0;

  /// "greedy", "plackett-luce", "epsilon=0.1", "incumbent" or "candidate". Throws InvalidArgument with the
  /// names.
  static ListPolicy parse(const std::string& text);
  std::string name() const;
  /// Whether lists of different scores are always the same.
  bool is_certain() const { return kind == Kind::kGreedy || is_logged(); }
  /// Whether the log has its order, and no model is asked.
  bool is_logged() const { return kind == Kind::kIncumbent || kind == Kind::kCandidate; }
  /// P(document at each rank | those above) of a list, by scores of all candidates.
  void probabilities(std::span<const double> scores, std::span<const std::int32_t> list,
                     std::span<double> probabilities) const;
  /// The first documents of a list that it makes; `list` says how many.
  void draw(std::span<const double> scores, RngStream& coins, std::span<std::int32_t> list) const;
};

}  // namespace olrank
