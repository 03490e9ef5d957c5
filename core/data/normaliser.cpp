#include "core/data/normaliser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "core/data/doc_table.h"
#include "core/data/join.h"
#include "core/math/any_cpu.h"
#include "core/math/column_range.h"
#include "core/math/host_device.h"
#include "core/math/normal.h"
#include "core/runtime/log.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::int64_t kBlock = 1024;  // documents whose sums are taken together

/// Signed logarithm: keeps the sign and the order, and squeezes heavy tails on both sides.
double signed_log1p(double x) {
  return std::copysign(log1p_of(std::abs(x)), x);
}

bool is_zscore(Normalisation kind) {
  return kind == Normalisation::kZscore || kind == Normalisation::kLog1pZscore;
}

/// Sums term(row, feature) over documents, for each feature: within blocks of documents in order, then over
/// blocks in order, whichever thread summed one.
template <class Term>
std::vector<double> sums(const Dataset& data, ExecutionContext& context, const Term& term) {
  const std::int64_t features = data.features();
  const std::int64_t blocks = (data.docs() + kBlock - 1) / kBlock;
  std::vector<double> partial(blocks * features, 0.0);
  context.for_blocks(data.docs(), kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    double* const sum = partial.data() + begin / kBlock * features;
    for (std::int64_t doc = begin; doc < end; ++doc) {
      const auto row = data.all_features().doc(doc);
      for (std::int64_t f = 0; f < features; ++f) sum[f] += term(row[f], f);
    }
  });
  std::vector<double> total(features, 0.0);
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::int64_t f = 0; f < features; ++f) {
      total[f] += partial[block * features + f];
    }
  }
  return total;
}

void report_constant(const std::vector<std::int64_t>& constant, std::int64_t features, bool dropped) {
  if (constant.empty()) return;
  constexpr std::size_t kShown = 10;
  std::string list;
  for (std::size_t i = 0; i < std::min(constant.size(), kShown); ++i) {
    list += fmt::format("{}{}", i > 0 ? ", " : "", constant[i] + 1);
  }
  if (constant.size() > kShown) list += ", …";
  log_info("{} of {} features {} constant over the training part and {} {}: {}.", constant.size(), features,
           constant.size() == 1 ? "is" : "are", constant.size() == 1 ? "is" : "are",
           dropped ? "left out" : "kept", list);
}

/// The columns that sparse rows have, rising, and what their values come to in the documents of one query:
/// the zeros that a document does not name included.
struct ColumnScales {
  std::vector<std::int32_t> columns;
  std::vector<float> low;
  std::vector<double> range;
  std::vector<std::int32_t> shifted;  // those whose zeros become another value

  explicit ColumnScales(FeatureMatrix raw) {
    const std::span entries(raw.columns + raw.row_begins[0],
                            static_cast<std::size_t>(raw.row_begins[raw.docs] - raw.row_begins[0]));
    columns.assign(entries.begin(), entries.end());
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    low.assign(columns.size(), kInfinity);
    std::vector<float> high(columns.size(), -kInfinity);
    std::vector<std::int64_t> count(columns.size());
    for (std::int64_t doc = 0; doc < raw.docs; ++doc) {
      const SparseRow row = raw.sparse_doc(doc);
      std::size_t place = 0;
      for (std::size_t i = 0; i < row.columns.size(); ++i) {
        place = place_of(row.columns[i], place);
        low[place] = std::min(low[place], row.values[i]);
        high[place] = std::max(high[place], row.values[i]);
        ++count[place];
      }
    }
    range.resize(columns.size());
    for (std::size_t place = 0; place < columns.size(); ++place) {
      if (count[place] < raw.docs) {
        low[place] = std::min(low[place], 0.0F);
        high[place] = std::max(high[place], 0.0F);
        if (low[place] < 0.0F) shifted.push_back(columns[place]);
      }
      range[place] = column_range(low[place], high[place]).width;
    }
  }

