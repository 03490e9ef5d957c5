#include "logs/log_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <deque>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/io/fingerprint.h"
#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "logs/log_reader.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

std::string ids_text(std::span<const DocId> ids) {
  std::string text;
  for (const DocId& id : ids) text += (text.empty() ? "" : ", ") + printable(id.text);
  return text;
}

std::string record_text(const FeedbackRecord& record, std::int64_t columns) {
  std::string head = fmt::format("round {}", record.round);
  if (record.time > 0) head += ", " + utc_text(record.time);
  head += ", query " + printable(record.query);
  if (!record.impression.empty()) head += ", impression " + printable(record.impression);
  if (record.snapshot >= 0) head += fmt::format(", by the model of round {}", record.snapshot);
  if (record.explored) head += *record.explored ? ", explored" : ", not explored";
  std::string text = wrapped(head, columns, 4) + "\n";
  const auto add = [&](std::string_view name, const std::string& content) {
    text += wrapped(fmt::format("  {}: {}", name, content), columns, 4) + "\n";
  };
  std::string shown;
  for (std::int64_t rank = 0; rank < record.shown(); ++rank) {
    shown += (rank > 0 ? ", " : "") + printable(record.docs[rank].text);
    if (record.clicks[rank] != 0) shown += '*';
  }
  add("shown", shown);
  if (const auto rest = std::span(record.docs).subspan(record.shown()); !rest.empty())
    add("not shown", ids_text(rest));
  if (!record.propensity.empty())
    add("propensity", fmt::format("{:.4g}", fmt::join(record.propensity, ", ")));
  if (!record.incumbent.empty()) add("incumbent", ids_text(record.incumbent));
  return text;
}

std::string line_without_inputs(const LogReader& log) {
  ordered_json line = try_parse_json(log.line());
  if (!line.is_object())
    throw DataError(log.file(), log.number(), 1, "The values of the line nest too deeply.");
  line.erase("inputs");
  line.erase("check");
  return dump_json(line) + "\n";
}

/// How a list and the order of an incumbent agree on the documents that both have.
struct Agreement {
  std::int64_t pairs = 0;  // of those documents
  std::int64_t same = 0;   // that both put in the same order
  bool is_same_list = false;

  double kendall_tau() const { return 2.0 * static_cast<double>(same) / static_cast<double>(pairs) - 1.0; }
};

Agreement agreement_of(const FeedbackRecord& record) {
  const auto shown = std::span(record.docs).first(record.shown());
  std::vector<std::int64_t> ranks;  // by the incumbent, in shown order
  for (const DocId& id : shown) {
    const auto found = std::find(record.incumbent.begin(), record.incumbent.end(), id);
    if (found != record.incumbent.end()) ranks.push_back(found - record.incumbent.begin());
  }
  Agreement agreement;
  for (std::size_t upper = 0; upper < ranks.size(); ++upper) {
    for (std::size_t lower = upper + 1; lower < ranks.size(); ++lower) {
      ++agreement.pairs;
      agreement.same += ranks[upper] < ranks[lower] ? 1 : 0;
    }
  }
  agreement.is_same_list = record.incumbent.size() >= shown.size() &&
                           std::equal(shown.begin(), shown.end(), record.incumbent.begin());
  return agreement;
}

struct Range {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = std::numeric_limits<std::int64_t>::min();

  void add(std::int64_t value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool empty() const { return least > most; }
};

ordered_json quotient(double sum, std::int64_t count) {
  return count == 0 ? ordered_json(nullptr) : ordered_json(sum / static_cast<double>(count));
}

/// Sums over the records of a log. Names are counted by their hash.
class LogCounts {
 public:
  void add(const FeedbackRecord& record) {
    ++records_;
    if (record.time > 0) times_.add(record.time);
    queries_.insert(fingerprint_of(record.query).low);
    for (const DocId& id : record.docs) docs_.insert(fingerprint_of(id.text).low);
    lengths_.add(record.shown());
    shown_ += record.shown();
    if (record.clicks.size() > ranks_.size()) ranks_.resize(record.clicks.size());
    std::int64_t clicks = 0;
    for (std::size_t rank = 0; rank < record.clicks.size(); ++rank) {
      ++ranks_[rank].lists;
      ranks_[rank].clicks += record.clicks[rank];
      clicks += record.clicks[rank];
    }
    clicks_ += clicks;
    without_clicks_ += clicks == 0 ? 1 : 0;
    with_propensity_ += record.propensity.empty() ? 0 : 1;
    with_unshown_ += record.has_unshown ? 1 : 0;
    if (record.explored) ++(*record.explored ? explored_ : not_explored_);
    if (record.snapshot >= 0) snapshots_.add(record.snapshot);
    if (!record.incumbent.empty()) add_incumbent(agreement_of(record));
  }

