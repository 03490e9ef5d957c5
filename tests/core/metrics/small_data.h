#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/random/rng_stream.h"

namespace olrank {

struct SmallQuery {
  std::string qid;
  std::vector<std::uint8_t> grades;
  std::vector<std::string> names;  // empty: documents without names
};

/// A data set of grades alone, without features.
inline Dataset make_dataset(const std::vector<SmallQuery>& queries) {
  struct Memory {
    std::vector<std::uint8_t> grades;
    std::vector<std::int64_t> offsets{0};
    std::string name_text;
    std::vector<std::uint64_t> name_ends;
  };
  auto memory = std::make_shared<Memory>();
  Dataset::Contents contents;
  bool named = false;
  for (const SmallQuery& query : queries) {
    contents.qids.push_back(query.qid);
    memory->grades.insert(memory->grades.end(), query.grades.begin(), query.grades.end());
    memory->offsets.push_back(std::ssize(memory->grades));
    std::vector<std::string> names = query.names;
    named = named || !names.empty();
    names.resize(query.grades.size());
    for (const std::string& name : names) {
      memory->name_text += name;
      memory->name_ends.push_back(memory->name_text.size());
    }
  }
  if (named) contents.doc_names = {memory->name_text, memory->name_ends};
  contents.grades = memory->grades;
  contents.offsets = memory->offsets;
  contents.memory = memory;
  return Dataset(std::move(contents));
}

inline RngStream test_coins(std::uint32_t number) {
  return RngStream(make_key({.seed = 4, .purpose = Purpose::kProbe}), number);
}

/// Queries of 0 to 40 documents, among them empty ones, single ones and ones of a single grade.
inline Dataset random_dataset(RngStream& coins, std::uint32_t queries, std::uint32_t grades) {
  std::vector<SmallQuery> made(queries);
  for (std::uint32_t query = 0; query < queries; ++query) {
    made[query].qid = "q" + std::to_string(query);
    const std::uint32_t kind = coins.index(5);
    const std::uint32_t docs = kind == 0 ? coins.index(3) : coins.index(41);
    const std::uint32_t one_grade = coins.index(grades);
    for (std::uint32_t doc = 0; doc < docs; ++doc) {
      const std::uint32_t grade = kind == 1 ? one_grade : kind == 2 ? 0 : coins.index(grades);
      made[query].grades.push_back(static_cast<std::uint8_t>(grade));
    }
  }
  return make_dataset(made);
}

/// Scores of few values when `ties`, so that many documents share one.
inline std::vector<double> random_scores(RngStream& coins, std::int64_t docs, bool ties) {
  std::vector<double> scores(docs);
  for (double& score : scores) score = ties ? static_cast<double>(coins.index(5)) - 2.0 : coins.normal();
  return scores;
}

}  // namespace olrank