  std::size_t place_of(std::int32_t column, std::size_t from) const {
    return static_cast<std::size_t>(
        std::lower_bound(columns.begin() + static_cast<std::ptrdiff_t>(from), columns.end(), column) -
        columns.begin());
  }
};

/// query_minmax() of sparse documents.
void append_minmax(FeatureMatrix raw, SparseRows& rows) {
  const ColumnScales scales(raw);
  const auto append = [&](std::int32_t column, float value, std::size_t place) {
    const float input = share_of_range(value, scales.low[place], scales.range[place]);
    if (input != 0.0F) rows.append(column, input);
  };
  for (std::int64_t doc = 0; doc < raw.docs; ++doc) {
    const SparseRow row = raw.sparse_doc(doc);
    std::size_t place = 0;
    auto zero = scales.shifted.begin();
    const auto append_zeros_before = [&](std::int64_t column) {
      for (; zero != scales.shifted.end() && *zero < column; ++zero)
        append(*zero, 0.0F, scales.place_of(*zero, 0));
    };
    for (std::size_t i = 0; i < row.columns.size(); ++i) {
      append_zeros_before(row.columns[i]);
      if (zero != scales.shifted.end() && *zero == row.columns[i]) ++zero;
      place = scales.place_of(row.columns[i], place);
      append(row.columns[i], row.values[i], place);
    }
    append_zeros_before(std::int64_t{kMostSparseColumns} + 1);
    rows.end_row();
  }
}

/// Zeros that scaling made other numbers may multiply the memory of the data by a few, not by their
/// columns.
void refuse_filled(std::int64_t inputs, std::int64_t given, std::string_view query) {
  constexpr std::int64_t kMostTimes = 4;
  constexpr std::int64_t kFew = 65'536;
  if (inputs <= kMostTimes * given + kFew) return;
  throw_error<InvalidArgument>(
      "The features of query {} are negative in columns that other documents lack, so that normalise = "
      "\"query-minmax\" would make {} values of {}: use normalise = \"none\".",
      query, inputs, given);
}

/// Leaves out the columns that are not kept, of which there is a rising list.
SparseRows kept_columns(FeatureMatrix raw, std::span<const std::int64_t> kept) {
  SparseRows rows;
  for (std::int64_t doc = 0; doc < raw.docs; ++doc) {
    const SparseRow row = raw.sparse_doc(doc);
    for (std::size_t i = 0; i < row.columns.size(); ++i) {
      const auto found = std::lower_bound(kept.begin(), kept.end(), row.columns[i]);
      if (found != kept.end() && *found == row.columns[i])
        rows.append(static_cast<std::int32_t>(found - kept.begin()), row.values[i]);
    }
    rows.end_row();
  }
  return rows;
}

std::vector<std::int64_t> constant_sparse_features(const Dataset& data) {
  const FeatureMatrix rows = data.all_rows();
  const auto features = static_cast<std::size_t>(data.features());
  std::vector<std::int64_t> count(features);
  std::vector<float> first(features);
  std::vector<bool> differs(features);
  for (std::int64_t doc = 0; doc < rows.docs; ++doc) {
    const SparseRow row = rows.sparse_doc(doc);
    for (std::size_t i = 0; i < row.columns.size(); ++i) {
      const std::int32_t f = row.columns[i];
      if (count[f]++ == 0) first[f] = row.values[i];
      if (row.values[i] != first[f]) differs[f] = true;
    }
  }
  std::vector<std::int64_t> constant;
  for (std::size_t f = 0; f < features; ++f) {
    const bool zero = count[f] == 0 || first[f] == 0.0F;
    if (!differs[f] && (zero || count[f] == rows.docs)) constant.push_back(static_cast<std::int64_t>(f));
  }
  return constant;
}

/// Whether one is beyond ±limit or not a number.
OLRANK_VECTOR_CLONES
bool any_beyond(const float* values, std::int64_t count, float limit) {
  int beyond = 0;
  for (std::int64_t i = 0; i < count; ++i) beyond |= std::abs(values[i]) <= limit ? 0 : 1;
  return beyond != 0;
}

