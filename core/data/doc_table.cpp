#include "core/data/doc_table.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "core/data/query_weights.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

/// A Dataset's spans point into these contents.
struct OwnedContents {
  OwnedFeatures features;
  std::vector<std::uint8_t> grades;
  std::vector<std::int64_t> offsets;
  std::string name_text;
  std::vector<std::uint64_t> name_ends;
};

template <class Index>
SparseRows permuted(const SparseRows& rows, const std::vector<Index>& source) {
  SparseRows moved;
  moved.reserve(std::ssize(source), std::ssize(rows.values));
  const FeatureMatrix all = rows.matrix(0);
  for (const Index from : source) {
    const auto row = static_cast<std::int64_t>(from);
    moved.append_rows(all.part(row, row + 1));
  }
  return moved;
}

/// Row j becomes what row source[j] was. Walks each cycle of the permutation once, with one row aside.
template <class Index>
void permute_rows(float* values, std::size_t features, std::vector<Index> source) {
  std::vector<float> aside(features);
  const auto row = [&](std::size_t index) { return values + index * features; };
  const std::size_t bytes = features * sizeof(float);
  for (std::size_t start = 0; start < source.size(); ++start) {
    if (source[start] == start) continue;
    std::memcpy(aside.data(), row(start), bytes);
    std::size_t to = start;
    for (;;) {
      const std::size_t from = std::exchange(source[to], static_cast<Index>(to));
      if (from == start) break;
      std::memcpy(row(to), row(from), bytes);
      to = from;
    }
    std::memcpy(row(to), aside.data(), bytes);
  }
}

/// Old rows are let go as soon as there are new ones: beside the matrix little may be alive at any time.
template <class Index>
void gather_docs(DocTable& table, const std::vector<std::int64_t>& offsets) {
  std::vector<Index> source(table.grades.size());
  std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1);
  std::size_t doc = 0;
  for (const QueryRun& run : table.query_runs) {
    for (std::uint32_t i = 0; i < run.docs; ++i) {
      source[next[run.query]++] = static_cast<Index>(doc++);
    }
  }
  std::vector<QueryRun>().swap(table.query_runs);
  {
    std::vector<std::uint8_t> grades(source.size());
    for (std::size_t j = 0; j < source.size(); ++j) grades[j] = table.grades[source[j]];
    table.grades.swap(grades);
  }
  if (!table.name_ends.empty()) {
    {
      const PackedTexts names{table.name_text, table.name_ends};
      std::string text;
      text.reserve(table.name_text.size());
      for (const Index from : source) text += names[from];
      table.name_text.swap(text);
    }
    std::vector<std::uint64_t> ends(source.size());
    std::uint64_t end = 0;
    for (std::size_t j = 0; j < source.size(); ++j) {
      const Index from = source[j];
      ends[j] = end += table.name_ends[from] - (from == 0 ? 0 : table.name_ends[from - 1]);
    }
    table.name_ends.swap(ends);
  }
  if (table.rows) {
    table.rows = permuted(*table.rows, source);
    return;
  }
  permute_rows(table.values.as<float>().data(), static_cast<std::size_t>(table.features),
               std::move(source));
}

void set_features(OwnedFeatures features, OwnedContents& owned, Dataset::Contents& contents) {
  owned.features = std::move(features);
  contents.features = owned.features.features;
  contents.values = owned.features.values.as<float>();
  contents.row_begins = {};
  contents.columns = {};
  if (!owned.features.rows) return;
  contents.values = owned.features.rows->values;
  contents.row_begins = owned.features.rows->begins;
  contents.columns = owned.features.rows->columns;
}

/// The grades, queries and names of a data set in memory of their own.
std::shared_ptr<OwnedContents> copy_sides(Dataset::Contents& contents) {
  auto owned = std::make_shared<OwnedContents>();
  owned->grades.assign(contents.grades.begin(), contents.grades.end());
  owned->offsets.assign(contents.offsets.begin(), contents.offsets.end());
  owned->name_text.assign(contents.doc_names.text.begin(), contents.doc_names.text.end());
  owned->name_ends.assign(contents.doc_names.ends.begin(), contents.doc_names.ends.end());
  contents.grades = owned->grades;
  contents.offsets = owned->offsets;
  contents.doc_names = {owned->name_text, owned->name_ends};
  return owned;
}

}  // namespace

void append_run(std::vector<QueryRun>& runs, QueryRun run) {
  std::uint32_t docs = 0;
  if (!runs.empty() && runs.back().query == run.query &&
      !__builtin_add_overflow(runs.back().docs, run.docs, &docs)) {
    runs.back().docs = docs;
  } else {
    runs.push_back(run);
  }
}

std::uint32_t QueryNumbers::number_of(std::string_view name) {
  const auto [found, is_new] =
      numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
  if (is_new) names_.emplace_back(name);
  return found->second;
}

