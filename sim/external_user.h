#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace olrank
