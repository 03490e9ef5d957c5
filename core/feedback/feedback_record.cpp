#include "core/feedback/feedback_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <unordered_set>
#include <utility>

#include "core/io/fingerprint.h"
#include "core/io/json.h"
#include "core/text/message_text.h"

namespace olrank {
namespace {

constexpr std::string_view kCheck = ",\"check\":\"";
constexpr std::size_t kHexDigits = 32;
constexpr const char* kNotAnObject = "The line is not a JSON object.";
constexpr std::size_t kMostReplayed = 1'000'000;  // documents of a list

void append_ids(std::string& out, std::string_view key, std::span<const DocId> ids) {
  out += fmt::format(",\"{}\":[", key);
  for (const DocId& id : ids) {
    if (&id != &ids.front()) out += ',';
    append_json_id(out, id);
  }
  out += ']';
}

void append_number(std::string& out, float number) {
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof text, number).ptr);
  // JSON parsers read "-0" as an integer and lose the sign.
  if (number == 0.0F && std::signbit(number)) out += ".0";
}

void append_inputs(std::string& out, const FeedbackRecord& record) {
  out += ",\"inputs\":[";
  for (std::int64_t doc = 0; doc < record.features().docs; ++doc) {
    if (doc > 0) out += ',';
    append_numbers(out, record.features().doc(doc));
  }
  out += ']';
}

/// The numbers that were given for a document are one list: its place, and columns and values by turns.
void append_versions(std::string& out, const FeedbackRecord& record) {
  out += fmt::format(",\"versions\":[{}]", fmt::join(record.versions, ","));
  if (!record.rest.empty()) append_ids(out, "rest", record.rest);
  for (std::size_t i = 0; i < record.given.size(); ++i) {
    const FeedbackRecord::GivenNumber& one = record.given[i];
    const bool is_first = i == 0 || record.given[i - 1].doc != one.doc;
    if (is_first) out += fmt::format("{}[{}", i == 0 ? ",\"given\":[" : "],", one.doc);
    out += fmt::format(",{},", one.column);
    append_number(out, one.value);
  }
  if (!record.given.empty()) out += "]]";
}

/// SAX handler for one line; skips unknown keys. With `replay` it takes only what a replay needs, with
/// exact columns.
class RecordReader final : public JsonHandler {
 public:
  RecordReader(std::string_view line, FeedbackRecord& record, ReplayColumns* replay)
      : line_(line), record_(record), replay_(replay) {
    record = {};
  }

  std::optional<RecordFailure> read() {
    if (parse_json_events(line_, *this)) {
      column = 1;
      if (finish() && has_whole_line()) return std::nullopt;
    }
    return std::move(failure_);
  }

  /// Whether the line has no checksum, or the right one.
  bool has_whole_line() {
    const std::string_view line = line_.substr(0, line_.find_last_not_of(" \t\r\n") + 1);
    if (check_column_ == 0 || has_valid_check(line)) return true;
    column = check_column_;
    return fail(
        "The line has changed since it was written: its 'check' does not match. Restore it from a copy, or "
        "remove it; if you have changed it, remove its 'check'.");
  }

  bool finish() {
    if (replay_ != nullptr && !seen_[kQid] && has_config_) return true;
    for (const Field required : {kQid, kShown, kClicks}) {
      if (!seen_[required]) return fail("'{}' is missing.", kNames[required]);
    }
    column = shown_column_;
    if (shown_.empty()) return fail("'shown' is empty; list at least one document.");
    column = clicks_column_;
    const std::size_t shown = shown_.size();
    if (record_.clicks.size() != shown) return fail_count(record_.clicks.size(), kClicks, "click (0 or 1)");
    if (!record_.propensity.empty() && record_.propensity.size() != shown)
      return fail_count(record_.propensity.size(), kPropensity, "probability");
    column = rewards_column_;
    if (!record_.rewards.empty() && record_.rewards.size() != shown)
      return fail_count(record_.rewards.size(), kRewards, "value");
    record_.docs = std::move(shown_);
    record_.docs.insert(record_.docs.end(), std::make_move_iterator(unshown_.begin()),
                        std::make_move_iterator(unshown_.end()));
    record_.has_unshown = seen_[kUnshown];
    column = 1;
    if (!seen_[kInputs] && !record_.versions.empty())
      return check_versions() && check_groups() && check_unique_docs();
    record_.versions.clear();
    record_.rest.clear();
    record_.given.clear();
    if (!seen_[kInputs]) return true;
    if (rows_ != std::ssize(record_.docs)) {
      return fail("The line has {} and {} of inputs; give one list per document.",
                  counted(record_.docs.size(), "document"), counted(rows_, "list"));
    }
    return check_groups() && check_unique_docs();
  }

