#include "core/data/synthetic.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>

#include "core/data/doc_table.h"
#include "core/data/join.h"
#include "core/data/synthetic_plan.h"
#include "core/data/synthetic_source.h"
#include "core/interface.h"
#include "core/random/rng_stream.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

enum class SyntheticPart { kTrain, kVali, kTest };

constexpr std::int64_t kQueriesPerBlock = 4;

/// Four decimals: as many as files of features carry, and short as text. Not negative.
double rounded(double x) {
  return std::floor(x * 10000.0 + 0.5) / 10000.0;
}

/// A whole number of at most a million.
double whole(double x) {
  return x < 1e6 ? static_cast<double>(static_cast<std::int64_t>(x)) : 1e6;
}

/// Documents of a query: mean · (¼ + 0.9 (u² + v)), which has the mean `docs` and lies between a quarter of
/// it and twice it, the long side above. The first two draws of the query's stream.
std::int64_t draw_docs(RngStream& stream, std::int64_t docs) {
  const double u = stream.uniform();
  const double v = stream.uniform();
  const double count = static_cast<double>(docs) * (0.25 + 0.9 * (u * u + v));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(count + 0.5)));
}

/// A query does this to one group's columns.
struct GroupInQuery {
  double low = 0.0;    // of a ratio or score; a binary one's threshold
  double range = 1.0;  // of a ratio or score; a count's scale
};

/// Writes the documents of one part, query by query.
class Generator : public Interface {
 public:
  virtual std::int64_t docs_of(std::int64_t query) const = 0;
  virtual void write_query(std::int64_t query, std::int64_t docs, float* values,
                           std::uint8_t* grades) const = 0;
};

/// Documents whose scores under a known function are known: one of each grade a query.
class RealisableGenerator : public Generator {
 public:
  RealisableGenerator(const SyntheticSource& source, SyntheticPart part)
      : docs_(source.docs),
        features_(source.features),
        target_(source),
        key_(key_of_part(source, static_cast<std::uint64_t>(part))) {}

  std::int64_t docs_of(std::int64_t) const override { return docs_; }

  void write_query(std::int64_t query, std::int64_t docs, float* values,
                   std::uint8_t* grades) const override {
    std::iota(grades, grades + docs, 0);
    RngStream(key_, static_cast<std::uint32_t>(query), kSyntheticQueryPlace)
        .shuffle(std::span(grades, docs));
    std::vector<double> x(features_);
    for (std::int64_t doc = 0; doc < docs; ++doc) {
      RngStream stream(key_, static_cast<std::uint32_t>(query), static_cast<std::uint32_t>(doc));
      target_.draw(stream, grades[doc], x);
      std::copy(x.begin(), x.end(), values + doc * features_);
    }
  }

 private:
  std::int64_t docs_;
  std::int64_t features_;
  RealisableTarget target_;
  PhiloxKey key_;
};

/// Documents like those of public data sets.
class LikenessGenerator : public Generator {
 public:
  LikenessGenerator(const SyntheticSource& source, SyntheticPart part)
      : plan_(make_synthetic_plan(source)),
        key_(key_of_part(source, static_cast<std::uint64_t>(part))),
        vector_key_(key_of_part(source, kSyntheticVectorPart + static_cast<std::uint64_t>(part))) {}

  std::int64_t docs_of(std::int64_t query) const override {
    RngStream stream = query_stream(query);
    return draw_docs(stream, plan_.source.docs);
  }

  void write_query(std::int64_t query, std::int64_t docs, float* values,
                   std::uint8_t* grades) const override {
    RngStream stream = query_stream(query);
    (void)draw_docs(stream, plan_.source.docs);
    const double query_effect = SyntheticPlan::kQueryEffect * stream.normal();
    std::vector<GroupInQuery> groups(plan_.groups.size());
    std::vector<float> constants(plan_.first_single);
    draw_groups(stream, groups, constants);
    std::vector<double> vector(plan_.source.embedding);
    for (std::int64_t doc = 0; doc < docs; ++doc) {
      RngStream doc_stream(key_, static_cast<std::uint32_t>(query), static_cast<std::uint32_t>(doc));
      const SyntheticSignals signals = plan_.relevance.draw(doc_stream);
      const double noise = plan_.source.noise * doc_stream.normal();
      const double y = plan_.relevance_of(signals, draw_vector(query, doc, vector)) + query_effect + noise;
      grades[doc] = static_cast<std::uint8_t>(plan_.grade_of(y));
      float* row = values + doc * plan_.source.columns();
      for (std::size_t g = 0; g < groups.size(); ++g) {
        write_group(doc_stream, plan_.groups[g], groups[g], signals, constants, row);
      }
      write_singles(doc_stream, row);
      write_vector(vector, row + plan_.source.features);
      if (plan_.source.has_groups())
        row[plan_.source.columns() - 1] = plan_.in_group_a(y, doc_stream.normal()) ? 0.0F : 1.0F;
    }
  }