  ordered_json json() const {
    const auto range = [](const Range& of) {
      return of.empty() ? ordered_json(nullptr) : ordered_json({{"first", of.least}, {"last", of.most}});
    };
    ordered_json json = {{"records", records_}, {"time", nullptr}};
    if (!times_.empty())
      json["time"] = {{"first", utc_text(times_.least)}, {"last", utc_text(times_.most)}};
    json["queries"] = queries_.size();
    json["documents"] = docs_.size();
    json["shown"] = {{"mean", quotient(static_cast<double>(shown_), records_)},
                     {"least", records_ == 0 ? ordered_json(nullptr) : ordered_json(lengths_.least)},
                     {"most", records_ == 0 ? ordered_json(nullptr) : ordered_json(lengths_.most)}};
    json["clicks"] = clicks_;
    json["clicks_per_list"] = quotient(static_cast<double>(clicks_), records_);
    json["without_clicks"] = quotient(static_cast<double>(without_clicks_), records_);
    json["explored"] = quotient(static_cast<double>(explored_), explored_ + not_explored_);
    json["with_propensity"] = quotient(static_cast<double>(with_propensity_), records_);
    json["with_unshown"] = quotient(static_cast<double>(with_unshown_), records_);
    json["snapshots"] = range(snapshots_);
    json["incumbent"] = {{"share", quotient(static_cast<double>(incumbents_), records_)},
                         {"kendall_tau", quotient(tau_, compared_)},
                         {"same_list", quotient(static_cast<double>(same_lists_), incumbents_)}};
    json["ranks"] = ordered_json::array();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      json["ranks"].push_back(
          {{"rank", rank + 1},
           {"lists", ranks_[rank].lists},
           {"clicks", ranks_[rank].clicks},
           {"click_rate", quotient(static_cast<double>(ranks_[rank].clicks), ranks_[rank].lists)}});
    }
    return json;
  }

 private:
  struct AtRank {
    std::int64_t lists = 0;
    std::int64_t clicks = 0;
  };

  void add_incumbent(const Agreement& agreement) {
    ++incumbents_;
    same_lists_ += agreement.is_same_list ? 1 : 0;
    if (agreement.pairs == 0) return;
    ++compared_;
    tau_ += agreement.kendall_tau();
  }

  std::int64_t records_ = 0;
  Range times_;
  std::unordered_set<std::uint64_t> queries_;
  std::unordered_set<std::uint64_t> docs_;
  Range lengths_;
  std::int64_t shown_ = 0;
  std::int64_t clicks_ = 0;
  std::int64_t without_clicks_ = 0;
  std::int64_t with_propensity_ = 0;
  std::int64_t with_unshown_ = 0;
  std::int64_t explored_ = 0;
  std::int64_t not_explored_ = 0;
  Range snapshots_;
  std::int64_t incumbents_ = 0;
  std::int64_t same_lists_ = 0;
  std::int64_t compared_ = 0;
  double tau_ = 0.0;  // sum over compared lists
  std::vector<AtRank> ranks_;
};

std::string percent(const ordered_json& share) {
  return share.is_null() ? "unknown" : fmt::format("{:.1f} %", 100.0 * share.get<double>());
}

std::string decimal(const ordered_json& number) {
  return number.is_null() ? "unknown" : fmt::format("{:.2f}", number.get<double>());
}

constexpr std::string_view kRound = "{\"round\":";

std::string beginning(std::uint64_t round) {
  return fmt::format("{}{},", kRound, round);
}

/// A crash leaves the beginning of what was being written, or zeros where the file had grown but its bytes
/// were not yet on disk.
bool is_torn(std::string_view rest, std::uint64_t round) {
  const std::string expected = beginning(round);
  const std::string_view written = rest.substr(0, rest.find('\0'));
  return written.substr(0, expected.size()) == std::string_view(expected).substr(0, written.size());
}