  bool null() override { return scalar(); }
  bool boolean(bool value) override {
    if (field_ == kClicks && depth_ == 2) return add_click(value ? 1 : 0);
    if (field_ == kExplore && depth_ == 1) return set(record_.explored, std::optional(value));
    return scalar();
  }
  bool number_integer(std::int64_t value) override {
    if (field_ == kInputs && depth_ == 3) return add_input(static_cast<float>(value));
    if (field_ == kGiven && depth_ == 3) return add_given(static_cast<float>(value), value);
    if (field_ == kVersions && depth_ == 2) return record_.versions.push_back(value), true;
    if (field_ == kClicks && depth_ == 2) return add_click(value);
    if (field_ == kPropensity && depth_ == 2) return add_propensity(static_cast<double>(value));
    if (field_ == kRewards && depth_ == 2) return add_reward(static_cast<double>(value));
    if (is_list_of_ids()) return add_id({fmt::format("{}", value), true});
    if (depth_ == 1 && field_ == kQid) return set_query(fmt::format("{}", value));
    if (depth_ == 1 && field_ == kTime && value > 0) return set(record_.time, value);
    if (depth_ == 1 && field_ == kSnapshot && value >= 0) return set(record_.snapshot, value);
    if (depth_ == 1 && field_ == kBucket && value >= 0) return set(record_.bucket, value);
    if (depth_ == 1 && field_ == kRound && value > 0)
      return set(record_.round, static_cast<std::uint64_t>(value));
    return scalar();
  }
  bool number_unsigned(std::uint64_t value) override {
    if (field_ == kInputs && depth_ == 3) return add_input(static_cast<float>(value));
    constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value <= kLargest) return number_integer(static_cast<std::int64_t>(value));
    if (field_ == kRewards && depth_ == 2) return add_reward(static_cast<double>(value));
    if (is_list_of_ids() && replay_ == nullptr) return add_id({fmt::format("{}", value), true});
    if (depth_ == 1 && field_ == kQid) return set_query(fmt::format("{}", value));
    return scalar();
  }
  bool number_float(const JsonNumber& number) override {
    if (field_ == kPropensity && depth_ == 2) return add_propensity(number.value());
    if (field_ == kRewards && depth_ == 2) return add_reward(number.value());
    if ((field_ != kInputs && field_ != kGiven) || depth_ != 3) return scalar();
    // From the digits: a detour over double may round twice. Out of range, the double decides: ±infinity or
    // almost zero.
    float value = 0.0F;
    const std::string_view text = number.digits;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc{}) value = static_cast<float>(number.value());
    return field_ == kInputs ? add_input(value) : add_given(value, -1);
  }
  bool string(std::string& value) override {
    if (is_check_ && depth_ == 1 && value.size() == kHexDigits) check_column_ = column;
    if (is_list_of_ids()) return add_id({value, false});
    if (field_ == kFeatureNames && depth_ == 2) return add_feature_name(value);
    if (depth_ == 1 && field_ == kQid) return set_query(value);
    if (depth_ == 1 && field_ == kImpression) return set(record_.impression, value);
    if (depth_ == 1 && field_ == kGroups) return set_groups(value);
    if (depth_ == 1 && field_ == kExperiment) return set(record_.experiment, value);
    if (depth_ == 1 && field_ == kArm) return set(record_.arm, value);
    if (depth_ == 1 && field_ == kSchema) return set(record_.schema, value);
    if (depth_ == 1 && field_ == kTeams) return set(record_.teams, value);
    return scalar();
  }

  bool start_object() override {
    if (may_be_foreign()) field_ = kOther;
    if (depth_ > 0 && field_ != kOther) return fail(wrong_type());
    ++depth_;
    return true;
  }
  bool key(std::string& name) override {
    if (depth_ != 1) return true;
    is_check_ = name == "check";
    field_ = kOther;
    for (int known = 0; known < kOther; ++known) {
      if (name == kNames[known]) field_ = static_cast<Field>(known);
    }
    if (replay_ != nullptr) {
      has_config_ = has_config_ || name == "config";
      if (field_ != kQid && field_ != kShown && field_ != kClicks && field_ != kRewards) field_ = kOther;
    }
    if (field_ != kOther && seen_[field_]) return fail("'{}' appears twice.", name);
    seen_[field_] = true;
    return true;
  }
  bool end_object() override { return leave(); }
  bool start_array() override {
    if (depth_ == 0) return fail(not_an_object());
    const bool list = field_ == kShown || field_ == kClicks || field_ == kUnshown || field_ == kInputs ||
                      field_ == kPropensity || field_ == kIncumbent || field_ == kCandidate ||
                      field_ == kRewards || field_ == kFeatureNames || field_ == kVersions ||
                      field_ == kRest || field_ == kGiven;
    if (!list && may_be_foreign()) field_ = kOther;
    if (field_ != kOther && (!list || depth_ > (field_ == kInputs || field_ == kGiven ? 2 : 1)))
      return fail(wrong_type());
    ++depth_;
    if (field_ == kShown) shown_column_ = column;
    if (field_ == kClicks) clicks_column_ = column;
    if (field_ == kRewards) rewards_column_ = column;
    row_begin_ = record_.inputs.size();
    given_items_ = 0;
    return true;
  }
  bool end_array() override {
    if (field_ == kInputs && depth_ == 3) {
      const std::int64_t columns = std::ssize(record_.inputs) - row_begin_;
      if (rows_ > 0 && columns != record_.columns) {
        return fail("A document has {}, but the previous one has {}.", counted(columns, "input"),
                    record_.columns);
      }
      record_.columns = columns;
      ++rows_;
    }
    return leave();
  }
  void invalid(std::size_t byte, Fault fault) override {
    if (fault == Fault::kNumberOutOfRange) {
      fail("The number is out of range for a double.");
    } else {
      column = std::min(std::max<std::size_t>(byte, 1), line_.size() + 1);
      fail(replay_ == nullptr    ? kNotAnObject
           : byte > line_.size() ? "The JSON of this line is incomplete."
                                 : "The line is not valid JSON from here on.");
    }
  }

 private:
  enum Field {
    kRound,
    kImpression,
    kQid,
    kShown,
    kClicks,
    kUnshown,
    kGroups,
    kInputs,
    kTime,
    kSnapshot,
    kExplore,
    kPropensity,
    kIncumbent,
    kExperiment,
    kArm,
    kBucket,
    kTeams,
    kCandidate,
    kRewards,
    kSchema,
    kFeatureNames,
    kVersions,
    kRest,
    kGiven,
    kOther
  };
  static constexpr std::string_view kNames[] = {
      "round", "impression", "qid",     "shown",      "clicks",        "unshown",    "groups", "inputs",
      "time",  "snapshot",   "explore", "propensity", "incumbent",     "experiment", "arm",    "bucket",
      "teams", "candidate",  "rewards", "schema",     "feature_names", "versions",   "rest",   "given"};

  bool fail(std::string message) {
    if (!failure_) failure_ = RecordFailure{static_cast<std::int64_t>(column), std::move(message)};
    return false;
  }
  template <class... Args>
  requires(sizeof...(Args) > 0) bool fail(fmt::format_string<Args...> sentence, Args&&... args) {
    return fail(fmt::format(sentence, std::forward<Args>(args)...));
  }
  std::string not_an_object() const {
    return replay_ == nullptr
               ? kNotAnObject
               : R"(A line must be an object: {"qid": ..., "shown": [...], "clicks": [...]}.)";
  }
  std::string wrong_type() const {
    if (replay_ == nullptr) return fmt::format("'{}' has the wrong type.", kNames[field_]);
    if (field_ == kQid) return "'qid' must be a string or an integer.";
    if (field_ == kShown)
      return depth_ == 1 ? "'shown' must be a list of documents."
                         : "A shown document must be its index within the query, from 0, or its name as a "
                           "string.";
    if (depth_ == 1)
      return fmt::format("'{}' must be a list with one entry for each shown document.", kNames[field_]);
    return field_ == kClicks ? "A click must be 0 or 1, or false or true."
                             : "A reward must be a number of at least 0.";
  }
  bool fail_count(std::size_t values, Field field, std::string_view one) {
    return fail("'shown' has {} and '{}' has {}; give one {} per document.",
                counted(shown_.size(), "document"), kNames[field], counted(values, "value"), one);
  }
  bool is_too_long(std::size_t values) const { return replay_ != nullptr && values == kMostReplayed; }
  bool fail_too_long() { return fail("A list of more than {} documents was never shown.", kMostReplayed); }
  bool leave() {
    --depth_;
    return true;
  }
  bool scalar() {
    if (depth_ == 0) return fail(not_an_object());
    // A foreign log's round may be anything, since our log numbers its own, and so may what older logs
    // lack.
    return field_ == kOther || field_ == kRound || may_be_foreign() ? true : fail(wrong_type());
  }
  bool may_be_foreign() const {
    return depth_ == 1 && field_ >= kTime && field_ != kOther && replay_ == nullptr;
  }
  bool is_list_of_ids() const {
    return (field_ == kShown || field_ == kUnshown || field_ == kIncumbent || field_ == kCandidate ||
            field_ == kRest) &&
           depth_ == 2;
  }
  bool add_feature_name(const std::string& name) {
    std::string& names = record_.feature_names;
    names.empty() ? names = "[" : names.replace(names.size() - 1, 1, ",");
    append_json_string(names, name);
    names += ']';
    return true;
  }
  bool add_propensity(double value) {
    if (!(value > 0.0 && value <= 1.0))
      return fail("A propensity must be above 0 and at most 1, not {}.", value);
    record_.propensity.push_back(value);
    return true;
  }
  bool add_reward(double value) {
    if (!(value >= 0.0))
      return fail(replay_ != nullptr ? wrong_type()
                                     : fmt::format("A reward must be at least 0, not {}.", value));
    if (is_too_long(record_.rewards.size())) return fail_too_long();
    record_.rewards.push_back(value);
    return true;
  }
  template <class T>
  bool set(T& target, T value) {
    target = std::move(value);
    return true;
  }
  bool set_query(std::string text) {
    if (replay_ != nullptr) replay_->query = static_cast<std::int64_t>(column);
    return set(record_.query, std::move(text));
  }
  bool add_id(DocId id) {
    if (is_too_long(shown_.size())) return fail_too_long();
    if (replay_ != nullptr) replay_->docs.push_back(static_cast<std::int64_t>(column));
    (field_ == kShown       ? shown_
     : field_ == kUnshown   ? unshown_
     : field_ == kIncumbent ? record_.incumbent
     : field_ == kRest      ? record_.rest
                            : record_.candidate)
        .push_back(std::move(id));
    return true;
  }
  bool set_groups(const std::string& letters) {
    for (const char letter : letters) {
      const auto group = group_named(std::string_view(&letter, 1), kMostGroups);
      if (!group) return fail("'groups' must be letters from A on, one per document.");
      record_.groups.push_back(*group);
    }
    return true;
  }
  bool add_click(std::int64_t value) {
    if (value != 0 && value != 1)
      return fail(replay_ != nullptr ? wrong_type()
                                     : fmt::format("A click must be 0 or 1, not {}.", value));
    if (is_too_long(record_.clicks.size())) return fail_too_long();
    record_.clicks.push_back(static_cast<std::uint8_t>(value));
    return true;
  }
  bool add_input(float value) {
    if (!std::isfinite(value)) return fail("An input is out of range for a 32-bit float.");
    record_.inputs.push_back(value);
    return true;
  }
  /// `whole` is the number without a fraction; −1 for one with a fraction.
  bool add_given(float value, std::int64_t whole) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (!std::isfinite(value)) return fail("A number is out of range for a 32-bit float.");
    const std::int64_t item = given_items_++;
    if (item > 0 && item % 2 == 0) {
      record_.given.back().value = value;
      return true;
    }
    if (whole < 0 || whole > kMost) return fail(wrong_type());
    const auto place = static_cast<std::int32_t>(whole);
    if (item == 0) {
      given_doc_ = place;
    } else {
      record_.given.push_back({given_doc_, place, 0.0F});
    }
    return true;
  }
  bool check_groups() {
    if (!seen_[kGroups] || record_.groups.size() == record_.docs.size()) return true;
    return fail("The line has {} and {} of 'groups'; give one letter per document.",
                counted(record_.docs.size(), "document"), counted(record_.groups.size(), "letter"));
  }
  bool check_versions() {
    const std::size_t docs = record_.docs.size() + record_.rest.size();
    if (record_.versions.size() != docs) {
      return fail("The line has {} and {}; give one per document.", counted(docs, "document"),
                  counted(record_.versions.size(), "version"));
    }
    for (const FeedbackRecord::GivenNumber& one : record_.given) {
      if (std::cmp_greater_equal(one.doc, docs))
        return fail("The line gives numbers for document {}, but has {}.", one.doc,
                    counted(docs, "document"));
    }
    return true;
  }
  bool check_unique_docs() {
    std::unordered_set<std::string_view> names;
    for (const auto* ids : {&record_.docs, &record_.rest}) {
      for (const DocId& id : *ids) {
        if (!names.insert(id.text).second) return fail("Document '{}' appears twice.", excerpt(id.text));
      }
    }
    return true;
  }

  std::string_view line_;
  FeedbackRecord& record_;
  ReplayColumns* replay_;
  std::size_t shown_column_ = 1;
  std::size_t clicks_column_ = 1;
  std::size_t rewards_column_ = 1;
  bool has_config_ = false;
  bool is_check_ = false;
  std::size_t check_column_ = 0;  // of a checksum; 0 without one
  std::vector<DocId> shown_;
  std::vector<DocId> unshown_;
  std::optional<RecordFailure> failure_;
  std::int64_t depth_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t row_begin_ = 0;
  std::int64_t given_items_ = 0;  // of the present list of numbers
  std::int32_t given_doc_ = 0;    // whose numbers they are
  Field field_ = kOther;
  bool seen_[kOther + 1] = {};
};

}  // namespace

