#include "logs/feedback_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <unordered_set>

#include "core/io/fingerprint.h"
#include "core/io/json_stream.h"
#include "core/text/counted.h"
#include "core/text/excerpt.h"

namespace olrank {
namespace {

constexpr std::string_view kCheck = ",\"check\":\"";
constexpr std::size_t kHexDigits = 32;
constexpr const char* kNotAnObject = "The line is not a JSON object.";

void append_ids(std::string& out, std::string_view key, const DocId* begin, const DocId* end) {
  out += fmt::format(",\"{}\":[", key);
  for (const DocId* id = begin; id != end; ++id) {
    if (id != begin) out += ',';
    append_json_id(out, *id);
  }
  out += ']';
}

void append_inputs(std::string& out, const FeedbackRecord& record) {
  out += ",\"inputs\":[";
  char number[32];
  for (std::int64_t doc = 0; doc < record.features().docs; ++doc) {
    out += doc > 0 ? ",[" : "[";
    const auto row = record.features().doc(doc);
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (k > 0) out += ',';
      out.append(number, std::to_chars(number, number + sizeof number, row[k]).ptr);
      // JSON parsers read "-0" as an integer and lose the sign.
      if (row[k] == 0.0F && std::signbit(row[k])) out += ".0";
    }
    out += ']';
  }
  out += ']';
}

/// SAX handler for one line; skips unknown keys.
class RecordReader final : public JsonHandler {
 public:
  explicit RecordReader(FeedbackRecord& record) : record_(record) { record = {}; }

  const std::string& message() const { return message_; }
  std::size_t position() const { return position_; }

  bool finish() {
    for (const Field required : {kQid, kShown, kClicks}) {
      if (!seen_[required]) return fail(fmt::format("'{}' is missing.", kNames[required]));
    }
    if (shown_.empty()) return fail("'shown' is empty; list at least one document.");
    if (record_.clicks.size() != shown_.size()) {
      return fail(fmt::format("'shown' has {} and 'clicks' has {}; give one click (0 or 1) per document.",
                              counted(shown_.size(), "document"), counted(record_.clicks.size(), "value")));
    }
    record_.docs = std::move(shown_);
    record_.docs.insert(record_.docs.end(), std::make_move_iterator(unshown_.begin()),
                        std::make_move_iterator(unshown_.end()));
    record_.has_unshown = seen_[kUnshown];
    if (!record_.propensity.empty() && record_.propensity.size() != record_.clicks.size()) {
      return fail(fmt::format("'shown' has {} and 'propensity' has {}; give one probability per document.",
                              counted(record_.clicks.size(), "document"),
                              counted(record_.propensity.size(), "value")));
    }
    if (!record_.rewards.empty() && record_.rewards.size() != record_.clicks.size()) {
      return fail(fmt::format("'shown' has {} and 'rewards' has {}; give one value per document.",
                              counted(record_.clicks.size(), "document"),
                              counted(record_.rewards.size(), "value")));
    }
    if (!seen_[kInputs]) return true;
    if (rows_ != std::ssize(record_.docs)) {
      return fail(fmt::format("The line has {} and {} of inputs; give one list per document.",
                              counted(record_.docs.size(), "document"), counted(rows_, "list")));
    }
    if (seen_[kGroups] && record_.groups.size() != record_.docs.size()) {
      return fail(fmt::format("The line has {} and {} of 'groups'; give one letter per document.",
                              counted(record_.docs.size(), "document"),
                              counted(record_.groups.size(), "letter")));
    }
    return check_unique_docs();
  }

