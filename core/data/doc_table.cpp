#include "core/data/doc_table.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string_view>
#include <unordered_map>

namespace olrank {
namespace {

/// What a Dataset's spans point into.
struct OwnedContents {
  MappedMemory values;
  std::vector<std::uint8_t> grades;
  std::vector<std::int64_t> offsets;
  std::string name_text;
  std::vector<std::uint64_t> name_ends;
};

/// Row j becomes what row source[j] was. Walks each cycle of the permutation once, with one row aside.
void permute_rows(float* values, std::size_t features, std::vector<std::int64_t> source) {
  std::vector<float> aside(features);
  const auto row = [&](std::int64_t index) { return values + static_cast<std::size_t>(index) * features; };
  const std::size_t bytes = features * sizeof(float);
  for (std::int64_t start = 0; start < static_cast<std::int64_t>(source.size()); ++start) {
    if (source[static_cast<std::size_t>(start)] == start) continue;
    std::memcpy(aside.data(), row(start), bytes);
    std::int64_t to = start;
    for (;;) {
      const std::int64_t from = std::exchange(source[static_cast<std::size_t>(to)], to);
      if (from == start) break;
      std::memcpy(row(to), row(from), bytes);
      to = from;
    }
    std::memcpy(row(to), aside.data(), bytes);
  }
}

void permute(DocTable& table, const std::vector<std::int64_t>& source) {
  std::vector<std::uint8_t> grades(source.size());
  for (std::size_t j = 0; j < source.size(); ++j)
    grades[j] = table.grades[static_cast<std::size_t>(source[j])];
  table.grades.swap(grades);
  if (!table.name_ends.empty()) {
    const PackedTexts names{table.name_text, table.name_ends};
    std::string text;
    text.reserve(table.name_text.size());
    std::vector<std::uint64_t> ends(source.size());
    for (std::size_t j = 0; j < source.size(); ++j) {
      text += names[static_cast<std::size_t>(source[j])];
      ends[j] = text.size();
    }
    table.name_text.swap(text);
    table.name_ends.swap(ends);
  }
  permute_rows(table.values.as<float>().data(), static_cast<std::size_t>(table.features), source);
}

}  // namespace

Dataset gathered(DocTable table, ThreadPool& pool) {
  Dataset::Contents contents;
  // The query that each run belongs to, by first appearance.
  std::unordered_map<std::string, std::size_t> number_of;
  std::vector<std::size_t> query_of_run;
  std::vector<std::int64_t> docs_of;
  query_of_run.reserve(table.query_runs.size());
  bool side_by_side = true;
  for (QueryRun& run : table.query_runs) {
    const auto [found, is_new] = number_of.try_emplace(run.qid, docs_of.size());
    if (is_new) {
      contents.qids.push_back(std::move(run.qid));
      docs_of.push_back(0);
    } else if (found->second + 1 != docs_of.size()) {
      side_by_side = false;
    }
    docs_of[found->second] += run.docs;
    query_of_run.push_back(found->second);
  }
  auto owned = std::make_shared<OwnedContents>();
  owned->offsets.assign(docs_of.size() + 1, 0);
  std::partial_sum(docs_of.begin(), docs_of.end(), owned->offsets.begin() + 1);

  if (!side_by_side) {
    std::vector<std::int64_t> next(owned->offsets.begin(), owned->offsets.end() - 1);
    std::vector<std::int64_t> source(static_cast<std::size_t>(table.docs()));
    std::int64_t doc = 0;
    for (std::size_t run = 0; run < query_of_run.size(); ++run) {
      for (std::int64_t i = 0; i < table.query_runs[run].docs; ++i) {
        source[static_cast<std::size_t>(next[query_of_run[run]]++)] = doc++;
      }
    }
    permute(table, source);
  }

  owned->values = std::move(table.values);
  owned->grades = std::move(table.grades);
  owned->name_text = std::move(table.name_text);
  owned->name_ends = std::move(table.name_ends);
  contents.values = owned->values.as<float>();
  contents.grades = owned->grades;
  contents.offsets = owned->offsets;
  contents.doc_names = {owned->name_text, owned->name_ends};
  contents.features = table.features;
  contents.memory = std::move(owned);
  contents.fingerprint = content_fingerprint(contents, pool);
  return Dataset(std::move(contents));
}

Dataset with_values(const Dataset& data, MappedMemory values, std::int64_t features, ThreadPool& pool) {
  Dataset::Contents contents = data.contents();
  auto owned = std::make_shared<OwnedContents>();
  owned->values = std::move(values);
  owned->grades.assign(contents.grades.begin(), contents.grades.end());
  owned->offsets.assign(contents.offsets.begin(), contents.offsets.end());
  owned->name_text.assign(contents.doc_names.text.begin(), contents.doc_names.text.end());
  owned->name_ends.assign(contents.doc_names.ends.begin(), contents.doc_names.ends.end());
  contents.values = owned->values.as<float>();
  contents.grades = owned->grades;
  contents.offsets = owned->offsets;
  contents.doc_names = {owned->name_text, owned->name_ends};
  contents.features = features;
  contents.memory = std::move(owned);
  contents.fingerprint = content_fingerprint(contents, pool);
  return Dataset(std::move(contents));
}

Fingerprint content_fingerprint(const Dataset::Contents& contents, ThreadPool& pool,
                                const std::function<void(std::span<const float>)>& look_at) {
  constexpr std::size_t kBlock = std::size_t{1} << 17;  // values: half a megabyte
  const std::size_t blocks = (contents.values.size() + kBlock - 1) / kBlock;
  std::vector<Fingerprint> of_block(blocks);
  pool.run(static_cast<std::int64_t>(blocks), [&](std::int64_t number, int) {
    const auto block = static_cast<std::size_t>(number);
    const auto values = contents.values.subspan(block * kBlock)
                            .first(std::min(kBlock, contents.values.size() - block * kBlock));
    of_block[block] = fingerprint_of({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
    if (look_at) look_at(values);
  });

  Fingerprinter all;
  const auto add_number = [&](std::uint64_t number) { all.add(&number, sizeof number); };
  all.add("olrank dataset 1");
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
  for (const Fingerprint& block : of_block) {
    add_number(block.high);
    add_number(block.low);
  }
  return all.value();
}

}  // namespace olrank
