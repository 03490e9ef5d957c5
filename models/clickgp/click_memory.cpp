#include "models/clickgp/click_memory.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

namespace olrank {
namespace {

/// Only a memory with a query of many documents has it.
constexpr const char* kShownAt = "clickgp.shown_at";

/// Whether this is the only holder of the object. What other threads did with it before they let go is
/// visible then.
template <class T>
bool is_own(const std::shared_ptr<T>& object) {
  if (object.use_count() != 1) return false;
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

/// An array of a saved memory, to which pieces are added, or of which they are taken.
template <class T>
class Pieces {
 public:
  Pieces(StateFields& state, std::string_view name) : state_(state), name_(name) {
    if (state.reads()) values_ = state.reader().get<T>(name);
  }

  void piece(std::int64_t count, std::vector<T>& piece) {
    if (!state_.reads()) {
      values_.insert(values_.end(), piece.begin(), piece.end());
      return;
    }
    state_.require(count <= left(), "What it remembers of queries does not fit their documents.");
    piece.assign(values_.begin() + next_, values_.begin() + next_ + count);
    next_ += count;
  }
  void one(T& value) {
    if (!state_.reads()) return values_.push_back(value);
    std::vector<T> values;
    piece(1, values);
    value = values.front();
  }
  std::int64_t left() const { return std::ssize(values_) - next_; }
  void write() const { state_.writer().put(name_, values_); }

 private:
  StateFields& state_;
  std::string_view name_;
  std::vector<T> values_;
  std::int64_t next_ = 0;
};

}  // namespace

std::int32_t KnownQuery::place_of(std::int64_t doc) const {
  const auto found = std::find(docs.begin(), docs.end(), doc);
  return found == docs.end() ? -1 : static_cast<std::int32_t>(found - docs.begin());
}

std::int32_t KnownQuery::add(std::int64_t doc, std::int64_t inputs) {
  docs.push_back(doc);
  scaled.resize(scaled.size() + inputs);
  clicks.push_back(0.0);
  for (Site& site : sites) {
    for (auto* values : {&site.examined, &site.departure, &site.curvature, &site.evidence})
      values->push_back(0.0);
  }
  return static_cast<std::int32_t>(docs.size()) - 1;
}

KnownQuery KnownQuery::part(std::span<const std::int32_t> places) const {
  const std::int64_t inputs = std::ssize(scaled) / std::ssize(docs);
  KnownQuery part;
  part.means = means;
  part.learned_at = learned_at;
  part.sites.resize(sites.size());
  for (const std::int32_t place : places) {
    part.docs.push_back(docs[place]);
    const auto row = scaled.begin() + place * inputs;
    part.scaled.insert(part.scaled.end(), row, row + inputs);
    part.clicks.push_back(clicks[place]);
    part.shown_at.push_back(shown_at[place]);
  }
  for (std::size_t model = 0; model < sites.size(); ++model) {
    const Site& from = sites[model];
    Site& to = part.sites[model];
    to.query_departure = from.query_departure;
    to.coupling = from.coupling;
    for (const auto values : {&Site::examined, &Site::departure, &Site::curvature, &Site::evidence}) {
      for (const std::int32_t place : places) (to.*values).push_back((from.*values)[place]);
    }
  }
  return part;
}

KnownQuery KnownQuery::split(std::int64_t kept) {
  std::vector<std::int32_t> order(docs.size());
  std::iota(order.begin(), order.end(), 0);
  const std::vector<double>& examined = sites.front().examined;
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return std::pair(shown_at[a], examined[a]) < std::pair(shown_at[b], examined[b]);
  });
  const auto first_kept = order.end() - kept;
  std::sort(order.begin(), first_kept);
  std::sort(first_kept, order.end());
  KnownQuery dropped = part({order.begin(), first_kept});
  *this = part({first_kept, order.end()});
  return dropped;
}

double KnownQuery::faded(std::uint64_t learned, double half_life) const {
  if (half_life <= 0.0 || learned <= learned_at) return 1.0;
  return std::exp2(-static_cast<double>(learned - learned_at) / half_life);
}