 private:
  RngStream query_stream(std::int64_t query) const {
    return {key_, static_cast<std::uint32_t>(query), kSyntheticQueryPlace};
  }

  /// Draws a document's vector, and returns what relevance sees of it.
  double draw_vector(std::int64_t query, std::int64_t doc, std::span<double> vector) const {
    if (vector.empty()) return 0.0;
    RngStream of_query(vector_key_, static_cast<std::uint32_t>(query), kSyntheticQueryPlace);
    RngStream of_doc(vector_key_, static_cast<std::uint32_t>(query), static_cast<std::uint32_t>(doc));
    plan_.vectors.draw(of_query, of_doc, vector);
    return std::inner_product(vector.begin(), vector.end(), plan_.vectors.relevance.begin(), 0.0);
  }

  void write_vector(std::span<const double> vector, float* columns) const {
    if (!plan_.source.projection) {
      std::copy(vector.begin(), vector.end(), columns);
      return;
    }
    const std::vector<double>& texts = plan_.vectors.texts;
    for (auto at = texts.begin(); at != texts.end(); at += plan_.source.embedding)
      *columns++ = static_cast<float>(std::inner_product(vector.begin(), vector.end(), at, 0.0));
  }

  void draw_groups(RngStream& stream, std::span<GroupInQuery> groups, std::span<float> constants) const {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const double u = synthetic_uniform(stream);
      const double v = synthetic_uniform(stream);
      GroupInQuery& group = groups[g];
      switch (plan_.groups[g].kind) {
        case SyntheticKind::kRatio:
        case SyntheticKind::kSkewed:
          group.low = 0.2 * u;
          group.range = 1.0 - 0.2 * v - group.low;
          break;
        case SyntheticKind::kScore:
          group.low = 4.0 * u;
          group.range = 8.0 + 12.0 * v;
          break;
        case SyntheticKind::kCount:
          group.range = 10.0 + 40.0 * u * v;
          break;
        case SyntheticKind::kBinary:
          group.low = 0.3 + 0.6 * u;
          break;
        case SyntheticKind::kConstant:
          write_constants(stream, plan_.groups[g], u, constants);
          break;
      }
    }
  }

  /// Like an inverse document frequency: summed over the query's words, a little different in each place.
  void write_constants(RngStream& stream, const SyntheticGroup& group, double u,
                       std::span<float> constants) const {
    const bool missing = group.present < 1.0 && synthetic_uniform(stream) >= group.present;
    const double scale = plan_.has_missing ? 0.5 : 12.0;
    for (int s = 0; s < plan_.streams; ++s) {
      const double value = scale * (0.1 + u + 0.5 * synthetic_uniform(stream));
      constants[group.first_column + s] = missing ? 0.0F : static_cast<float>(rounded(value));
    }
  }

  void write_group(RngStream& stream, const SyntheticGroup& group, const GroupInQuery& in_query,
                   const SyntheticSignals& signals, std::span<const float> constants, float* row) const {
    // How much of the whole document's place each part of it shares; the last column is the whole.
    constexpr double kShared[4] = {0.85, 0.6, 0.75, 0.65};
    float* columns = row + group.first_column;
    if (group.kind == SyntheticKind::kConstant) {
      std::copy_n(constants.begin() + group.first_column, plan_.streams, columns);
      return;
    }
    const double t = group.signal >= 0 ? signals[group.signal] : synthetic_uniform(stream);
    const bool missing = group.signal >= 0
                             ? t == 0.0  // drawn with the signal
                             : group.present < 1.0 && synthetic_uniform(stream) >= group.present;
    if (missing) {
      std::fill_n(columns, plan_.streams, 0.0F);
      return;
    }
    for (int s = 0; s + 1 < plan_.streams; ++s) {
      const double shared = kShared[s % 4];
      const double place = shared * t + (1.0 - shared) * synthetic_uniform(stream);
      columns[s] = value_at(group.kind, in_query, place, false);
    }
    columns[plan_.streams - 1] = value_at(group.kind, in_query, t, true);
  }

  float value_at(SyntheticKind kind, const GroupInQuery& in_query, double t, bool whole_document) const {
    switch (kind) {
      case SyntheticKind::kRatio:
        return ratio(in_query.low + in_query.range * t);
      case SyntheticKind::kSkewed:
        return ratio(in_query.low + in_query.range * (t * t * t));
      case SyntheticKind::kScore:
        return static_cast<float>(0.0 - rounded(in_query.low + in_query.range * (1.0 - t)));
      case SyntheticKind::kCount: {
        // Odds of a uniform number have a tail like 1/x. A mixture of two of them seldom comes near 1, so
        // its odds need the higher power for a tail as heavy.
        const double odds = t / (1.0 - t);
        return static_cast<float>(whole(in_query.range * (whole_document ? odds : 0.5 * (odds * odds))));
      }
      default:
        return t > in_query.low ? 1.0F : 0.0F;
    }
  }

  float ratio(double value) const {
    return static_cast<float>(plan_.has_missing ? std::max(rounded(value), 0.0001) : rounded(value));
  }

  /// Properties of the document itself: slashes in its address, links to it, a quality of 0 to 255, clicks.
  void write_singles(RngStream& stream, float* row) const {
    for (std::int64_t column = plan_.first_single; column < plan_.source.features; ++column) {
      const double t = synthetic_uniform(stream);
      if (plan_.has_missing) {
        row[column] = synthetic_uniform(stream) < plan_.single_present ? ratio(t) : 0.0F;
        continue;
      }
      const double odds = t / (1.0 - t);
      const std::int64_t property = (column - plan_.first_single) % 4;
      const double value = property == 0   ? 1.0 + whole(std::min(odds, 8.0))
                           : property == 1 ? whole(3.0 * odds)
                           : property == 2 ? whole(256.0 * t)
                           : t < 0.8       ? 0.0
                                           : whole(odds);
      row[column] = static_cast<float>(value);
    }
  }

  SyntheticPlan plan_;
  PhiloxKey key_;
  PhiloxKey vector_key_;
};