  bool null() override { return scalar(); }
  bool boolean(bool value) override {
    if (field_ == kClicks && depth_ == 2) return add_click(value ? 1 : 0);
    if (field_ == kExplore && depth_ == 1) {
      record_.explored = value;
      return true;
    }
    return scalar();
  }
  bool number_integer(std::int64_t value) override {
    if (field_ == kInputs && depth_ == 3) return add_input(static_cast<float>(value));
    if (field_ == kClicks && depth_ == 2) return add_click(value);
    if (field_ == kPropensity && depth_ == 2) return add_propensity(static_cast<double>(value));
    if (field_ == kRewards && depth_ == 2) return add_reward(static_cast<double>(value));
    if (is_list_of_ids()) return add_id({fmt::format("{}", value), true});
    if (depth_ == 1 && field_ == kQid) return set_text(record_.query, fmt::format("{}", value));
    if (depth_ == 1 && field_ == kTime && value > 0) {
      record_.time = value;
      return true;
    }
    if (depth_ == 1 && field_ == kSnapshot && value >= 0) {
      record_.snapshot = value;
      return true;
    }
    if (depth_ == 1 && field_ == kBucket && value >= 0) {
      record_.bucket = value;
      return true;
    }
    if (depth_ == 1 && field_ == kRound && value > 0) {
      record_.round = static_cast<std::uint64_t>(value);
      return true;
    }
    return scalar();
  }
  bool number_unsigned(std::uint64_t value) override {
    if (field_ == kInputs && depth_ == 3) return add_input(static_cast<float>(value));
    constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value <= kLargest) return number_integer(static_cast<std::int64_t>(value));
    if (is_list_of_ids()) return add_id({fmt::format("{}", value), true});
    if (depth_ == 1 && field_ == kQid) return set_text(record_.query, fmt::format("{}", value));
    return scalar();
  }
  bool number_float(const JsonNumber& number) override {
    if (field_ == kPropensity && depth_ == 2) return add_propensity(number.value());
    if (field_ == kRewards && depth_ == 2) return add_reward(number.value());
    if (field_ != kInputs || depth_ != 3) return scalar();
    // From the digits: a detour over double may round twice. Out of range, the double decides: ±infinity or
    // almost zero.
    float value = 0.0F;
    const std::string_view text = number.digits;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    return add_input(read.ec == std::errc{} ? value : static_cast<float>(number.value()));
  }
  bool string(std::string& value) override {
    if (is_list_of_ids()) return add_id({value, false});
    if (depth_ == 1 && field_ == kQid) return set_text(record_.query, value);
    if (depth_ == 1 && field_ == kImpression) return set_text(record_.impression, value);
    if (depth_ == 1 && field_ == kGroups) return set_groups(value);
    if (depth_ == 1 && field_ == kExperiment) return set_text(record_.experiment, value);
    if (depth_ == 1 && field_ == kArm) return set_text(record_.arm, value);
    if (depth_ == 1 && field_ == kTeams) return set_text(record_.teams, value);
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
    field_ = kOther;
    for (int known = 0; known < kOther; ++known) {
      if (name == kNames[known]) field_ = static_cast<Field>(known);
    }
    if (field_ != kOther && seen_[field_]) return fail(fmt::format("'{}' appears twice.", name));
    seen_[field_] = true;
    return true;
  }
  bool end_object() override { return leave(); }
  bool start_array() override {
    if (depth_ == 0) return fail(kNotAnObject);
    const bool list = field_ == kShown || field_ == kClicks || field_ == kUnshown || field_ == kInputs ||
                      field_ == kPropensity || field_ == kIncumbent || field_ == kCandidate ||
                      field_ == kRewards;
    if (!list && may_be_foreign()) field_ = kOther;
    if (field_ != kOther && (!list || depth_ > (field_ == kInputs ? 2 : 1))) return fail(wrong_type());
    ++depth_;
    row_begin_ = record_.inputs.size();
    return true;
  }
  bool end_array() override {
    if (field_ == kInputs && depth_ == 3) {
      const std::int64_t columns = std::ssize(record_.inputs) - row_begin_;
      if (rows_ > 0 && columns != record_.columns) {
        return fail(fmt::format("A document has {}, but the previous one has {}.",
                                counted(columns, "input"), record_.columns));
      }
      record_.columns = columns;
      ++rows_;
    }
    return leave();
  }
  void invalid(std::size_t byte, Fault fault) override {
    position_ = byte;
    fail(fault == Fault::kNumberOutOfRange ? "The number is out of range." : kNotAnObject);
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
    kOther
  };
  static constexpr std::string_view kNames[] = {
      "round",  "impression", "qid",      "shown",     "clicks",     "unshown",   "groups",
      "inputs", "time",       "snapshot", "explore",   "propensity", "incumbent", "experiment",
      "arm",    "bucket",     "teams",    "candidate", "rewards"};

