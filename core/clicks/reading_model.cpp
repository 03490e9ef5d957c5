#include "core/clicks/reading_model.h"

namespace olrank {
namespace {

/// A model whose parameters are coins, of which the first `certain` are not learned.
class CoinModel : public ReadingModel {
 public:
  explicit CoinModel(std::int64_t coins, std::size_t certain = 0) : coins_(coins), certain_(certain) {
    for (std::size_t i = 0; i < std::min(certain_, coins_.size()); ++i) coins_[i].probability = 1.0;
  }

  void maximise() final {
    for (std::size_t i = certain_; i < coins_.size(); ++i) coins_[i].maximise({});
  }
  double log_prior() const final {
    double sum = 0.0;
    for (std::size_t i = certain_; i < coins_.size(); ++i) sum += coins_[i].log_prior({});
    return sum;
  }

 protected:
  std::vector<Coin> coins_;

 private:
  std::size_t certain_;
};

class LookModel final : public CoinModel {
 public:
  LookModel(FittedModel model, std::int64_t ranks)
      : CoinModel(looks(model, ranks) + (model == FittedModel::kTrust ? ranks : 0),
                  model == FittedModel::kRankOnly ? 0 : 1),
        by_last_click_(model == FittedModel::kUserBrowsing),
        looks_(looks(model, ranks)) {
    for (std::size_t i = looks_; i < coins_.size(); ++i) coins_[i].probability = 0.1;
  }

  double expect(ClickedList list, std::span<const double> attraction, std::span<double> examined) override {
    double log_likelihood = 0.0;
    std::size_t last = 0;
    for (std::size_t rank = 0; rank < list.size(); ++rank) {
      Coin& coin = coins_[place(rank, last)];
      const double convinced = convinces(attraction[rank], rank);
      const double click = coin.probability * convinced;
      if (list.clicks[rank] != 0) {
        log_likelihood += std::log(click);
        examined[rank] = 1.0;
        last = rank + 1;
      } else {
        log_likelihood += std::log(1.0 - click);
        examined[rank] = coin.probability * (1.0 - convinced) / (1.0 - click);
      }
      if (looks_ + rank < coins_.size()) {
        const double yes = list.clicks[rank] != 0 ? 1.0 - attraction[rank] / convinced : 0.0;
        coins_[looks_ + rank].count(yes, list.clicks[rank] != 0 ? 0.0 : examined[rank]);
      }
      coin.count(examined[rank], 1.0 - examined[rank]);
    }
    return log_likelihood;
  }

  void forecast(ClickedList list, std::span<const double> attraction,
                ListForecast& forecast) const override {
    forecast.resize(list.size());
    std::size_t last = 0;
    for (std::size_t rank = 0; rank < list.size(); ++rank) {
      forecast.given_above[rank] = look(rank, last) * convinces(attraction[rank], rank);
      if (list.clicks[rank] != 0) last = rank + 1;
    }
    // P(the last click so far is at rank 1, 2, …); 0: there is none.
    auto& last_click = forecast.last_click;
    last_click.assign(1, 1.0);
    for (std::size_t rank = 0; rank < list.size(); ++rank) {
      double examined = by_last_click_ ? 0.0 : look(rank, 0);
      if (by_last_click_) {
        for (std::size_t at = 0; at <= rank; ++at) {
          const double looks = last_click[at] * look(rank, at);
          examined += looks;
          last_click[at] -= looks * attraction[rank];
        }
        last_click.push_back(examined * attraction[rank]);
      }
      forecast.examined[rank] = examined;
      forecast.alone[rank] = examined * convinces(attraction[rank], rank);
    }
  }

  double trust(std::size_t rank) const override {
    return looks_ + rank < coins_.size() ? coins_[looks_ + rank].probability : 0.0;
  }

