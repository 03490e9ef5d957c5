#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/clicks/click_lists.h"
#include "core/clicks/coin.h"

namespace olrank {

/// How likely each document is clicked where it is examined. The E step counts what is expected of
/// examined documents, the M step changes the probabilities.
class Attraction {
 public:
  virtual ~Attraction() = default;
  Attraction(const Attraction&) = delete;
  Attraction& operator=(const Attraction&) = delete;

  double of(std::int32_t doc) const { return coins_[doc].probability; }
  /// `no`: how likely it was examined without a click.
  void count(std::int32_t doc, double yes, double no) { coins_[doc].count(yes, no); }

  virtual void maximise() = 0;
  /// ln of the prior's density, but for a constant.
  virtual double log_prior() const = 0;

 protected:
  Attraction(std::int64_t docs, double probability) : coins_(docs, Coin{.probability = probability}) {}

  std::vector<Coin> coins_;
};

/// A probability for each document, with a prior of the weight of two examinations and the mean `level`.
std::unique_ptr<Attraction> make_attraction_by_document(std::int64_t docs, double level);
/// 1 for each: clicks tell of examination alone.
std::unique_ptr<Attraction> make_certain_attraction(std::int64_t docs);
/// σ(w·x + b) of the documents' inputs x, with a standard normal prior for w. `lists` says how often each
/// document is counted at most. Throws InvalidArgument for inputs that are too many.
std::unique_ptr<Attraction> make_attraction_by_inputs(const ClickDocs& docs, const ClickLists& lists,
                                                      double level);

}  // namespace olrank