OLRANK_VECTOR_CLONES
void scale_columns(float* values, std::int64_t docs, std::int64_t columns, const double* low,
                   const double* width) {
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    float* row = values + doc * columns;
    for (std::int64_t c = 0; c < columns; ++c) row[c] = share_of_range(row[c], low[c], width[c]);
  }
}

/// The smallest and the largest value of each column.
OLRANK_VECTOR_CLONES
void column_bounds(const float* values, std::int64_t docs, std::int64_t columns, float* low, float* high) {
  std::copy_n(values, columns, low);
  std::copy_n(values, columns, high);
  for (std::int64_t doc = 1; doc < docs; ++doc) {
    const float* row = values + doc * columns;
    for (std::int64_t c = 0; c < columns; ++c) {
      low[c] = row[c] < low[c] ? row[c] : low[c];
      high[c] = high[c] < row[c] ? row[c] : high[c];
    }
  }
}

/// Scales each column of a query to [0, 1]; a constant one becomes 0.
void query_minmax(float* values, std::int64_t docs, std::int64_t columns) {
  if (docs == 0) return;
  const auto size = static_cast<std::size_t>(columns);
  std::vector<float> bounds(2 * size);
  column_bounds(values, docs, columns, bounds.data(), bounds.data() + size);
  std::vector<double> low_and_width(2 * size);
  for (std::size_t c = 0; c < size; ++c) {
    const ColumnRange range = column_range(bounds[c], bounds[size + c]);
    low_and_width[c] = range.low;
    low_and_width[size + c] = range.width;
  }
  scale_columns(values, docs, columns, low_and_width.data(), low_and_width.data() + size);
}

/// Appends cos(kπx), k = 2, …, of its values x to every document: [docs × columns] becomes
/// [docs × columns (1 + terms)], the terms of one k beside each other, and the products of some pairs.
OLRANK_VECTOR_CLONES
void append_terms(const float* values, std::int64_t docs, std::int64_t columns, std::int64_t terms,
                  std::span<const InputPair> products, float* inputs) {
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const float* row = values + doc * columns;
    inputs = std::copy_n(row, columns, inputs);
    for (std::int64_t c = 0; c < columns; ++c) {
      const HigherCosines higher = higher_cosines(cosine_of_half_turns(row[c]));
      for (std::int64_t k = 0; k < terms; ++k) inputs[k * columns + c] = static_cast<float>(higher.of[k]);
    }
    inputs += terms * columns;
    for (const InputPair pair : products)
      *inputs++ = static_cast<float>(centred_product(row[pair.first], row[pair.second]));
  }
}

}  // namespace

std::vector<std::int64_t> constant_features(const Dataset& data, ExecutionContext& context) {
  if (data.is_sparse()) return constant_sparse_features(data);
  const auto first = data.all_features().doc(0);
  const std::vector<double> others =
      sums(data, context, [&](float value, std::int64_t f) { return value != first[f] ? 1.0 : 0.0; });
  std::vector<std::int64_t> constant;
  for (std::int64_t f = 0; f < data.features(); ++f) {
    if (others[f] == 0.0) constant.push_back(f);
  }
  return constant;
}

FittedNormaliser fit_normaliser(Normalisation kind, const Dataset& train, bool drop_constant,
                                ExecutionContext& context) {
  FittedNormaliser fitted;
  fitted.kind = kind;
  fitted.features = train.features();
  const std::vector<std::int64_t> constant = constant_features(train, context);
  report_constant(constant, train.features(), drop_constant);
  if (drop_constant && !constant.empty()) {
    if (std::ssize(constant) == train.features()) {
      throw Error("Every feature is constant over the training part, so drop_constant leaves none.");
    }
    for (std::int64_t f = 0; f < train.features(); ++f) {
      if (!std::binary_search(constant.begin(), constant.end(), f)) fitted.kept.push_back(f);
    }
  }
  if (train.is_sparse()) fitted.require_sparse_inputs();
  if (!is_zscore(kind)) return fitted;

  const bool log = kind == Normalisation::kLog1pZscore;
  const auto seen = [log](float value) { return log ? signed_log1p(value) : double{value}; };
  const auto docs = static_cast<double>(train.docs());
  fitted.means = sums(train, context, [&](float value, std::int64_t) { return seen(value); });
  for (double& mean : fitted.means) mean /= docs;
  fitted.scales = sums(train, context, [&](float value, std::int64_t f) {
    const double distance = seen(value) - fitted.means[f];
    return distance * distance;
  });
  for (double& scale : fitted.scales) scale = scale > 0.0 ? 1.0 / std::sqrt(scale / docs) : 0.0;
  // The mean of equal values need not be that value to the last bit.
  for (const std::int64_t f : constant) fitted.scales[f] = 0.0;
  return fitted;
}

