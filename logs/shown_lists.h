#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/feedback/feedback_record.h"
#include "core/interface.h"
#include "core/settings/enum_names.h"
#include "logs/list_features.h"

namespace olrank {

/// How other programs write down what they showed and what was clicked (docs/SERVICE.md, "The log").
enum class ShownListFormat { kJsonLines, kCsv, kUbi, kLetor };

template <>
struct EnumNames<ShownListFormat> {
  static constexpr std::array values = names_in_order<ShownListFormat>("jsonl", "csv", "ubi", "letor");
};

struct ShownListSource {
  ShownListFormat format = ShownListFormat::kJsonLines;
  std::filesystem::path lists;                // of ubi: its queries
  std::filesystem::path events;               // of ubi
  std::vector<std::string> actions{"click"};  // of ubi: the events that count as clicks
  ColumnNames columns;                        // of csv
  std::int64_t first_rank = 0;                // how the source calls the first rank
};

/// A list that was shown, as a record without inputs, and the line where it begins.
struct ShownListRecord {
  FeedbackRecord record;
  std::int64_t line = 0;
  std::span<const float> features = {};  // of all documents, where the lists' own file has them
};

/// Lists one after the other, in the order of their file.
class ShownLists : public Interface {
 public:
  /// Throws DataError for events that cannot be read.
  static std::unique_ptr<ShownLists> open(const ShownListSource& source);

  /// False at the end. Throws DataError with the line and the field for a list without documents, a
  /// document that it has twice, a click on a document that it does not have, and whatever else is broken.
  virtual bool next(ShownListRecord& list) = 0;

  /// Counts the features of each document where the lists' own file has them; else 0.
  virtual std::int64_t features() const { return 0; }
  /// Logs of kind ubi count queries that found nothing, and clicks on lists that its queries do not have.
  virtual std::int64_t empty_lists() const { return 0; }
  virtual std::int64_t stray_clicks() const { return 0; }
};

}  // namespace olrank