Dataset gathered(DocTable table, ThreadPool& pool) {
  auto owned = std::make_shared<OwnedContents>();
  owned->offsets.assign(table.qids.size() + 1, 0);
  bool side_by_side = true;
  std::uint32_t latest = 0;
  for (const QueryRun& run : table.query_runs) {
    owned->offsets[run.query + 1] += run.docs;
    side_by_side = side_by_side && run.query >= latest;
    latest = run.query;
  }
  std::partial_sum(owned->offsets.begin(), owned->offsets.end(), owned->offsets.begin());
  if (!side_by_side) {
    if (table.grades.size() <= std::numeric_limits<std::uint32_t>::max()) {
      gather_docs<std::uint32_t>(table, owned->offsets);
    } else {
      gather_docs<std::uint64_t>(table, owned->offsets);
    }
  }
  owned->grades = std::move(table.grades);
  owned->name_text = std::move(table.name_text);
  owned->name_ends = std::move(table.name_ends);
  Dataset::Contents contents;
  contents.qids = std::move(table.qids);
  contents.weights = unless_all_one(std::move(table.weights));
  contents.grades = owned->grades;
  contents.offsets = owned->offsets;
  contents.doc_names = {owned->name_text, owned->name_ends};
  set_features(std::move(table), *owned, contents);
  contents.reordered = !side_by_side;
  contents.memory = std::move(owned);
  contents.fingerprint = content_fingerprint(contents, pool);
  return Dataset(std::move(contents));
}

Dataset with_features(const Dataset& data, OwnedFeatures features, ThreadPool& pool) {
  Dataset::Contents contents = data.contents();
  auto owned = copy_sides(contents);
  set_features(std::move(features), *owned, contents);
  contents.memory = std::move(owned);
  contents.fingerprint = content_fingerprint(contents, pool);
  return Dataset(std::move(contents));
}

Fingerprint content_fingerprint(const Dataset::Contents& contents, ThreadPool& pool,
                                const std::function<void(std::span<const float>)>& look_at) {
  constexpr std::size_t kBlock = std::size_t{1} << 19;  // bytes
  const auto features = std::as_bytes(contents.values);
  const std::size_t blocks = (features.size() + kBlock - 1) / kBlock;
  std::vector<Fingerprint> of_block(blocks);
  pool.run(static_cast<std::int64_t>(blocks), [&](std::int64_t number, int) {
    const auto block = static_cast<std::size_t>(number);
    const auto part =
        features.subspan(block * kBlock).first(std::min(kBlock, features.size() - block * kBlock));
    const auto* const bytes = reinterpret_cast<const char*>(part.data());
    of_block[block] = fingerprint_of({bytes, part.size()});
    if (look_at) look_at({reinterpret_cast<const float*>(bytes), part.size() / sizeof(float)});
  });

  Fingerprinter all;
  const auto add_number = [&](std::uint64_t number) { all.add(&number, sizeof number); };
  all.add(contents.row_begins.empty() ? "olrank dataset 1" : "olrank sparse dataset 1");
  add_number(contents.grades.size());
  add_number(static_cast<std::uint64_t>(contents.features));
  all.add(contents.grades);
  for (const std::string& qid : contents.qids) {
    add_number(qid.size());
    all.add(qid);
  }
  all.add(contents.offsets);
  add_number(contents.doc_names.size());
  all.add(contents.doc_names.ends);
  all.add(contents.doc_names.text);
  if (!contents.row_begins.empty()) {
    all.add(contents.row_begins);
    all.add(contents.columns);
  }
  for (const Fingerprint& block : of_block) {
    add_number(block.high);
    add_number(block.low);
  }
  if (!contents.weights.empty()) {
    all.add("weights");
    all.add(std::span<const float>(contents.weights));
  }
  return all.value();
}

void SparseRows::reserve(std::int64_t docs, std::int64_t nonzeros) {
  begins.reserve(docs + 1);
  columns.reserve(nonzeros);
  values.reserve(nonzeros);
}

void SparseRows::append_rows(FeatureMatrix docs) {
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    if (docs.is_sparse()) {
      const SparseRow row = docs.sparse_doc(doc);
      columns.insert(columns.end(), row.columns.begin(), row.columns.end());
      values.insert(values.end(), row.values.begin(), row.values.end());
    } else {
      const std::span<const float> row = docs.doc(doc);
      for (std::size_t column = 0; column < row.size(); ++column) {
        if (row[column] != 0.0F) append(static_cast<std::int32_t>(column), row[column]);
      }
    }
    end_row();
  }
}

void SparseRows::truncate(std::int64_t docs) {
  begins.resize(docs + 1);
  columns.resize(begins.back());
  values.resize(begins.back());
}

void write_rows(FeatureMatrix docs, float* dense) {
  for (std::int64_t doc = 0; doc < docs.docs; ++doc, dense += docs.features) {
    const SparseRow row = docs.sparse_doc(doc);
    for (std::size_t i = 0; i < row.columns.size(); ++i) dense[row.columns[i]] = row.values[i];
  }
}

FeatureMatrix with_zeros(FeatureMatrix docs, std::vector<float>& values) {
  if (!docs.is_sparse()) return docs;
  values.assign(docs.docs * docs.features, 0.0F);
  write_rows(docs, values.data());
  return {values.data(), docs.docs, docs.features};
}

Dataset as_sparse(const Dataset& data, ThreadPool& pool) {
  if (data.is_sparse()) return data;
  if (data.features() > kMostSparseColumns) {
    throw_error<InvalidArgument>("Sparse data may have {} columns at most, not {}.", kMostSparseColumns,
                                 data.features());
  }
  SparseRows rows;
  rows.append_rows(data.all_rows());
  return with_features(data, {data.features(), {}, std::move(rows)}, pool);
}

}  // namespace olrank