FittedNormaliser FittedNormaliser::without_terms() const {
  FittedNormaliser of_data = *this;
  of_data.cosines = 0;
  of_data.products.clear();
  return of_data;
}

void FittedNormaliser::apply(FeatureMatrix raw, float* inputs) const {
  const std::int64_t columns = this->columns();
  // With cosines, a document's inputs may lie where raw values of the next one are still to be read.
  std::vector<float> scaled(cosines > 0 ? raw.docs * columns : 0);
  float* const out = cosines > 0 ? scaled.data() : inputs;
  if (!is_zscore(kind) && kept.empty()) {
    std::memmove(out, raw.values, static_cast<std::size_t>(raw.docs * columns) * sizeof(float));
  } else {
    select(raw, out);
  }
  if (scales_queries()) query_minmax(out, raw.docs, columns);
  if (cosines > 0) append_terms(out, raw.docs, columns, cosines, products, inputs);
}

bool FittedNormaliser::keeps_zeros() const {
  return !is_zscore(kind) && cosines == 0;
}

void FittedNormaliser::require_sparse_inputs() const {
  if (keeps_zeros()) return;
  throw_error<InvalidArgument>(
      "The data are sparse, and {} would make each of their zeros another number: use normalise = "
      "\"query-minmax\" or \"none\"{}.",
      cosines > 0 ? "an additive model" : fmt::format("normalise = \"{}\"", name_of(kind)),
      cosines > 0 ? " with another model" : "");
}

void FittedNormaliser::apply(FeatureMatrix raw, SparseRows& rows) const {
  require_sparse_inputs();
  SparseRows selected;
  if (!kept.empty()) {
    selected = kept_columns(raw, kept);
    raw = selected.matrix(columns());
  }
  if (scales_queries()) {
    append_minmax(raw, rows);
  } else {
    rows.append_rows(raw);
  }
}

/// Blocks of queries are computed side by side and appended in order.
Dataset FittedNormaliser::apply_sparse(const Dataset& raw, ExecutionContext& context) const {
  constexpr std::int64_t kQueries = 8;
  constexpr std::int64_t kBlocks = 64;
  require_sparse_inputs();
  if (!scales_queries()) require_good_entries(raw);
  if (!scales_queries() && kept.empty()) return raw;
  SparseRows rows;
  rows.reserve(raw.docs(), std::ssize(raw.contents().values));
  const auto begins = raw.contents().row_begins;
  for (std::int64_t first = 0; first < raw.queries(); first += kQueries * kBlocks) {
    const std::int64_t count = std::min(kQueries * kBlocks, raw.queries() - first);
    std::vector<SparseRows> blocks((count + kQueries - 1) / kQueries);
    context.for_blocks(count, kQueries, [&](std::int64_t begin, std::int64_t end, int) {
      SparseRows& block = blocks[begin / kQueries];
      std::int64_t given = 0;
      for (std::int64_t query = begin; query < end; ++query) {
        const FeatureMatrix docs = raw.rows_of(first + query);
        given += docs.row_begins[docs.docs] - docs.row_begins[0];
        apply(docs, block);
        refuse_filled(std::ssize(block.values), given, raw.qid(first + query));
      }
    });
    for (SparseRows& block : blocks) {
      const SparseRows done = std::move(block);
      rows.append_rows(done);
    }
    const std::int64_t end = first + count;
    refuse_filled(std::ssize(rows.values), begins[raw.offset(end)] - begins[0], raw.qid(end - 1));
  }
  return with_features(raw, {columns(), {}, std::move(rows)}, context.pool());
}