std::string fault_of(std::string_view line, std::uint64_t round, std::int64_t valid_after) {
  const bool carriage_return = !line.empty() && line.back() == '\r';
  if (carriage_return && has_valid_check(line.substr(0, line.size() - 1))) {
    return "The line ends in CR LF, but was written with LF: something converted this file's line ends. "
           "Convert them back (sed -i 's/\\r$//' FILE), and the log is whole again.";
  }
  if (has_valid_check(line)) {
    return fmt::format(
        "The line is a valid record, but begins with {} instead of {}: records are missing, "
        "repeated or in another order.",
        line.substr(0, std::min(line.find(','), std::size_t{40})), beginning(round));
  }
  if (valid_after > 0) {
    return fmt::format("Record {} is damaged or missing, but {} {} it.", round,
                       counted(valid_after, "valid record"), valid_after == 1 ? "follows" : "follow");
  }
  if (line.substr(0, kRound.size()) == kRound)
    return fmt::format("Record {} is damaged: its checksum does not match.", round);
  return round == 1
             ? "The file is not a feedback log: not a single line of it is a record. If it is recorded "
               "feedback, move it elsewhere and learn it with --import-log."
             : "The line is not a record of a feedback log.";
}

/// Takes the lines of a log piece by piece.
class LogSurveyor {
 public:
  LogSurveyor(std::int64_t begin, std::size_t latest, std::uint64_t most) : latest_(latest), most_(most) {
    survey_.end = begin;
  }

  void add(std::string_view text, bool grows) {
    if (survey_.rest != LogSurvey::Rest::kNone) return count_rest(text);
    if (survey_.end > 0 && survey_.records == 0) {
      survey_.dropped = std::max<std::uint64_t>(round_of(text), 1) - 1;
      survey_.records = survey_.dropped;
    }
    while (!text.empty() && survey_.records < most_) {
      const std::size_t newline = text.find('\n');
      if (newline == std::string_view::npos || !is_next(text.substr(0, newline))) break;
      take(newline + 1);
      text.remove_prefix(newline + 1);
    }
    if (text.empty()) return;
    const bool one_line = grows && text.find('\n') == std::string_view::npos;
    if (survey_.records >= most_) {
      survey_.rest = LogSurvey::Rest::kLater;
    } else if (one_line && is_next(text)) {
      take(text.size());
      survey_.rest = LogSurvey::Rest::kNewline;
      return;
    } else {
      survey_.rest = one_line && is_torn(text, survey_.records + 1) ? LogSurvey::Rest::kTorn
                                                                    : LogSurvey::Rest::kDamage;
      first_of_rest_ = text.substr(0, text.find('\n'));
    }
    count_rest(text);
  }

  /// So many bytes cannot be read.
  void add_damage(const std::string& fault, std::int64_t bytes) {
    if (survey_.rest == LogSurvey::Rest::kNone) survey_.fault = fault;
    survey_.rest = LogSurvey::Rest::kDamage;
    survey_.rest_bytes += bytes;
  }

  LogSurvey finish() {
    survey_.latest_begin = begins_.empty() ? survey_.end : begins_.front();
    if (survey_.rest == LogSurvey::Rest::kDamage && survey_.fault.empty())
      survey_.fault = fault_of(first_of_rest_, survey_.records + 1, survey_.lost_records);
    return std::move(survey_);
  }

 private:
  bool is_next(std::string_view line) const {
    const std::string expected = beginning(survey_.records + 1);
    return line.substr(0, expected.size()) == expected && has_valid_check(line);
  }
  void take(std::size_t bytes) {
    begins_.push_back(survey_.end);
    if (begins_.size() > latest_) begins_.pop_front();
    ++survey_.records;
    survey_.end += static_cast<std::int64_t>(bytes);
  }
  void count_rest(std::string_view text) {
    survey_.rest_bytes += std::ssize(text);
    if (survey_.rest == LogSurvey::Rest::kLater)
      survey_.lost_records += std::count(text.begin(), text.end(), '\n');
    while (survey_.rest == LogSurvey::Rest::kDamage && !text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      ++(has_valid_check(line) ? survey_.lost_records : survey_.lost_lines);
    }
  }

  std::size_t latest_;
  std::uint64_t most_;
  LogSurvey survey_;
  std::deque<std::int64_t> begins_;  // of the latest records
  std::string first_of_rest_;        // a line
};

}  // namespace

