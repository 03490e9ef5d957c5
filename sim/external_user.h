#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/online/click_model.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// A built-in user decides these about a document, each with a coin of its own. The numbers are part of
/// every draw: never renumber, only append.
enum class UserDecision : std::uint32_t {
  kClick = 0,
  kStop = 1,
  kNoise = 2,
  kExamination = 3,
  kPerseverance = 4
};

/// A user's random draws in one round of a trial. They belong to (seed, fold, user's name, round, document,
/// decision), so that a document gets the same ones at every rank, for every ranker and on any thread.
class UserCoins {
 public:
  UserCoins(std::array<std::uint32_t, 2> key, std::uint32_t round) : key_(key), round_(round) {}

  /// The number is in [0, 1). A built-in user does what has probability p if this is less than p, with
  /// these very numbers.
  double uniform(std::int32_t doc, UserDecision decision) const;
  /// Further coins, for what built-in users do not decide: in [0, 1), independent by `number` below 2³¹.
  double own(std::int32_t doc, std::uint32_t number) const;

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t round_;
};

/// A list as its user sees it.
struct ShownToUser {
  std::uint32_t round = 0;               // from 1
  std::span<const std::uint8_t> grades;  // [V] true grades of all the query's documents
  std::span<const std::int32_t> shown;   // documents, 0 to V − 1, best first
  UserCoins coins;
  std::int64_t query = 0;                  // number within the training part
  std::string_view qid = {};               // its name there
  std::vector<std::string_view> ids = {};  // [V] names of the documents; empty where they have none
  std::int64_t features = 0;
  std::span<const float> inputs = {};  // [V × features], normalised, row by row; empty for sparse data
  std::int64_t person = 0;             // who asks, below people(): each as often, the same for all rankers
  std::span<std::uint8_t> examined = {};  // [shown], 1: a user who skips some sets theirs to 0
};

/// A simulated user of a program that uses olrank as a library. Several threads call click() at once, and
/// trials are repeated and resumed to the same bits, so clicks follow from what is passed alone: a user has
/// no state that changes, and draws from `coins`.
///
/// Shown documents count as examined unless click() writes otherwise into `examined`: by these go the
/// regret on examined documents and, with [groups], the exposure of ranks that `groups.examination` leaves
/// out.
class ExternalUser {
 public:
  ExternalUser() = default;
  virtual ~ExternalUser() = default;
  ExternalUser(const ExternalUser&) = delete;
  ExternalUser& operator=(const ExternalUser&) = delete;

  /// 0 or 1 for each shown document, in the same order.
  virtual std::vector<std::uint8_t> click(const ShownToUser& list) const = 0;
  /// Each round is one of so many people's, at least 1.
  virtual std::int64_t people() const { return 1; }
};

/// Makes a user known, so that clicks.models = ["NAME"] plays trials with it; the name is part of its
/// coins. Trials keep the description, one line, and refuse to continue with a user of another one: put a
/// version and parameters into it. Throws InvalidArgument for a name that is taken, by a built-in user or
/// another registered one, or that is no folder name. Any thread may call this.
void register_user(const std::string& name, const std::string& description,
                   std::shared_ptr<const ExternalUser> user);
/// Trials that run keep their user. Does nothing for an unknown name.
void unregister_user(const std::string& name);

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

}  // namespace olrank
