#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/feedback/examination.h"
#include "core/runtime/execution_context.h"
#include "models/clickgp/click_belief.h"
#include "models/clickgp/click_memory.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// When a click model is solved and recomputed. Counts are of lists learned from.
struct ClickSchedule {
  std::uint64_t least_solve_interval = 1;
  std::uint64_t most_solve_interval = 16;
  std::uint64_t lists_per_interval = 16;
  double growth = 1.15;       // of the lists from one refresh to the next
  double late_growth = 1.15;  // when their hyperparameters move little
  double least_interval = 10.0;
  double longest_interval = 1e18;

  static bool is_late(std::uint64_t lists) { return lists >= 128; }
  /// The more lists a solution has, the less the next one changes it.
  std::uint64_t solve_interval(std::uint64_t learned) const {
    return std::clamp(std::bit_floor(learned / lists_per_interval), least_solve_interval,
                      most_solve_interval);
  }
};

/// λ_B by MacKay's rule with a gamma prior, of the weight of one direction, around an expected precision:
/// γ_B known directions and ‖θ_B‖².
double block_precision(double known, double squares, double expected);

/// σ² or τ² by the same rule with a prior of weight `prior` around ½: Σu² or Σb², and how many of them are
/// known.
double departure_variance(double squares, double known, double prior);

/// One click model that learns: a Gaussian belief about θ from the sites of all queries, whose
/// hyperparameters follow from the evidence. Precision and evidence of θ follow each changed site; at
/// geometric times every site is found again.
class ClickRegression {
 public:
  ClickRegression(const ClickFeatures& features, const ClickSchedule& schedule, std::size_t number);

  const ClickBelief& belief() const { return belief_; }

  /// Documents of a query that is new, by which the first precisions of θ are scaled.
  void see_documents(std::span<const double> rows);

  /// p of each shown document and what its examination was; learns how users read lists. `view` is of
  /// belief().look(). Clicks that are worth `worth` on average multiply the odds that it has learned.
  void read_list(const ClickView& view, std::span<const std::int32_t> shown,
                 std::span<const std::uint8_t> clicks, double worth, Examination::Reading& reading);

  /// The rows of a view that the documents of a query had and have, by their places; −1: none. Those
  /// beyond the end of `before` had none. A document that is shown is `changed`.
  struct Change {
    std::vector<std::int32_t> before;
    std::vector<std::int32_t> now;
    std::vector<std::uint8_t> changed;
  };
  /// Finds the site of a query again, and puts the parts of documents that have changed, or whose rows
  /// have, in the place of theirs before. The others stay until all sites are found again.
  void replace(const ClickView& view, const Change& change, KnownQuery& known);
  /// Takes out the part of a query.
  void take_out(const ClickView& view, Change change, KnownQuery& known);
  /// The queries are forgotten, and their parts stay.
  void retire(ExecutionContext& context, std::span<const KnownQuery* const> queries, std::uint64_t learned);

  /// Follows after the part of a list has been replaced, as list number `learned`.
  void follow(ExecutionContext& context, ClickMemory& memory, std::uint64_t learned, double half_life);
  /// After the counts in the memory have become 0: forgets what was retired and what was learned of
  /// examination, too, finds every site again, and begins with the schedule again.
  void forget_all(ExecutionContext& context, ClickMemory& memory, std::uint64_t learned, double half_life);
  /// Brings what was learned of examination a step back to its start.
  void forget(double share) { examination_.forget(share); }

  void fields(StateFields& state);

 private:
  void collected_fields(StateFields& state);
  void set_products(const StateFields& state, std::span<const std::int64_t> numbers);
  /// A block of θ with a precision of its own.
  struct Block {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    double width = 1.0;      // of the first precision, as a multiple of the mean square
    bool is_vector = false;  // of a vector, whose coordinates vary together
    bool is_start = false;   // the start model's score, which is expected to spread as far as clicks do
    double squares = 0.0;    // Σ ‖φ_B‖² of the documents seen
    double precision = 1.0;  // λ_B
  };
  /// Sums over sites for the hyperparameters.
  struct SiteSums {
    double document_squares = 0.0;  // Σ u²
    double document_known = 0.0;    // Σ σ² M_ii
    double query_squares = 0.0;     // Σ b²
    double query_known = 0.0;       // Σ τ² (H − ρH²)
  };

