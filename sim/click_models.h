#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/online/click_model.h"
#include "sim/external_user.h"
#include "sim/trial_settings.h"

namespace olrank {

/// Cascade model (Craswell, Zoeter, Taylor and Ramsey, "An experimental comparison of click position-bias
/// models", WSDM 2008): scans from the top, clicks with P(click | grade) and stops after the first click.
class CascadeClickModel : public ClickModel {
 public:
  /// `click` is P(click | grade) for every grade of the data; `noise` flips the click of an examined
  /// document.
  CascadeClickModel(std::vector<double> click, double noise);

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;
  std::optional<ExaminationLaw> examination_law(std::int64_t ranks) const override;

 private:
  std::vector<double> click_;
  double noise_;
};

/// Position-based model (Craswell, Zoeter, Taylor and Ramsey, "An experimental comparison of click
/// position-bias models", WSDM 2008): examination depends only on rank, and an examined document is clicked
/// with P(click | grade).
class PositionClickModel : public ClickModel {
 public:
  /// `click` is P(click | grade) for every grade of the data; `noise` flips the click of an examined
  /// document. `examination` is P(examined) by rank, and 0 beyond its end; if it is empty, rank r is
  /// examined with probability (1 / (r + 1))^position_bias.
  PositionClickModel(std::vector<double> click, std::vector<double> examination, double position_bias,
                     double noise);

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;
  std::optional<ExaminationLaw> examination_law(std::int64_t ranks) const override;

 private:
  double examination(std::size_t rank) const;

  std::vector<double> click_;
  std::vector<double> examination_;
  double position_bias_;  // η
  double noise_;
};

/// P(click), P(satisfied) by grade and P(go on) of a user.
struct DynamicBayesianTable {
  std::vector<double> attraction;    // a: P(click | examined, grade)
  std::vector<double> satisfaction;  // s: P(satisfied | clicked, grade); empty: never satisfied
  double perseverance = 0.9;         // γ: P(next rank examined | not satisfied)
};

/// Dynamic Bayesian network model (Chapelle and Zhang, "A dynamic Bayesian network click model for web
/// search ranking", WWW 2009): scans from the top and clicks what attracts; a clicked document may satisfy,
/// which ends the scan; after any other document the user goes on with probability γ. With γ = 1 this is
/// the dependent click model whose stops follow clicks.
class DynamicBayesianClickModel : public ClickModel {
 public:
  /// `noise` flips the click of an examined document. The table covers every grade of the data.
  DynamicBayesianClickModel(DynamicBayesianTable table, double noise);

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;
  std::optional<ExaminationLaw> examination_law(std::int64_t ranks) const override;

 private:
  DynamicBayesianTable table_;
  double noise_;
};

/// Dependent click model (Guo, Liu and Wang, "Efficient multiple-click models in web search", WSDM 2009) in
/// the form used in online learning to rank: scans from the top, clicks with P(click | grade), and stops
/// with P(stop | grade) after a click, or after every document.
class DependentClickModel : public ClickModel {
 public:
  /// `noise` flips the click of an examined document. The table covers every grade of the data.
  DependentClickModel(ClickTable table, StopDraw stop_draw, double noise);

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;
  std::optional<ExaminationLaw> examination_law(std::int64_t ranks) const override;

 private:
  ClickTable table_;
  StopDraw stop_draw_;
  double noise_;
};

/// How likely a rank is examined, given where the last click was; the first of these that is set.
struct BrowsingTable {
  /// γ_{r,r'} rank by rank: for rank r = 1, 2, …, the r numbers for a last click at r' = 0 (none), 1, …,
  /// r − 1. Ranks beyond the table are not examined.
  std::vector<double> by_last_click;
  /// It goes by distance r − r' = 1, 2, …; 0 beyond.
  std::vector<double> by_distance;
  /// Otherwise (1/(r − r'))^η.
  double position_bias = 1.0;  // η

  /// γ for ranks from 1; `last` is 0 without a click above.
  double examination(std::size_t rank, std::size_t last) const;
};

/// User browsing model (Dupret and Piwowarski, "A user browsing model to predict search engine click data
/// from past observations", SIGIR 2008): a rank is examined with a probability that depends on it and on
/// the rank of the last click above it, and an examined document is clicked with P(click | grade).
class UserBrowsingClickModel : public ClickModel {
 public:
  /// `click` is P(click | grade) for every grade of the data; `noise` flips the click of an examined
  /// document, and a flipped click counts as the last one, as it does in a log.
  UserBrowsingClickModel(std::vector<double> click, BrowsingTable browsing, double noise);

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;

 private:
  std::vector<double> click_;
  BrowsingTable browsing_;
  double noise_;
};

/// A user whose intent changes abruptly, in the way of the piecewise stationary bandits of the literature
/// (Li and de Rijke, "Cascading non-stationary bandits: online learning to rank in the non-stationary
/// cascade model", IJCAI 2019): rounds 1 to E follow the first intent, the next E rounds the second, and so
/// on. The intent is a function of the round, so the user has no state, and all rankers see the changes in
/// the same rounds.
class ChangingUser : public ClickModel {
 public:
  /// `every` is E. After the last intent the first one returns, or, without `repeat`, the last one stays.
  ChangingUser(std::vector<std::unique_ptr<ClickModel>> intents, std::int64_t every, bool repeat);

  /// The intent of a round, from 0; rounds count from 1.
  std::size_t intent_of(std::uint32_t round) const;

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;
  std::int64_t person(PhiloxKey key, std::uint32_t round) const override {
    return intents_[intent_of(round)]->person(key, round);
  }

 private:
  std::vector<std::unique_ptr<ClickModel>> intents_;
  std::int64_t every_;
  bool repeat_;
};

}  // namespace olrank