void append_numbers(std::string& out, std::span<const float> numbers) {
  out += '[';
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (k > 0) out += ',';
    append_number(out, numbers[k]);
  }
  out += ']';
}

void append_json_id(std::string& out, const DocId& id) {
  if (id.is_number) {
    out += id.text;
  } else {
    append_json_string(out, id.text);
  }
}

std::string record_body(const FeedbackRecord& record) {
  std::string body = ",\"impression\":";
  append_json_string(body, record.impression);
  body += ",\"clicks\":[";
  for (std::size_t rank = 0; rank < record.clicks.size(); ++rank) {
    if (rank > 0) body += ',';
    body += record.clicks[rank] != 0 ? '1' : '0';
  }
  body += "],\"qid\":";
  append_json_string(body, record.query);
  const auto shown = std::span(record.docs).first(record.shown());
  const auto unshown = std::span(record.docs).subspan(record.shown());
  if (record.time > 0) body += fmt::format(",\"time\":{}", record.time);
  if (record.snapshot >= 0) body += fmt::format(",\"snapshot\":{}", record.snapshot);
  if (record.explored) body += fmt::format(",\"explore\":{}", *record.explored);
  const auto append_text = [&](std::string_view key, const std::string& text) {
    if (text.empty()) return;
    body += fmt::format(",\"{}\":", key);
    append_json_string(body, text);
  };
  append_text("experiment", record.experiment);
  append_text("arm", record.arm);
  if (record.bucket >= 0) body += fmt::format(",\"bucket\":{}", record.bucket);
  append_text("teams", record.teams);
  append_ids(body, "shown", shown);
  if (!record.propensity.empty())
    body += fmt::format(",\"propensity\":[{}]", fmt::join(record.propensity, ","));
  if (record.has_unshown || !unshown.empty()) append_ids(body, "unshown", unshown);
  if (!record.incumbent.empty()) append_ids(body, "incumbent", record.incumbent);
  if (!record.candidate.empty()) append_ids(body, "candidate", record.candidate);
  if (!record.groups.empty()) {
    body += ",\"groups\":\"";
    for (const DocGroup group : record.groups) body += letter_of(group);
    body += '"';
  }
  if (!record.rewards.empty()) body += fmt::format(",\"rewards\":[{}]", fmt::join(record.rewards, ","));
  append_text("schema", record.schema);
  if (!record.feature_names.empty()) body += ",\"feature_names\":" + record.feature_names;
  record.versions.empty() ? append_inputs(body, record) : append_versions(body, record);
  return body;
}

