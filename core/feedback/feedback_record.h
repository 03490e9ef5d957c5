#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/fair/exposure.h"

namespace olrank {

/// A client's document ID: a string or an integer. Answers and logs keep the client's form.
struct DocId {
  std::string text;
  bool is_number = false;

  friend bool operator==(const DocId&, const DocId&) = default;
};

/// One accepted feedback with everything needed to learn from it, so that the log is self-contained: it
/// depends neither on unanswered impressions nor on the current documents.
struct FeedbackRecord {
  static constexpr std::string_view kLearnerArm = "learner";

  std::uint64_t round = 0;  // from 1, in log order
  std::string impression;
  std::string query;
  std::vector<DocId> docs;           // shown docs, best first, then unshown docs the ranker learns from
  bool has_unshown = false;          // whether those are part of the record, even if there are none
  std::vector<std::uint8_t> clicks;  // 0 or 1 for each shown doc
  std::vector<double> rewards;       // what users did with each shown doc is worth; empty: its click
  std::vector<DocGroup> groups;      // of all docs; empty in a service without groups
  // These describe the list as it was shown; older logs have none of them.
  std::int64_t time = 0;           // UTC in ms; 0: unknown
  std::int64_t snapshot = -1;      // rounds that the model had learned; −1: unknown
  std::optional<bool> explored;    // whether the request asked for exploration
  std::vector<double> propensity;  // of each shown document at its rank, given those above; empty: unknown
  std::vector<DocId> incumbent;    // the caller's own order of all documents; empty: not given
  // In a service with arms.
  std::string experiment;        // the plan of the arms; empty: none
  std::string arm;               // that showed the list
  std::int64_t bucket = -1;      // of the user; −1: none
  std::string teams;             // of an interleaved list: A or B for each shown document
  std::vector<DocId> candidate;  // what the learner would have shown; empty: it did, or is not known
  std::string schema;            // digest of the schema of the features; empty: none
  std::string feature_names;     // of the inputs, as in model files; empty: unknown
  std::int64_t columns = 0;
  std::vector<float> inputs;  // [docs × columns], normalised: the model's inputs
  // A list of documents that the service stores has these in place of its inputs, which
  // DocumentVersions::apply() puts there.
  std::vector<std::int64_t>
      versions;             // of docs and then of rest; 0: not stored; empty: the inputs are there
  std::vector<DocId> rest;  // the request's other documents, where inputs depend on them
  struct GivenNumber {
    std::int32_t doc = 0;
    std::int32_t column = 0;
    float value = 0.0F;

    friend bool operator==(const GivenNumber&, const GivenNumber&) = default;
  };
  std::vector<GivenNumber> given;  // raw numbers other than those of the version, or than 0 without one

  std::int64_t shown() const { return std::ssize(clicks); }
  double reward() const {  // of the list
    return rewards.empty() ? std::accumulate(clicks.begin(), clicks.end(), 0.0)
                           : std::accumulate(rewards.begin(), rewards.end(), 0.0);
  }
  FeatureMatrix features() const { return {inputs.data(), std::ssize(docs), columns}; }

  friend bool operator==(const FeedbackRecord&, const FeedbackRecord&) = default;
};

/// A log line without its round and checksum, which record_line() adds.
std::string record_body(const FeedbackRecord& record);

/// A complete line with its newline: {"round", "impression", "clicks", "qid", "time", "snapshot",
/// "explore", "experiment", "arm", "bucket", "teams", "shown", "propensity", "unshown", "incumbent",
/// "candidate", "groups", "rewards", "schema", "feature_names", "inputs", "check"}, where "check" is the
/// XXH3 of everything before it; in place of "inputs" may be "versions", "rest" and "given". `olrank run
/// --replay` reads the same format. Floats round-trip exactly.
std::string record_line(std::uint64_t round, std::string_view body);

/// Whether the line (without its newline) ends in a valid checksum.
bool has_valid_check(std::string_view line);

/// Returns that checksum; empty for a line that does not end in one.
std::string_view check_of(std::string_view line);

/// A failure says what is wrong with a line, and the column (in bytes from 1).
struct RecordFailure {
  std::int64_t column = 1;
  std::string message;
};

/// Parses a line. Skips unknown keys; round and checksum are optional, and a checksum has to match.
std::optional<RecordFailure> parse_record(std::string_view line, FeedbackRecord& record);

/// Where a line has what a replay compares with the data, in bytes from 1.
struct ReplayColumns {
  std::int64_t query = 1;
  std::vector<std::int64_t> docs;
};

/// Parses of a line only the query, the shown documents, their clicks and rewards, and skips all else.
/// Documents with numbers are indices. There are no documents if the line is blank or has only the
/// configuration of a trace.
std::optional<RecordFailure> parse_replay_line(std::string_view line, FeedbackRecord& record,
                                               ReplayColumns& columns);

/// Appends [1.5,0,…]. Numbers read back exactly.
void append_numbers(std::string& out, std::span<const float> numbers);

/// Appends the ID as JSON, in the client's form.
void append_json_id(std::string& out, const DocId& id);

}  // namespace olrank
