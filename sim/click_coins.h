#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/online/click_model.h"
#include "core/random/rng_stream.h"
#include "sim/external_user.h"

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
    return probability > 0.0 && draw(static_cast<std::uint32_t>(decision)) < probability;
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

}  // namespace olrank
