#include "olrank/data.h"
#include "core/throw_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/data/data_loader.h"
#include "core/data/dataset.h"
#include "core/data/dataset_file.h"
#include "core/data/doc_table.h"
#include "core/data/letor_stream.h"
#include "core/data/query_weights.h"
#include "core/io/atomic_file.h"
#include "core/math/dcg.h"
#include "core/runtime/execution_context.h"
#include "core/settings/enum_names.h"
#include "core/settings/value.h"

namespace olrank {
namespace {

void require_size(std::span<const float> values, std::int64_t features, std::int64_t docs) {
  if (features >= 1 && std::ssize(values) == docs * features) return;
  throw_error<InvalidArgument>("There are {} feature values for {} grades and {} features: give {}.",
                               values.size(), docs, features, docs * std::max<std::int64_t>(features, 0));
}

void require_queries(std::span<const std::uint8_t> grades, std::span<const std::int64_t> offsets,
                     const std::vector<std::string>& names) {
  const std::int64_t docs = std::ssize(grades);
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != docs)
    throw_error<InvalidArgument>("The offsets of queries must begin with 0 and end with {}.", docs);
  for (std::size_t query = 1; query < offsets.size(); ++query) {
    if (offsets[query] > offsets[query - 1]) continue;
    throw_error<InvalidArgument>("Query {} has no documents: leave it out.", query - 1);
  }
  if (!names.empty() && names.size() + 1 != offsets.size()) {
    throw_error<InvalidArgument>("There are {} names for {} queries.", names.size(), offsets.size() - 1);
  }
}

void require_grades(std::span<const std::uint8_t> grades) {
  for (std::size_t doc = 0; doc < grades.size(); ++doc) {
    if (grades[doc] <= kHighestGrade) continue;
    throw_error<InvalidArgument>("The grade of document {} is {}: it must be 0 to {}.", doc, grades[doc],
                                 kHighestGrade);
  }
}

void require_weights(const std::vector<float>& weights, std::size_t queries) {
  if (!weights.empty() && weights.size() != queries)
    throw_error<InvalidArgument>("There are {} weights for {} queries.", weights.size(), queries);
  for (std::size_t query = 0; query < weights.size(); ++query) {
    if (is_weight(weights[query])) continue;
    throw_error<InvalidArgument>("The weight of query {} is {}: it must be finite and at least 0.", query,
                                 weights[query]);
  }
}

void require_rows(const SparseValues& rows, std::int64_t features, std::int64_t docs) {
  if (features < 1 || features > kMostSparseColumns) {
    throw_error<InvalidArgument>("There are {} columns: give sparse rows 1 to {}.", features,
                                 kMostSparseColumns);
  }
  if (std::ssize(rows.begins) != docs + 1 || rows.begins.front() != 0 ||
      rows.begins.back() != std::ssize(rows.values) || rows.values.size() != rows.columns.size() ||
      !std::is_sorted(rows.begins.begin(), rows.begins.end())) {
    throw_error<InvalidArgument>(
        "The sparse rows of {} documents must have {} begins, which rise from 0 to the number of values, "
        "and a column for each value.",
        docs, docs + 1);
  }
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    std::int64_t last = -1;
    for (std::int64_t at = rows.begins[doc]; at < rows.begins[doc + 1]; ++at) {
      const std::int64_t column = rows.columns[at];
      if (column <= last || column >= features) {
        throw_error<InvalidArgument>(
            "Column {} follows {} in document {}: the columns of a row must rise below {}.", column, last,
            doc, features);
      }
      last = column;
      if (std::isfinite(rows.values[at])) continue;
      throw_error<InvalidArgument>("Feature {} of document {} is not finite.", column + 1, doc);
    }
  }
}

void require_values(std::span<const float> values, std::int64_t features) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    const auto place = static_cast<std::int64_t>(i);
    throw_error<InvalidArgument>("Feature {} of document {} is not finite.", place % features + 1,
                                 place / features);
  }
}