std::string record_line(std::uint64_t round, std::string_view body) {
  std::string line = fmt::format("{{\"round\":{}", round);
  line.reserve(line.size() + body.size() + 64);
  line += body;
  const std::string check = fingerprint_of(line).hex();
  line += kCheck;
  line += check;
  line += "\"}\n";
  return line;
}

std::string_view check_of(std::string_view line) {
  constexpr std::size_t kTail = kCheck.size() + kHexDigits + 2;
  if (line.size() < kTail || !line.ends_with("\"}")) return {};
  const std::string_view tail = line.substr(line.size() - kTail);
  return tail.starts_with(kCheck) ? tail.substr(kCheck.size(), kHexDigits) : std::string_view();
}

bool has_valid_check(std::string_view line) {
  const std::string_view check = check_of(line);
  if (check.empty()) return false;
  const auto checked = static_cast<std::size_t>(check.data() - line.data()) - kCheck.size();
  return check == fingerprint_of(line.substr(0, checked)).hex();
}

std::optional<RecordFailure> parse_record(std::string_view line, FeedbackRecord& record) {
  return RecordReader(line, record, nullptr).read();
}

std::optional<RecordFailure> parse_replay_line(std::string_view line, FeedbackRecord& record,
                                               ReplayColumns& columns) {
  columns = {};
  record = {};
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return std::nullopt;
  return RecordReader(line, record, &columns).read();
}

}  // namespace olrank