  ReadingParameters parameters() const override {
    ReadingParameters parameters;
    auto& by = by_last_click_ ? parameters.by_last_click : parameters.by_rank;
    for (std::size_t i = 0; i < coins_.size(); ++i)
      (i < looks_ ? by : parameters.trust).push_back(coins_[i].probability);
    return parameters;
  }

 private:
  static std::size_t looks(FittedModel model, std::int64_t ranks) {
    return model == FittedModel::kUserBrowsing ? ranks * (ranks + 1) / 2 : ranks;
  }
  /// `rank` is from 0, `last` from 1; 0: no click above.
  std::size_t place(std::size_t rank, std::size_t last) const {
    return by_last_click_ ? rank * (rank + 1) / 2 + last : rank;
  }
  double look(std::size_t rank, std::size_t last) const { return coins_[place(rank, last)].probability; }

  /// P(click | examined).
  double convinces(double attraction, std::size_t rank) const {
    return attraction + (1.0 - attraction) * trust(rank);
  }

  bool by_last_click_;
  std::size_t looks_;  // coins of looking, behind which those of trust are
};

/// A chain of ranks that users come to, one after another, until they leave.
class ScanModel : public CoinModel {
 public:
  using CoinModel::CoinModel;

  double expect(ClickedList list, std::span<const double> attraction, std::span<double> examined) final {
    const std::size_t read = ranks_read(list);
    double log_likelihood = 0.0;
    double reached = 1.0;     // P(reached | the clicks above)
    std::size_t leaving = 0;  // the first rank after which the user can have left: the last click's
    on_.resize(read);
    for (std::size_t rank = 0; rank < read; ++rank) {
      const bool clicked = list.clicks[rank] != 0;
      const double click = reached * attraction[rank];
      on_[rank] = goes_on(list.docs[rank], rank, clicked);
      log_likelihood += std::log(clicked ? click : 1.0 - click);
      reached = (clicked ? 1.0 : reached * (1.0 - attraction[rank]) / (1.0 - click)) * on_[rank];
      if (clicked) leaving = rank;
    }
    // From P(goes on) to the same given all clicks. `silent` is P(no click below | the next is reached).
    double silent = 1.0;
    for (std::size_t rank = read; rank-- > 0;) {
      const double on = on_[rank];
      const double ends_silent = on * silent + 1.0 - on;
      // Far down a list `silent` may underflow, where leaving was impossible as well.
      on_[rank] = rank < leaving || on >= 1.0 ? 1.0 : on * silent / ends_silent;
      silent = (1.0 - attraction[rank]) * ends_silent;
    }
    std::fill(examined.begin() + static_cast<std::ptrdiff_t>(read), examined.end(), 0.0);
    reached = 1.0;
    for (std::size_t rank = 0; rank < read; ++rank) {
      examined[rank] = reached;
      // No click tells what follows the last rank.
      if (rank + 1 < read) count(list.docs[rank], rank, list.clicks[rank] != 0, reached, on_[rank]);
      reached *= on_[rank];
    }
    return log_likelihood;
  }

  void forecast(ClickedList list, std::span<const double> attraction, ListForecast& forecast) const final {
    forecast.resize(list.size());
    double reached = 1.0;
    double examined = 1.0;
    for (std::size_t rank = 0; rank < list.size(); ++rank) {
      const bool clicked = list.clicks[rank] != 0;
      const double attracts = attraction[rank];
      const double click = reached * attracts;
      const double after_click = goes_on(list.docs[rank], rank, true);
      const double after_skip = goes_on(list.docs[rank], rank, false);
      forecast.given_above[rank] = click;
      forecast.examined[rank] = examined;
      forecast.alone[rank] = examined * attracts;
      reached = clicked ? after_click : reached * (1.0 - attracts) / (1.0 - click) * after_skip;
      examined *= attracts * after_click + (1.0 - attracts) * after_skip;
    }
  }