bool LogFilter::takes(const FeedbackRecord& record) const {
  if (record.round < from_round.value_or(0)) return false;
  if (to_round && record.round > *to_round) return false;
  if (query && record.query != *query) return false;
  if (impression && record.impression != *impression) return false;
  const bool any = std::find(record.clicks.begin(), record.clicks.end(), 1) != record.clicks.end();
  return !clicked || *clicked == any;
}

void show_log(const std::filesystem::path& log, const LogFilter& filter, const OutputForm& form,
              const TextSink& out) {
  LogReader reader(log, false);
  FeedbackRecord record;
  std::int64_t left = filter.limit.value_or(std::numeric_limits<std::int64_t>::max());
  while (left > 0 && reader.next(record)) {
    if (!filter.takes(record)) continue;
    out(form.json ? line_without_inputs(reader) : record_text(record, form.columns));
    --left;
  }
}

ordered_json log_statistics(const std::filesystem::path& log) {
  LogReader reader(log, false);
  FeedbackRecord record;
  LogCounts counts;
  while (reader.next(record)) counts.add(record);
  ordered_json json = {{"log", reader.file()}};
  json.update(counts.json());
  return json;
}

std::string log_statistics_text(const ordered_json& statistics, std::int64_t columns) {
  const ordered_json& json = statistics;
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    text += padded_right(name, 28) + value + "\n";
  };
  add("records", fmt::format("{}", json["records"].get<std::int64_t>()));
  if (json["records"] == 0) return text;
  if (const ordered_json& time = json["time"]; !time.is_null())
    add("time", fmt::format("{} to {}", time["first"].get<std::string>(), time["last"].get<std::string>()));
  add("queries", fmt::format("{}", json["queries"].get<std::int64_t>()));
  add("documents", fmt::format("{}", json["documents"].get<std::int64_t>()));
  const ordered_json& shown = json["shown"];
  add("documents shown a list",
      fmt::format("{} ({} to {})", decimal(shown["mean"]), shown["least"].get<std::int64_t>(),
                  shown["most"].get<std::int64_t>()));
  add("clicks a list", decimal(json["clicks_per_list"]));
  add("lists without clicks", percent(json["without_clicks"]));
  add("explored", percent(json["explored"]));
  add("with probabilities", percent(json["with_propensity"]));
  add("with unshown documents", percent(json["with_unshown"]));
  if (const ordered_json& range = json["snapshots"]; !range.is_null())
    add("by the models of rounds",
        fmt::format("{} to {}", range["first"].get<std::int64_t>(), range["last"].get<std::int64_t>()));
  const ordered_json& incumbent = json["incumbent"];
  add("with an incumbent's order", percent(incumbent["share"]));
  if (!incumbent["same_list"].is_null()) {
    add("  Kendall's tau to it", decimal(incumbent["kendall_tau"]));
    add("  lists shown just so", percent(incumbent["same_list"]));
  }
  TextTable table({{"rank"}, {"lists"}, {"clicks"}, {"click rate"}});
  for (const ordered_json& rank : json["ranks"]) {
    table.add({fmt::format("{}", rank["rank"].get<std::int64_t>()),
               fmt::format("{}", rank["lists"].get<std::int64_t>()),
               fmt::format("{}", rank["clicks"].get<std::int64_t>()),
               fmt::format("{:.4f}", rank["click_rate"].get<double>())});
  }
  return text + "\n" + table.fitted(columns).text;
}

LogSurvey survey_log(const LogText& log, std::size_t latest, std::uint64_t most) {
  LogSurveyor surveyor(log.begin(), latest, most);
  for (std::int64_t position = log.begin();;) {
    std::string lines;
    try {
      lines = log.lines_at(position);
    } catch (const DataError& error) {
      std::int64_t next = position < log.grows_at() ? log.grows_at() : log.end();
      for (const LogText::Segment& segment : log.segments()) {
        if (segment.end > position) next = std::min(next, segment.end);
      }
      surveyor.add_damage(error.what(), next - position);
      position = next;
      continue;
    }
    if (lines.empty()) return surveyor.finish();
    surveyor.add(lines, position >= log.grows_at());
    position += std::ssize(lines);
  }
}

}  // namespace olrank