/// Contents with features, and all that dense and sparse ones have alike.
std::shared_ptr<const Dataset> data_of(Dataset::Contents contents, std::shared_ptr<const void> owner,
                                       std::int64_t features, std::span<const std::uint8_t> grades,
                                       std::span<const std::int64_t> offsets,
                                       std::vector<std::string> names, std::vector<float> weights) {
  require_queries(grades, offsets, names);
  require_grades(grades);
  require_weights(weights, offsets.size() - 1);
  contents.memory = std::move(owner);
  contents.features = features;
  contents.grades = grades;
  contents.offsets = offsets;
  contents.weights = unless_all_one(std::move(weights));
  if (names.empty()) {
    for (std::size_t query = 1; query < offsets.size(); ++query) names.push_back(fmt::format("{}", query));
  }
  contents.qids = std::move(names);
  ThreadPool pool(1);
  contents.fingerprint = content_fingerprint(contents, pool);
  return std::make_shared<const Dataset>(std::move(contents));
}

}  // namespace

RankingData RankingData::load(const std::string& source, const std::string& part, std::int64_t fold,
                              int threads) {
  DataSettings settings;
  settings.source = source;
  settings.weights = true;
  ExecutionContext context(threads > 0 ? threads : available_threads());
  return RankingData(std::make_shared<const Dataset>(
      load_part(settings, fold, parse_choice<DataPart>("part", part), context)));
}

RankingData RankingData::of(std::shared_ptr<const void> owner, std::span<const float> values,
                            std::int64_t features, std::span<const std::uint8_t> grades,
                            std::span<const std::int64_t> offsets, std::vector<std::string> names,
                            std::vector<float> weights) {
  require_size(values, features, std::ssize(grades));
  require_values(values, features);
  Dataset::Contents contents;
  contents.values = values;
  return RankingData(data_of(std::move(contents), std::move(owner), features, grades, offsets,
                             std::move(names), std::move(weights)));
}

RankingData RankingData::of(std::shared_ptr<const void> owner, const SparseValues& rows,
                            std::int64_t features, std::span<const std::uint8_t> grades,
                            std::span<const std::int64_t> offsets, std::vector<std::string> names,
                            std::vector<float> weights) {
  require_rows(rows, features, std::ssize(grades));
  Dataset::Contents contents;
  contents.values = rows.values;
  contents.row_begins = rows.begins;
  contents.columns = rows.columns;
  return RankingData(data_of(std::move(contents), std::move(owner), features, grades, offsets,
                             std::move(names), std::move(weights)));
}

std::int64_t RankingData::queries() const {
  return data_->queries();
}
std::int64_t RankingData::docs() const {
  return data_->docs();
}
std::int64_t RankingData::features() const {
  return data_->features();
}
std::span<const float> RankingData::values() const {
  return {data_->all_features().values, static_cast<std::size_t>(docs() * features())};
}
bool RankingData::is_sparse() const {
  return data_->is_sparse();
}
SparseValues RankingData::sparse_values() const {
  const Dataset::Contents& contents = data_->contents();
  return {contents.row_begins, contents.columns, contents.values};
}
std::span<const std::uint8_t> RankingData::grades() const {
  return data_->all_grades();
}
std::span<const std::int64_t> RankingData::offsets() const {
  return data_->offsets();
}
std::span<const float> RankingData::weights() const {
  return data_->contents().weights;
}
std::string_view RankingData::name(std::int64_t query) const {
  return data_->qid(query);
}
std::string RankingData::fingerprint() const {
  return data_->fingerprint().hex();
}

std::string RankingData::bytes() const {
  std::string bytes;
  write_dataset(*data_, {}, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

RankingData RankingData::from_bytes(std::string_view bytes) {
  MappedMemory memory = MappedMemory::anonymous(std::max<std::size_t>(bytes.size(), 1));
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  ThreadPool pool(1);
  return RankingData(std::make_shared<const Dataset>(read_dataset_memory(std::move(memory), "data", pool)));
}

void RankingData::write(const std::filesystem::path& file) const {
  AtomicFile text(file);
  write_letor(*data_, {}, [&](std::string_view piece) { text.write(piece); });
  commit_with_weights(*data_, text, file.string());
}

}  // namespace olrank