std::unique_ptr<Generator> make_generator(const SyntheticSource& source, SyntheticPart part) {
  if (source.is_realisable()) return std::make_unique<RealisableGenerator>(source, part);
  return std::make_unique<LikenessGenerator>(source, part);
}

Dataset make_part(const SyntheticSource& source, SyntheticPart part, ExecutionContext& context,
                  const std::shared_ptr<FeatureStore>& store) {
  // Numbers that no two parts share, however many queries there are.
  constexpr std::int64_t kQidStride = 20'000'000;
  const auto generator = make_generator(source, part);
  const std::int64_t queries = part == SyntheticPart::kTrain ? source.queries : source.test_queries;
  const std::int64_t features = source.columns();
  std::vector<std::int64_t> offsets = {0};
  for (std::int64_t query = 0; query < queries; ++query)
    offsets.push_back(offsets.back() + generator->docs_of(query));
  DocTable table;
  table.features = features;
  table.values = feature_memory(store.get(), offsets.back(), features);
  table.grades.resize(offsets.back());
  for (std::int64_t query = 0; query < queries; ++query) {
    table.qids.push_back(std::to_string(static_cast<std::int64_t>(part) * kQidStride + query + 1));
    table.query_runs.push_back({static_cast<std::uint32_t>(query),
                                static_cast<std::uint32_t>(offsets[query + 1] - offsets[query])});
  }
  float* const values = table.values.as<float>().data();
  context.for_blocks(queries, kQueriesPerBlock, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t query = begin; query < end; ++query) {
      const std::int64_t first = offsets[query];
      generator->write_query(query, offsets[query + 1] - first, values + first * features,
                             table.grades.data() + first);
    }
  });
  return stored_by(store, gathered(std::move(table), context.pool()), "The synthetic data");
}

void check_memory(const SyntheticSource& source, std::int64_t max_bytes) {
  const double docs =
      static_cast<double>(source.queries + 2 * source.test_queries) * static_cast<double>(source.docs);
  const double bytes = docs * static_cast<double>(source.columns()) * sizeof(float);
  if (bytes <= static_cast<double>(max_bytes)) return;
  throw_error<InvalidArgument>(
      "The synthetic data would need about {} ({} + 2 × {} queries of {} documents with {} features), but "
      "--max-memory allows {}. Lower queries, test_queries, docs or features, or raise --max-memory.",
      readable_bytes(bytes), source.queries, source.test_queries, source.docs, source.features,
      readable_bytes(static_cast<double>(max_bytes)));
}

}  // namespace

SyntheticParts make_synthetic(std::string_view text, ExecutionContext& context,
                              std::optional<std::int64_t> max_bytes,
                              const std::shared_ptr<FeatureStore>& store) {
  const SyntheticSource source = parse_synthetic_source(text);
  if (store == nullptr) check_memory(source, max_bytes.value_or(available_memory() / 2));
  return {make_part(source, SyntheticPart::kTrain, context, store),
          make_part(source, SyntheticPart::kVali, context, store),
          make_part(source, SyntheticPart::kTest, context, store)};
}

}  // namespace olrank
