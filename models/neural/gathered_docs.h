#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/neural/document_history.h"

namespace olrank {

/// Some documents of a history, each once, in the order of their first use. Where the history keeps whole
/// lists, a document comes with all documents of its list.
class GatheredDocs {
 public:
  /// Without `features`, documents are only named.
  explicit GatheredDocs(bool features = true) : gathers_features_(features) {}

  /// Without documents, to be filled from `history`.
  void start(const DocumentHistory& history);
  /// The place of the document in this row of the history.
  std::int32_t place_of(std::int32_t row);

  FeatureMatrix features() const { return {values_.data(), std::ssize(rows_), columns_, list_ends_}; }
  /// Rows in the history.
  std::span<const std::int32_t> rows() const { return rows_; }
  /// Numbers within the training part.
  std::span<const std::int64_t> doc_numbers() const { return doc_numbers_; }

 private:
  void take(std::int32_t row);

  bool gathers_features_;
  const DocumentHistory* history_ = nullptr;
  std::int64_t columns_ = 0;
  std::vector<float> values_;  // [rows × columns]
  std::vector<std::int64_t> list_ends_;
  std::vector<std::int32_t> rows_;
  std::vector<std::int64_t> doc_numbers_;
  std::vector<std::int32_t> places_;  // [docs of the history], −1 for those that are not here
};

}  // namespace olrank