  double first_precision(const Block& block) const;
  /// The mean of the prior.
  double expected(const Block& block) const;
  /// Exchanges a site for another one whose documents have other rows. Those that
  /// have not changed cost nothing.
  void exchange(const ClickView& view, const Change& change, const KnownQuery::Site& before,
                const KnownQuery::Site& after);
  /// Adds the rows that were collected to the precision.
  void add_collected(ExecutionContext& context);
  /// η and what the prior adds.
  void find_whole_evidence(AlignedVector<double>& evidence) const;
  /// Moves θ̂ a step towards the solution, with the factor there is.
  void correct();
  void solve(ExecutionContext& context);
  /// Finds the longest run of inputs that correlate with most others, as the coordinates of an embedding
  /// do: a vector. Whether there is one that was not known.
  bool find_vector(std::span<const ClickMemory::Entry> queries);
  /// Makes the blocks of inputs, where a vector has its own, of terms, start model and products.
  void make_blocks();
  std::vector<std::int32_t> ordinary_inputs() const;
  /// Finds the prior of a vector's weights from the sums.
  void find_prior();
  /// Finds the products of inputs that the sites speak for beyond chance. Whether they have changed.
  bool choose_products(ExecutionContext& context, std::span<const ClickMemory::Entry> queries);
  /// Takes them in. Those of forgotten queries have kept their places, so that retired sums stay right.
  void set_products(ProductPlaces products, std::span<const ClickMemory::Entry> queries);
  /// Gives the sums the belief's width, which was `before`. Those of sites are found again.
  void widen(std::int64_t before);
  void refresh(ExecutionContext& context, ClickMemory& memory, std::uint64_t learned, double half_life);
  SiteSums find_all_sites(ExecutionContext& context, std::span<const ClickMemory::Entry> queries);
  /// `first` are the queries' first documents among all, and the end.
  void add_chunk(ExecutionContext& context, std::span<const ClickMemory::Entry> queries,
                 std::span<const std::int64_t> first, std::vector<SiteSums>& sums);
  void set_hyperparameters(const SiteSums& sums);
  std::string prefix() const;

  ClickBelief belief_;
  ClickSchedule schedule_;
  std::size_t number_;  // among the models
  Examination examination_;
  std::vector<Block> blocks_;
  double documents_ = 0.0;  // seen by see_documents()
  bool has_evidence_ = false;
  static constexpr std::uint64_t kFirstRefresh = 20;
  std::uint64_t begun_at_ = 0;                  // lists learned from when most was forgotten last
  std::uint64_t next_refresh_ = kFirstRefresh;  // lists since then

  std::int64_t vector_begin_ = 0;  // inputs of a vector
  std::int64_t vector_end_ = 0;
  AlignedVector<double> prior_;            // of a vector's weights, precision but for λ_B, lower triangle
  AlignedVector<double> precision_;        // Λ, lower triangle of [D × D], but for what is collected
  AlignedVector<double> evidence_;         // η
  AlignedVector<double> collected_;        // rows r of which Λ has Σ w r rᵀ more
  std::vector<double> collected_weights_;  // w
  AlignedVector<double> solved_;           // A θ̂, A = L Lᵀ of the belief; while something is collected
  /// A list needs memory for these, which stays: steps of the evidence, weights by rows, Σ h φ and so on.
  struct Work {
    AlignedVector<double> steps, weights_before, weights_after, pull, slope, of_rows, direction;
    ClickSite site;
    KnownQuery::Site before;  // a site as it was
    std::vector<double> own_before, own_after;
  };
  Work work_;
  AlignedVector<double> retired_precision_;  // of forgotten queries; empty while there are none
  AlignedVector<double> retired_evidence_;
  std::uint64_t retired_at_ = 0;  // lists learned from when they last faded
};

/// The features of the models that run side by side; those of the last one begin with those of the others.
std::vector<ClickFeatures> click_features_of(const RankerSettings& settings, std::int64_t features,
                                             const std::shared_ptr<const ClickStart>& start = {});
/// The bytes that `docs` remembered documents of `queries` queries take with all click models.
double clickgp_bytes(const RankerSettings& settings, std::int64_t features, double docs, double queries);

std::unique_ptr<OnlineRanker> make_clickgp(const RankerRequest& request);
void set_clickgp_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