 protected:
  virtual std::size_t ranks_read(ClickedList list) const { return list.size(); }
  /// P(the next rank is examined | this one is).
  virtual double goes_on(std::int32_t doc, std::size_t rank, bool clicked) const = 0;
  /// `reached` is P(this rank was examined | all clicks), `on` P(the next one too | that, all clicks).
  virtual void count(std::int32_t doc, std::size_t rank, bool clicked, double reached, double on) = 0;

 private:
  std::vector<double> on_;
};

class CascadeModel final : public ScanModel {
 public:
  CascadeModel() : ScanModel(0) {}
  ReadingParameters parameters() const override { return {}; }

 private:
  std::size_t ranks_read(ClickedList list) const override {
    const auto first = std::find(list.clicks.begin(), list.clicks.end(), 1);
    return std::min(static_cast<std::size_t>(first - list.clicks.begin()) + 1, list.size());
  }
  double goes_on(std::int32_t /*doc*/, std::size_t /*rank*/, bool clicked) const override {
    return clicked ? 0.0 : 1.0;
  }
  void count(std::int32_t /*doc*/, std::size_t /*rank*/, bool /*clicked*/, double /*reached*/,
             double /*on*/) override {}
};

class DependentModel final : public ScanModel {
 public:
  explicit DependentModel(std::int64_t ranks) : ScanModel(std::max<std::int64_t>(ranks - 1, 0)) {}
  ReadingParameters parameters() const override {
    ReadingParameters parameters;
    for (const Coin& coin : coins_) parameters.continuation.push_back(coin.probability);
    return parameters;
  }

 private:
  double goes_on(std::int32_t /*doc*/, std::size_t rank, bool clicked) const override {
    return clicked && rank < coins_.size() ? coins_[rank].probability : 1.0;
  }
  void count(std::int32_t /*doc*/, std::size_t rank, bool clicked, double /*reached*/, double on) override {
    if (clicked) coins_[rank].count(on, 1.0 - on);
  }
};

class DynamicBayesianModel final : public ScanModel {
 public:
  explicit DynamicBayesianModel(std::int64_t docs) : ScanModel(1 + docs) { perseveres().probability = 0.9; }
  ReadingParameters parameters() const override {
    ReadingParameters parameters;
    parameters.perseverance = perseveres().probability;
    return parameters;
  }
  double satisfaction(std::int32_t doc) const override { return satisfied(doc).probability; }

 private:
  double goes_on(std::int32_t doc, std::size_t /*rank*/, bool clicked) const override {
    return perseveres().probability * (clicked ? 1.0 - satisfied(doc).probability : 1.0);
  }
  void count(std::int32_t doc, std::size_t /*rank*/, bool clicked, double reached, double on) override {
    if (!clicked) {
      perseveres().count(reached * on, reached * (1.0 - on));
      return;
    }
    // Who left was satisfied, or was not and left all the same.
    const double satisfies = satisfied(doc).probability;
    const double left_satisfied = (1.0 - on) * satisfies / (1.0 - goes_on(doc, 0, true));
    satisfied(doc).count(left_satisfied, 1.0 - left_satisfied);
    perseveres().count(on, 1.0 - on - left_satisfied);
  }

  Coin& perseveres() { return coins_.front(); }
  const Coin& perseveres() const { return coins_.front(); }
  Coin& satisfied(std::int32_t doc) { return coins_[1 + doc]; }
  const Coin& satisfied(std::int32_t doc) const { return coins_[1 + doc]; }
};

}  // namespace

std::unique_ptr<ReadingModel> make_reading_model(FittedModel model, std::int64_t ranks, std::int64_t docs) {
  switch (model) {
    case FittedModel::kCascade:
      return std::make_unique<CascadeModel>();
    case FittedModel::kDependent:
      return std::make_unique<DependentModel>(ranks);
    case FittedModel::kDynamicBayesian:
      return std::make_unique<DynamicBayesianModel>(docs);
    default:
      return std::make_unique<LookModel>(model, ranks);
  }
}

}  // namespace olrank