void KnownQuery::fade_to(std::uint64_t learned, double half_life) {
  const double factor = faded(learned, half_life);
  if (half_life > 0.0) learned_at = learned;
  if (factor != 1.0) fade(factor);
}

void KnownQuery::fade(double factor) {
  for (double& count : clicks) count *= factor;
  for (Site& site : sites) {
    for (double& count : site.examined) count *= factor;
  }
}

std::int64_t KnownQuery::bytes_of(std::int64_t docs, std::int64_t inputs, std::int64_t centred,
                                  std::int64_t models) {
  constexpr std::int64_t kNodes = 192;  // of the map and of shared ownership
  const std::int64_t of_doc = 8 + 4 * inputs + 8 + 32 * models;
  return kNodes + static_cast<std::int64_t>(sizeof(KnownQuery)) +
         models * static_cast<std::int64_t>(sizeof(Site)) + 4 * centred + docs * of_doc;
}

std::int64_t KnownQuery::bytes() const {
  const auto count = std::ssize(docs);
  return bytes_of(count, count == 0 ? 0 : std::ssize(scaled) / count, std::ssize(means),
                  std::ssize(sites)) +
         8 * std::ssize(shown_at);
}

std::size_t ClickMemory::shard_of(std::int64_t query) {
  constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15ULL;
  return static_cast<std::uint64_t>(query) * kSpread >> 56;
}

ClickMemory::Shard& ClickMemory::own_shard(std::size_t shard) {
  std::shared_ptr<Shard>& shared = shards_[shard];
  if (!shared) {
    shared = std::make_shared<Shard>();
  } else if (!is_own(shared)) {
    shared = std::make_shared<Shard>(*shared);
  }
  return *shared;
}

KnownQuery& ClickMemory::own(std::shared_ptr<KnownQuery>& known) {
  if (!is_own(known)) known = std::make_shared<KnownQuery>(*known);
  return *known;
}

const KnownQuery* ClickMemory::find(std::int64_t query) const {
  const std::shared_ptr<Shard>& shard = shards_[shard_of(query)];
  if (!shard) return nullptr;
  const auto found = shard->find(query);
  return found == shard->end() ? nullptr : found->second.get();
}

KnownQuery& ClickMemory::edit(std::int64_t query, std::int64_t models) {
  std::shared_ptr<KnownQuery>& known = own_shard(shard_of(query))[query];
  if (!known) {
    known = std::make_shared<KnownQuery>();
    known->sites.resize(models);
  }
  return own(known);
}

void ClickMemory::erase(std::int64_t query) {
  own_shard(shard_of(query)).erase(query);
}

std::vector<ClickMemory::Entry> ClickMemory::edit_all() {
  std::vector<Entry> entries;
  for (std::size_t shard = 0; shard < kShards; ++shard) {
    if (!shards_[shard]) continue;
    for (auto& [query, known] : own_shard(shard)) entries.push_back({query, &own(known)});
  }
  return entries;
}

std::int64_t ClickMemory::queries() const {
  std::int64_t count = 0;
  for (const auto& shard : shards_) count += shard ? std::ssize(*shard) : 0;
  return count;
}

