#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/online/click_model.h"
#include "core/random/rng_stream.h"
#include "sim/external_user.h"
#include "sim/trial_settings.h"

namespace olrank {

/// How often an examined document's click is observed, flipped or not.
inline double observed_click_rate(double click, double noise) {
  return click * (1.0 - noise) + (1.0 - click) * noise;
}

/// A document's random draws in one round. Each decision has its own position, so decisions are
/// independent, and a document gets the same draws at every rank and for every ranker.
class ClickCoins {
 public:
  ClickCoins(PhiloxKey key, std::uint32_t round, std::int32_t doc)
      : key_(key), round_(round), doc_(static_cast<std::uint32_t>(doc)) {}

  bool click(double probability) const { return lands(UserDecision::kClick, probability); }
  bool stop(double probability) const { return lands(UserDecision::kStop, probability); }
  bool noise(double probability) const { return lands(UserDecision::kNoise, probability); }
  bool examination(double probability) const { return lands(UserDecision::kExamination, probability); }
  bool perseverance(double probability) const { return lands(UserDecision::kPerseverance, probability); }

  /// The observed click of an examined document: the user's click, flipped with probability `noise`.
  bool observed_click(double probability, double noise_probability) const {
    return click(probability) != noise(noise_probability);
  }

  /// The draw of a decision, in [0, 1).
  double draw(std::uint32_t decision) const { return RngStream(key_, round_, doc_, decision).uniform(); }

 private:
  /// 0 never lands and 1 always does.
  bool lands(UserDecision decision, double probability) const {
    return probability >= 1.0 ||
           (probability > 0.0 && draw(static_cast<std::uint32_t>(decision)) < probability);
  }

  PhiloxKey key_;
  std::uint32_t round_;
  std::uint32_t doc_;
};

/// A user's click and stop probabilities by grade.
struct ClickTable {
  std::vector<double> click;  // P(click | grade)
  std::vector<double> stop;   // P(stop | grade); empty: never stops
};

/// perfect, navigational, informational.
const std::vector<std::string>& built_in_users();
bool is_built_in_user(std::string_view name);

/// The number of grades of a built-in user's table for data whose largest grade is `max_grade`: the
/// smallest of 2, 3 and 5 that covers it, or `stated` unless that is 0. Throws InvalidArgument if the table
/// does not cover the data.
int table_grades(std::string_view user, int max_grade, std::int64_t stated);

/// The table of a built-in user for 2, 3 or 5 grades.
ClickTable built_in_table(std::string_view user, int grades);

/// A user that a program has registered.
struct RegisteredUser {
  std::string description;
  std::shared_ptr<const ExternalUser> user;
};

/// None if no user has this name.
std::optional<RegisteredUser> registered_user(const std::string& name);
/// They are in alphabetical order.
std::vector<std::string> registered_users();

/// A registered user as trials see it. Throws InvalidArgument for clicks that are not 0 or 1, or not one
/// for each shown document.
class ExternalClickModel : public ClickModel {
 public:
  ExternalClickModel(std::string name, std::shared_ptr<const ExternalUser> user);

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;
  std::int64_t person(PhiloxKey key, std::uint32_t round) const override;

 private:
  std::string name_;
  std::shared_ptr<const ExternalUser> user_;
};

/// The habits of a user who scans a list, by grade. They cover every grade of the data.
struct ScanTable {
  std::vector<double> click;  // P(click | examined, grade)
  std::vector<double> stop;   // P(stop | grade); empty: never
  StopDraw stop_draw = StopDraw::kAfterClick;
  double perseverance = 1.0;  // γ: P(next rank examined | not stopped)
};

/// Scans from the top and clicks with P(click | grade). These models of the literature are cases of it:
/// - cascade (Craswell, Zoeter, Taylor and Ramsey, "An experimental comparison of click position-bias
///   models", WSDM 2008): each click stops the scan, so that no log shows two of them;
/// - dependent clicks (Guo, Liu and Wang, "Efficient multiple-click models in web search", WSDM 2009) in
/// the
///   form used in online learning to rank: stops with P(stop | grade) after a click, or after every
///   document;
/// - dynamic Bayesian network (Chapelle and Zhang, "A dynamic Bayesian network click model for web search
///   ranking", WWW 2009): a clicked document satisfies with P(stop | grade), which ends the scan; after any
///   other document the user goes on with probability γ.
class ScanningUser : public ClickModel {
 public:
  /// `noise` flips the click of an examined document. The observed click counts, flipped or not: a stray
  /// click leaves the page like an intended one. With stops drawn after a click and γ = 1, every stop in
  /// the log follows a click.
  ScanningUser(ScanTable table, double noise);

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;
  std::optional<ExaminationLaw> examination_law(std::int64_t ranks) const override;

 private:
  ScanTable table_;
  double noise_;
};

/// How likely a rank is examined; the first of these that is set.
struct ExaminationTable {
  /// γ_{r,r'} rank by rank: for rank r = 1, 2, …, the r numbers for a last click at r' = 0 (none), 1, …,
  /// r − 1. Ranks beyond the table are not examined.
  std::vector<double> by_last_click;
  /// It goes by distance r − r' = 1, 2, …; 0 beyond.
  std::vector<double> by_distance;
  /// Otherwise (1/(r − r'))^η.
  double position_bias = 1.0;   // η
  bool from_last_click = true;  // or r' = 0 whatever is clicked, so that examination depends only on rank

  /// γ for ranks from 1; `last` is 0 without a click above.
  double examination(std::size_t rank, std::size_t last) const;
};

/// Examines ranks one by one, and clicks an examined document with P(click | grade). Where examination
/// depends on the rank of the last click above, it is the user browsing model (Dupret and Piwowarski, "A
/// user browsing model to predict search engine click data from past observations", SIGIR 2008), else the
/// position-based model (Craswell, Zoeter, Taylor and Ramsey, "An experimental comparison of click
/// position-bias models", WSDM 2008).
class ExaminingUser : public ClickModel {
 public:
  /// `click` is P(click | grade) for every grade of the data; `noise` flips the click of an examined
  /// document, and a flipped click counts as the last one, as it does in a log.
  ExaminingUser(std::vector<double> click, ExaminationTable table, double noise);

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;
  /// None where clicks decide what is examined.
  std::optional<ExaminationLaw> examination_law(std::int64_t ranks) const override;

 private:
  std::vector<double> click_;
  ExaminationTable table_;
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
