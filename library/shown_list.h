#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/device/device_network.h"
#include "core/device/visible_gpus.h"
#include "core/feedback/preference_pairs.h"
#include "core/io/fingerprint.h"
#include "core/online/online_ranker.h"
#include "olrank/ranker.h"

namespace olrank {

/// The query that a list was made for, as its ranker learns from it.
struct ShownList::Query {
  std::uint64_t owner = 0;  // the number of the ranker that made the list; 0: the list comes from bytes
  Fingerprint recipe;       // of that ranker
  std::uint32_t round = 0;
  std::string name;
  std::vector<float> inputs;  // [V × d], normalised; of documents on a GPU those rows that were asked for
  std::int64_t docs = 0;
  std::int64_t width = 0;                   // d
  std::shared_ptr<const DeviceDocs> there;  // where the documents are on a GPU
  bool answered = false;

  FeatureMatrix matrix() const {
    FeatureMatrix all{inputs.data(), docs, width};
    all.on_device = there.get();
    return all;
  }
  /// Documents are named by their content; queries without a name are not remembered.
  void give_names() {
    numbers.clear();
    for (std::int64_t doc = 0; doc < docs; ++doc) numbers.push_back(doc_number(name, matrix().doc(doc)));
    identity = {name.empty() ? -1 : name_number(name), numbers};
  }
  QueryDocs query_docs() const {
    QueryDocs query{round, 0, matrix(), numbers};
    query.identity = &identity;
    return query;
  }
  /// Brings these documents from a GPU to the host and names them. The others have no name.
  void bring(std::span<const std::int32_t> rows) {
    if (there == nullptr) return;
    inputs.resize(docs * width);
    there->copy_rows(rows, inputs.data());
    numbers.assign(docs, -1);
    for (const std::int32_t row : rows) numbers[row] = doc_number(name, matrix().doc(row));
    identity = {name.empty() ? -1 : name_number(name), numbers};
  }
  std::vector<float> all_inputs() const {
    if (there == nullptr) return inputs;
    const CallersGpu kept(true);
    std::vector<float> all(docs * width);
    std::vector<std::int32_t> rows(docs);
    std::iota(rows.begin(), rows.end(), 0);
    there->copy_rows(rows, all.data());
    return all;
  }
  std::vector<std::int64_t> numbers;
  QueryIdentity identity;
};

}  // namespace olrank
