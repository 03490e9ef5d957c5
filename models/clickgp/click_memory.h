#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/io/state_archive.h"
#include "core/math/portable_exp.h"

namespace olrank {

/// It remembers the documents of a query that were shown, in the order of their first time.
struct KnownQuery {
  /// A site belongs to one of the models that run side by side.
  struct Site {
    std::vector<double> examined;   // expected examinations
    std::vector<double> departure;  // as in QuerySite, like the next ones
    std::vector<double> curvature;
    std::vector<double> evidence;
    double query_departure = 0.0;
    double coupling = 0.0;
  };

  std::vector<std::int64_t> docs;  // their names
  std::vector<float> scaled;       // [docs × inputs] as they were when last shown
  std::vector<float> means;        // of the centred features then
  std::vector<double> clicks;
  /// The list that showed each document last, 0 if none did since the query first had too many documents.
  /// Empty until then.
  std::vector<std::uint64_t> shown_at;
  std::vector<Site> sites;       // one per model
  std::uint64_t learned_at = 0;  // lists that the ranker had learned from by then

  /// The place of a document, or −1.
  std::int32_t place_of(std::int64_t doc) const;
  std::int32_t add(std::int64_t doc, std::int64_t inputs);
  /// Keeps so many documents, those that were shown last, and returns the others as another query. Among
  /// documents of the same list it keeps those that were examined more.
  KnownQuery split(std::int64_t kept);
  /// The factor of what was seen, after `learned` lists, of which `half_life` halve it (0: it stays).
  double faded(std::uint64_t learned, double half_life) const;
  void fade(double factor);
  void fade_to(std::uint64_t learned, double half_life);
  /// Counts the bytes of this entry in memory.
  std::int64_t bytes() const;
  static std::int64_t bytes_of(std::int64_t docs, std::int64_t inputs, std::int64_t centred,
                               std::int64_t models);

 private:
  KnownQuery part(std::span<const std::int32_t> places) const;
};

/// Known queries by name. A copy is a snapshot that costs little: it shares what neither side changes.
class ClickMemory {
 public:
  const KnownQuery* find(std::int64_t query) const;
  /// A query to change, with no documents if it is new.
  KnownQuery& edit(std::int64_t query, std::int64_t models);
  void erase(std::int64_t query);

  struct Entry {
    std::int64_t query = 0;
    KnownQuery* known = nullptr;
  };
  /// All to change, in an order that depends on their names alone.
  std::vector<Entry> edit_all();

  std::int64_t queries() const;

  void fields(StateFields& state, std::int64_t inputs, std::int64_t centred, std::int64_t models);

 private:
  static constexpr std::size_t kShards = 256;
  using Shard = std::map<std::int64_t, std::shared_ptr<KnownQuery>>;

  static std::size_t shard_of(std::int64_t query);
  Shard& own_shard(std::size_t shard);
  static KnownQuery& own(std::shared_ptr<KnownQuery>& known);

  std::array<std::shared_ptr<Shard>, kShards> shards_{};  // null: empty
};

/// 1 / (1 + e^−x), by + − × ÷ alone.
inline double click_probability(double x) {
  constexpr double kMost = 30.0;
  const double clamped = x < -kMost ? -kMost : x > kMost ? kMost : x;
  const double decay = portable_exp_nonpositive(clamped < 0.0 ? clamped : -clamped);
  return (clamped < 0.0 ? decay : 1.0) / (1.0 + decay);
}

/// How far documents (σ²) and queries (τ²) may depart from what their features say.
struct Departures {
  double document = 0.5;
  double query = 0.5;
};

/// The remembered documents of a query: expected examinations n > 0, clicks c, and scores m by the model.
struct SiteEvidence {
  std::span<const double> examined;
  std::span<const double> clicks;
  std::span<const double> model;
};

/// The departures u of documents and b of the query at the mode of their posterior given θ, and the
/// Gaussian there, of which θ is learned: M = diag h − ρ h hᵀ of the model's scores, and M m + v.
struct QuerySite {
  std::span<double> departure;   // u, where the search begins, too
  std::span<double> curvature;   // h
  std::span<double> evidence;    // v + M m
  double query_departure = 0.0;  // b, likewise
  double coupling = 0.0;         // ρ

  // The last step gives these for the variances.
  double curvature_sum = 0.0;  // Σ h
  double slope_sum = 0.0;      // Σ v
};

/// At most `steps` of Newton's method for f = m + u + b, each of at most 2, until one is below
/// `least_step`. What it leaves is of the last step's beginning.
void solve_site(const Departures& departures, const SiteEvidence& evidence, int steps, double least_step,
                QuerySite& site);

/// The variance of a document's departure that is left at a site; σ² where nothing was seen.
inline double variance_left(const Departures& departures, double curvature, double coupling) {
  const double s2 = departures.document;
  return s2 - s2 * s2 * (curvature - coupling * curvature * curvature);
}

}  // namespace olrank