void ClickMemory::fields(StateFields& state, std::int64_t inputs, std::int64_t centred,
                         std::int64_t models) {
  Pieces<std::int64_t> queries(state, "clickgp.queries");
  Pieces<std::int64_t> counts(state, "clickgp.counts");
  Pieces<std::uint64_t> learned_at(state, "clickgp.learned_at");
  Pieces<std::int64_t> docs(state, "clickgp.docs");
  Pieces<float> values(state, "clickgp.inputs");
  Pieces<double> numbers(state, "clickgp.numbers");
  std::optional<Pieces<std::uint64_t>> shown_at;
  if (!state.reads() || state.reader().is_next(kShownAt)) shown_at.emplace(state, kShownAt);
  bool knows_times = false;
  const auto pass = [&](KnownQuery& known) {
    auto count = std::ssize(known.docs);
    counts.one(count);
    // Before anything is multiplied by it, the first piece refuses a count that is no count.
    state.require(count >= 0 && known.docs.empty(), "What it remembers of queries is not sorted.");
    docs.piece(count, known.docs);
    learned_at.one(known.learned_at);
    values.piece(count * inputs, known.scaled);
    values.piece(centred, known.means);
    numbers.piece(count, known.clicks);
    if (shown_at) {
      std::vector<std::uint64_t> times = known.shown_at;
      knows_times = knows_times || !times.empty();
      times.resize(count);
      shown_at->piece(count, times);
      const bool has_times = std::any_of(times.begin(), times.end(), [](auto list) { return list != 0; });
      if (state.reads() && has_times) known.shown_at = std::move(times);
    }
    for (KnownQuery::Site& site : known.sites) {
      for (auto* of_docs : {&site.examined, &site.departure, &site.curvature, &site.evidence})
        numbers.piece(count, *of_docs);
      numbers.one(site.query_departure);
      numbers.one(site.coupling);
    }
  };
  if (!state.reads()) {
    for (const auto& shard : shards_) {
      if (!shard) continue;
      for (const auto& [query, known] : *shard) {
        std::int64_t name = query;
        queries.one(name);
        pass(*known);
      }
    }
    const auto write = [](const auto&... arrays) { (arrays.write(), ...); };
    write(queries, counts, learned_at, docs, values, numbers);
    if (knows_times) shown_at->write();
    return;
  }
  shards_ = {};
  for (std::int64_t query = 0; queries.left() > 0;) {
    queries.one(query);
    pass(edit(query, models));
  }
  const auto left = [](const auto&... arrays) { return (arrays.left() + ...); };
  state.require(left(counts, learned_at, docs, values, numbers) + (shown_at ? shown_at->left() : 0) == 0,
                "What it remembers of queries has numbers that belong to none of them.");
}

void solve_site(const Departures& departures, const SiteEvidence& evidence, int steps, double least_step,
                QuerySite& site) {
  const auto& [examined, clicks, model] = evidence;
  const std::size_t docs = examined.size();
  assert(model.size() == docs && site.departure.size() == docs);
  const double s2 = departures.document;
  const double t2 = departures.query;
  constexpr double kLongest = 2.0;
  constexpr double kLeastWeight = 1e-6;

  std::vector<double> fitted(docs);
  for (std::size_t doc = 0; doc < docs; ++doc)
    fitted[doc] = model[doc] + site.departure[doc] + site.query_departure;
  // Each step writes ε here first and then makes v of it.
  const std::span<double> slope = site.evidence;
  for (int step = 0; step < steps; ++step) {
    site.curvature_sum = 0.0;
    double slopes = 0.0;
    for (std::size_t doc = 0; doc < docs; ++doc) {
      const double p = click_probability(fitted[doc]);
      const double weight = std::max(examined[doc] * p * (1.0 - p), kLeastWeight * examined[doc]);
      const double narrowed = 1.0 + s2 * weight;
      site.curvature[doc] = weight / narrowed;
      slope[doc] = (weight * (fitted[doc] - model[doc]) + clicks[doc] - examined[doc] * p) / narrowed;
      site.curvature_sum += site.curvature[doc];
      slopes += slope[doc];
    }
    site.coupling = t2 / (1.0 + t2 * site.curvature_sum);
    site.slope_sum = 0.0;
    for (std::size_t doc = 0; doc < docs; ++doc) {
      slope[doc] -= site.coupling * site.curvature[doc] * slopes;
      site.slope_sum += slope[doc];
    }
    double longest = 0.0;
    for (std::size_t doc = 0; doc < docs; ++doc) {
      const double wanted = model[doc] + s2 * slope[doc] + t2 * site.slope_sum - fitted[doc];
      const double change = std::clamp(wanted, -kLongest, kLongest);
      fitted[doc] += change;
      longest = std::max(longest, std::abs(change));
    }
    if (longest < least_step) break;
  }
  double pull = 0.0;  // h·m
  for (std::size_t doc = 0; doc < docs; ++doc) pull += site.curvature[doc] * model[doc];
  for (std::size_t doc = 0; doc < docs; ++doc) {
    const double v = slope[doc];
    site.departure[doc] = s2 * v;
    site.evidence[doc] = v + site.curvature[doc] * (model[doc] - site.coupling * pull);
  }
  site.query_departure = t2 * site.slope_sum;
}

}  // namespace olrank