  bool fail(std::string message) {
    if (message_.empty()) message_ = std::move(message);
    return false;
  }
  std::string wrong_type() const { return fmt::format("'{}' has the wrong type.", kNames[field_]); }
  bool leave() {
    --depth_;
    return true;
  }
  bool scalar() {
    if (depth_ == 0) return fail(kNotAnObject);
    // A foreign log's round may be anything, since our log numbers its own, and so may what older logs
    // lack.
    return field_ == kOther || field_ == kRound || may_be_foreign() ? true : fail(wrong_type());
  }
  bool may_be_foreign() const { return depth_ == 1 && field_ >= kTime && field_ != kOther; }
  bool is_list_of_ids() const {
    return (field_ == kShown || field_ == kUnshown || field_ == kIncumbent || field_ == kCandidate) &&
           depth_ == 2;
  }
  bool add_propensity(double value) {
    if (!(value > 0.0 && value <= 1.0))
      return fail(fmt::format("A propensity must be above 0 and at most 1, not {}.", value));
    record_.propensity.push_back(value);
    return true;
  }
  bool add_reward(double value) {
    if (!(value >= 0.0)) return fail(fmt::format("A reward must be at least 0, not {}.", value));
    record_.rewards.push_back(value);
    return true;
  }
  bool set_text(std::string& target, std::string text) {
    target = std::move(text);
    return true;
  }
  bool add_id(DocId id) {
    (field_ == kShown       ? shown_
     : field_ == kUnshown   ? unshown_
     : field_ == kIncumbent ? record_.incumbent
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
    if (value != 0 && value != 1) return fail(fmt::format("A click must be 0 or 1, not {}.", value));
    record_.clicks.push_back(static_cast<std::uint8_t>(value));
    return true;
  }
  bool add_input(float value) {
    if (!std::isfinite(value)) return fail("An input is out of range for a 32-bit float.");
    record_.inputs.push_back(value);
    return true;
  }
  bool check_unique_docs() {
    std::unordered_set<std::string_view> names;
    for (const DocId& id : record_.docs) {
      if (!names.insert(id.text).second)
        return fail(fmt::format("Document '{}' appears twice.", excerpt(id.text)));
    }
    return true;
  }

  FeedbackRecord& record_;
  std::vector<DocId> shown_;
  std::vector<DocId> unshown_;
  std::string message_;
  std::size_t position_ = 0;
  std::int64_t depth_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t row_begin_ = 0;
  Field field_ = kOther;
  bool seen_[kOther + 1] = {};
};

}  // namespace

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
  const DocId* first = record.docs.data();
  const DocId* middle = first + record.shown();
  const DocId* last = first + record.docs.size();
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
  append_ids(body, "shown", first, middle);
  if (!record.propensity.empty())
    body += fmt::format(",\"propensity\":[{}]", fmt::join(record.propensity, ","));
  if (record.has_unshown || middle != last) append_ids(body, "unshown", middle, last);
  if (!record.incumbent.empty())
    append_ids(body, "incumbent", record.incumbent.data(),
               record.incumbent.data() + record.incumbent.size());
  if (!record.candidate.empty())
    append_ids(body, "candidate", record.candidate.data(),
               record.candidate.data() + record.candidate.size());
  if (!record.groups.empty()) {
    body += ",\"groups\":\"";
    for (const DocGroup group : record.groups) body += letter_of(group);
    body += '"';
  }
  if (!record.rewards.empty()) body += fmt::format(",\"rewards\":[{}]", fmt::join(record.rewards, ","));
  append_inputs(body, record);
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
  RecordReader reader(record);
  if (parse_json_events(line, reader) && reader.finish()) return std::nullopt;
  return RecordFailure{static_cast<std::int64_t>(std::max<std::size_t>(reader.position(), 1)),
                       reader.message()};
}

}  // namespace olrank