void FittedNormaliser::require_good_entries(const Dataset& raw) const {
  const FeatureMatrix all = raw.all_rows();
  for (std::int64_t doc = 0; doc < all.docs; ++doc) {
    const SparseRow row = all.sparse_doc(doc);
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      const bool used = kept.empty() || std::binary_search(kept.begin(), kept.end(), row.columns[i]);
      if (used && !(std::abs(row.values[i]) <= kLargestInput))
        refuse(raw, BadInput{doc, row.columns[i], row.values[i]});
    }
  }
}

void FittedNormaliser::select(FeatureMatrix raw, float* inputs) const {
  const std::int64_t columns = this->columns();
  const bool log = kind == Normalisation::kLog1pZscore;
  // Left to right and top to bottom, so that writing over the raw values never overtakes reading them.
  float* out = inputs;
  for (std::int64_t doc = 0; doc < raw.docs; ++doc) {
    const float* row = raw.values + doc * raw.features;
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t f = kept.empty() ? c : kept[c];
      const double value = log ? signed_log1p(row[f]) : double{row[f]};
      *out++ = is_zscore(kind) ? static_cast<float>((value - means[f]) * scales[f]) : row[f];
    }
  }
}

std::optional<FittedNormaliser::BadInput> FittedNormaliser::find_bad_input(const float* inputs,
                                                                           std::int64_t docs) const {
  const std::int64_t columns = this->inputs();
  if (kind == Normalisation::kQueryMinmax) return std::nullopt;  // inputs are in [0, 1]
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const float* row = inputs + doc * columns;
    if (!any_beyond(row, columns, kLargestInput)) continue;
    std::int64_t c = 0;
    while (std::abs(row[c]) <= kLargestInput) ++c;
    const std::int64_t column = c % this->columns();
    return BadInput{doc, kept.empty() ? column : kept[column], row[c]};
  }
  return std::nullopt;
}

void FittedNormaliser::refuse(const Dataset& raw, const std::optional<BadInput>& bad) {
  if (!bad) return;
  std::int64_t query = 0;
  while (raw.offset(query + 1) <= bad->doc) ++query;
  throw_error<InvalidArgument>(
      "{}Feature {} of document {} of query {} gives the input {:g}, beyond the limit of ±{:g}: scores "
      "would overflow. Use normalise = \"query-minmax\", or correct the value.",
      raw.contents().source.empty() ? "" : raw.contents().source + ": ", bad->feature + 1,
      bad->doc - raw.offset(query) + 1, raw.qid(query), bad->value, kLargestInput);
}

Dataset FittedNormaliser::apply(const Dataset& raw, ExecutionContext& context) const {
  if (raw.features() != features) {
    throw_error<InvalidArgument>("The normalisation was fitted to {} features, but the data has {}.",
                                 features, raw.features());
  }
  if (cosines > 0) without_terms().apply(raw, context);  // refuses what the scaling would hide
  if (raw.is_sparse()) return apply_sparse(raw, context);
  if (kind == Normalisation::kNone && kept.empty() && cosines == 0) {
    refuse(raw, find_bad_input(raw.all_features().values, raw.docs()));
    return raw;
  }
  const std::int64_t columns = inputs();
  MappedMemory matrix = feature_memory(raw.contents().store.get(), raw.docs(), columns);
  float* const values = matrix.as<float>().data();
  context.for_blocks(raw.queries(), 8, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t query = begin; query < end; ++query) {
      apply(raw.features_of(query), values + raw.offset(query) * columns);
    }
  });
  refuse(raw, find_bad_input(values, raw.docs()));
  return with_features(raw, {columns, std::move(matrix)}, context.pool());
}

}  // namespace olrank
