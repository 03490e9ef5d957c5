#include <algorithm>
#include <cmath>

#include "core/clicks/coin.h"
#include "core/clicks/reading_model.h"

namespace olrank {
namespace {

class LookModel final : public ReadingModel {
 public:
  LookModel(LooksBy looks_by, std::int64_t ranks)
      : by_last_click_(looks_by == LooksBy::kRankAndLastClick),
        certain_(looks_by == LooksBy::kRankAlone ? 0 : 1),
        coins_(by_last_click_ ? ranks * (ranks + 1) / 2 : ranks) {
    for (std::size_t i = 0; i < std::min(certain_, coins_.size()); ++i) coins_[i].probability = 1.0;
  }

  double expect(ClickedList list, std::span<const double> attraction, std::span<double> examined) override {
    double log_likelihood = 0.0;
    std::size_t last = 0;
    for (std::size_t rank = 0; rank < list.size(); ++rank) {
      Coin& coin = coins_[place(rank, last)];
      const double click = coin.probability * attraction[rank];
      if (list.clicks[rank] != 0) {
        log_likelihood += std::log(click);
        examined[rank] = 1.0;
        last = rank + 1;
      } else {
        log_likelihood += std::log(1.0 - click);
        examined[rank] = coin.probability * (1.0 - attraction[rank]) / (1.0 - click);
      }
      coin.count(examined[rank], 1.0 - examined[rank]);
    }
    return log_likelihood;
  }

  void maximise() override {
    for (std::size_t i = certain_; i < coins_.size(); ++i) coins_[i].maximise({});
  }

  double log_prior() const override {
    double sum = 0.0;
    for (std::size_t i = certain_; i < coins_.size(); ++i) sum += coins_[i].log_prior({});
    return sum;
  }

  void forecast(ClickedList list, std::span<const double> attraction,
                ListForecast& forecast) const override {
    forecast.resize(list.size());
    std::size_t last = 0;
    for (std::size_t rank = 0; rank < list.size(); ++rank) {
      forecast.given_above[rank] = look(rank, last) * attraction[rank];
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
      forecast.alone[rank] = examined * attraction[rank];
    }
  }

  ReadingParameters parameters() const override {
    ReadingParameters parameters;
    for (const Coin& coin : coins_)
      (by_last_click_ ? parameters.by_last_click : parameters.by_rank).push_back(coin.probability);
    return parameters;
  }

 private:
  /// `rank` is from 0, `last` from 1; 0: no click above.
  std::size_t place(std::size_t rank, std::size_t last) const {
    return by_last_click_ ? rank * (rank + 1) / 2 + last : rank;
  }
  double look(std::size_t rank, std::size_t last) const { return coins_[place(rank, last)].probability; }

  bool by_last_click_;
  std::size_t certain_;  // coins from the first that are not learned
  std::vector<Coin> coins_;
};

}  // namespace

std::unique_ptr<ReadingModel> make_look_model(LooksBy looks_by, std::int64_t ranks) {
  return std::make_unique<LookModel>(looks_by, ranks);
}

}  // namespace olrank
