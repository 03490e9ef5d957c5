#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"

namespace olrank {

/// What a client calls a document: a text, or a whole number, which answers and logs repeat as such.
struct DocId {
  std::string text;
  bool is_number = false;

  friend bool operator==(const DocId&, const DocId&) = default;
};

/// One accepted feedback with everything that learning from it takes, so that a log of them depends on
/// nothing else: neither on the impressions that nobody answered nor on the documents of today.
struct FeedbackRecord {
  std::uint64_t round = 0;  // from 1, in the order of the log
  std::string impression;
  std::string query;
  std::vector<DocId> docs;           // the shown ones, best first, then others that the ranker learns from
  std::vector<std::uint8_t> clicks;  // 0 or 1 for each shown
  std::int64_t columns = 0;
  std::vector<float> inputs;  // [docs × columns], normalised as the model saw them

  std::int64_t shown() const { return static_cast<std::int64_t>(clicks.size()); }
  FeatureMatrix features() const {
    return {inputs.data(), static_cast<std::int64_t>(docs.size()), columns};
  }

  friend bool operator==(const FeedbackRecord&, const FeedbackRecord&) = default;
};

/// The line of a log without round and checksum, which the log adds: see record_line().
std::string record_body(const FeedbackRecord& record);

/// A whole line with its newline: {"round", "impression", "qid", "shown", "clicks", "unshown", "inputs",
/// "check"}, the check being XXH3 of all before it. Recorded feedback for `olrank run --replay` has the
/// same form. Floats read back to the bit.
std::string record_line(std::uint64_t round, std::string_view body);

/// Whether the line (without its newline) ends in the checksum of what stands before it.
bool has_valid_check(std::string_view line);

/// A place in a line, from 1, and what is wrong there.
struct RecordFailure {
  std::int64_t column = 1;
  std::string sentence;
};

/// Reads a line; other keys are passed over, and so are the checksum and the round where there is none.
std::optional<RecordFailure> parse_record(std::string_view line, FeedbackRecord& record);

/// Appends a JSON string with its quotes.
void append_json_text(std::string& out, std::string_view text);
void append_json_id(std::string& out, const DocId& id);

}  // namespace olrank
