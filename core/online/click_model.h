#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/interface.h"
#include "core/random/rng_stream.h"

namespace olrank {

struct QueryDocs;

/// The true grades of a query's documents. A separate type, so that no ranker gets grades by mistake.
struct QueryGrades {
  std::span<const std::uint8_t> of_doc;  // [V]
  const QueryDocs* docs = nullptr;       // for users of a program, who see the documents, too
};

/// The user's reaction to a shown list. `examined` is for tests only; rankers never see it.
struct ClickLog {
  std::vector<std::uint8_t> clicks;    // [shown]
  std::vector<std::uint8_t> examined;  // [shown]
};

/// How likely a user examines each rank, in closed form: one of two forms.
struct ExaminationLaw {
  std::vector<double> by_rank;  // [ranks], whatever is shown
  std::vector<double> goes_on;  // [grades]: examines the rank behind a document that it has examined
};

/// A simulated user. Its coins belong to (round, document), so that they do not depend on the ranker.
class ClickModel : public Interface {
 public:
  /// `shown` are docs, best first; `key` is the trial's key of Purpose::kClick. Fills `log` and reuses
  /// its memory.
  virtual void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key,
                     std::uint32_t round, ClickLog& log) const = 0;

  /// Whose round it is, from 0, of a user that is several people.
  virtual std::int64_t person(PhiloxKey /*key*/, std::uint32_t /*round*/) const { return 0; }

  /// None for users without such a form.
  virtual std::optional<ExaminationLaw> examination_law(std::int64_t /*ranks*/) const {
    return std::nullopt;
  }
};

/// The training part with its true grades, for the few rankers that learn from labels instead of clicks, as
/// an upper bound for the others. A separate type, so that no other ranker sees a grade.
class LabelledQueries {
 public:
  /// No queries.
  LabelledQueries() = default;
  /// `train` must outlive this object and its copies.
  explicit LabelledQueries(const Dataset& train) : train_(&train) {}

  std::int64_t queries() const { return train_ == nullptr ? 0 : train_->queries(); }
  const Dataset& data() const { return *train_; }
  QueryGrades grades_of(std::int64_t query) const { return {train_->grades_of(query)}; }

 private:
  const Dataset* train_ = nullptr;
};

/// Chooses the query of each round.
class QuerySource : public Interface {
 public:
  /// The number of a query of the training part; a pure function of `round`, which counts from 1.
  virtual std::int64_t query_of(std::uint32_t round) const = 0;
};

}  // namespace olrank
