#include "logs/shown_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/data/letor_reader.h"
#include "core/io/fingerprint.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

bool is_given(const ordered_json& object, const std::string& key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

/// IDs that differ.
std::vector<DocId> json_ids(const TextLines& lines, const ordered_json& value, const std::string& field) {
  std::vector<DocId> ids;
  std::unordered_set<std::string> seen;
  for (const ordered_json& one : json_array(lines, value, field)) {
    const std::string place = fmt::format("{}[{}]", field, ids.size());
    ids.push_back(json_id(lines, one, place));
    if (!seen.insert(ids.back().text).second)
      lines.refuse("'{}': Document '{}' is in the list twice.", place, excerpt(ids.back().text));
  }
  return ids;
}

/// Where a document was shown; −1 if it was not.
std::int64_t rank_of(const FeedbackRecord& record, const std::string& doc) {
  const auto end = record.docs.begin() + record.shown();
  const auto found =
      std::find_if(record.docs.begin(), end, [&](const DocId& shown) { return shown.text == doc; });
  return found == end ? -1 : found - record.docs.begin();
}

/// {"query", "docs", "clicks"} and what else a record has.
class JsonLists final : public ShownLists {
 public:
  explicit JsonLists(const ShownListSource& source)
      : lines_(TextLines::of_file(source.lists)), first_rank_(source.first_rank) {}

  bool next(ShownListRecord& list) override {
    if (!next_filled(lines_)) return false;
    list = {};
    list.line = lines_.number();
    FeedbackRecord& record = list.record;
    const ordered_json json = json_object(lines_);
    record.query = json_id(lines_, json_field(lines_, json, "query"), "query").text;
    record.docs = json_ids(lines_, json_field(lines_, json, "docs"), "docs");
    if (record.docs.empty()) lines_.refuse("'docs' is empty: a list has at least one document.");
    read_clicks(json_field(lines_, json, "clicks"), record);
    if (is_given(json, "impression"))
      record.impression = json_id(lines_, json["impression"], "impression").text;
    if (is_given(json, "time")) record.time = json_time(lines_, json["time"], "time");
    if (is_given(json, "propensity")) read_propensity(json["propensity"], record);
    if (is_given(json, "unshown")) {
      record.has_unshown = true;
      for (DocId& id : json_ids(lines_, json["unshown"], "unshown")) {
        if (rank_of(record, id.text) >= 0)
          lines_.refuse("'unshown': Document '{}' was shown.", excerpt(id.text));
        record.docs.push_back(std::move(id));
      }
    }
    if (is_given(json, "incumbent")) record.incumbent = json_ids(lines_, json["incumbent"], "incumbent");
    return true;
  }

 private:
  void read_clicks(const ordered_json& clicks, FeedbackRecord& record) const {
    const std::int64_t shown = std::ssize(record.docs);
    record.clicks.assign(shown, 0);
    std::int64_t number = 0;
    for (const ordered_json& click : json_array(lines_, clicks, "clicks")) {
      const std::string field = fmt::format("clicks[{}]", number++);
      const DocId id = json_id(lines_, click, field);
      std::int64_t rank = -1;
      if (id.is_number) {
        std::from_chars(id.text.data(), id.text.data() + id.text.size(), rank);
        rank = rank < first_rank_ ? -1 : rank - first_rank_;
        if (rank < 0 || rank >= shown)
          lines_.refuse(
              "'{}': Rank {} was not shown; ranks go from {} to {}. Documents are named by "
              "strings.",
              field, id.text, first_rank_, first_rank_ + shown - 1);
      } else if ((rank = rank_of(record, id.text)) < 0) {
        lines_.refuse("'{}': Document '{}' was not shown.", field, excerpt(id.text));
      }
      if (record.clicks[rank] != 0 && id.is_number)
        lines_.refuse(
            "'clicks' names rank {0} twice: clicks are ranks from {1}, or document IDs as strings, "
            "not a 0 or 1 for each document.",
            id.text, first_rank_);
      record.clicks[rank] = 1;
    }
  }

  void read_propensity(const ordered_json& values, FeedbackRecord& record) const {
    for (const ordered_json& value : json_array(lines_, values, "propensity")) {
      const double probability = value.is_number() ? value.get<double>() : 0.0;
      if (!(probability > 0.0 && probability <= 1.0))
        lines_.refuse("'propensity[{}]' must be above 0 and at most 1.", record.propensity.size());
      record.propensity.push_back(probability);
    }
    if (record.propensity.size() != record.docs.size())
      lines_.refuse("'propensity' has {} values, and 'docs' has {}.", record.propensity.size(),
                    record.docs.size());
  }

  TextLines lines_;
  std::int64_t first_rank_;
};

/// A row for each shown document.
class CsvLists final : public ShownLists {
 public:
  explicit CsvLists(const ShownListSource& source)
      : lines_(TextLines::of_file(source.lists)), first_rank_(source.first_rank) {
    if (!next_filled(lines_)) throw DataError(source.lists.string(), 0, 0, "The file has no header.");
    read_csv_line(lines_, 0, header_);
    const auto place = [&](const std::string& meaning) { return source.columns.find(header_, meaning); };
    list_ = place("list");
    query_ = place("query");
    doc_ = place("doc");
    rank_ = place("rank");
    clicked_ = place("clicked");
    time_ = place("time");
    if (query_ < 0) query_ = list_;
    for (const auto& [column, meaning] : {std::pair(query_, "query"), std::pair(doc_, "doc"),
                                          std::pair(rank_, "rank"), std::pair(clicked_, "clicked")}) {
      if (column < 0)
        lines_.refuse("The header has no column '{}': name it with --columns {}=NAME.",
                      source.columns.name_of(meaning), meaning);
    }
    has_row_ = read_row();
  }

  bool next(ShownListRecord& list) override {
    if (!has_row_) return false;
    list = {};
    list.line = row_.line;
    const std::string key = row_.list;
    if (!seen_.insert(fingerprint_of(key).low).second)
      lines_.refuse(
          "The rows of list '{}' are not together: sort the file by list{}.", excerpt(row_.name),
          list_ < 0 ? ", or name the column that tells lists apart with --columns list=NAME" : "");
    FeedbackRecord& record = list.record;
    record.query = row_.query;
    record.time = row_.time;
    if (list_ >= 0) record.impression = row_.name;
    rows_.clear();
    std::unordered_set<std::string> docs;
    do {
      if (row_.query != record.query)
        lines_.refuse("'{}' is '{}', but the list began with '{}'.", header_[query_], excerpt(row_.query),
                      excerpt(record.query));
      if (!docs.insert(row_.doc).second)
        lines_.refuse("'{}': Document '{}' is in the list twice.", header_[doc_], excerpt(row_.doc));
      rows_.push_back(row_);
      has_row_ = read_row();
    } while (has_row_ && row_.list == key);
    std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.rank < b.rank; });
    for (std::size_t at = 0; at < rows_.size(); ++at) {
      const auto expected = first_rank_ + static_cast<std::int64_t>(at);
      if (rows_[at].rank != expected)
        throw_data_error(lines_.file(), rows_[at].line, 1,
                         "'{}' is {}, but the next rank of list '{}' is {}: ranks begin at {} "
                         "(--first-rank) and go on by one.",
                         header_[rank_], rows_[at].rank, excerpt(rows_[at].name), expected, first_rank_);
      record.docs.push_back({rows_[at].doc, false});
      record.clicks.push_back(rows_[at].clicked ? 1 : 0);
    }
    return true;
  }

 private:
  struct Row {
    std::string list;  // what tells lists apart
    std::string name;  // of the list, for messages
    std::string query;
    std::string doc;
    std::int64_t rank = 0;
    bool clicked = false;
    std::int64_t time = 0;
    std::int64_t line = 0;
  };

  bool read_row() {
    if (!next_filled(lines_)) return false;
    read_csv_line(lines_, header_.size(), fields_);
    row_.line = lines_.number();
    row_.query = text_at(query_);
    row_.doc = text_at(doc_);
    row_.rank = rank();
    row_.clicked = is_clicked();
    row_.time = time_ < 0 || fields_[time_].empty() ? 0 : time_of(lines_, fields_[time_], header_[time_]);
    // Without a column for it, the rows of a list have one query and time.
    row_.name = text_at(list_ < 0 ? query_ : list_);
    row_.list = list_ < 0 ? fmt::format("{} {}", row_.time, row_.query) : row_.name;
    return true;
  }
  std::string text_at(std::int64_t column) const {
    if (fields_[column].empty()) lines_.refuse("'{}' is empty.", header_[column]);
    return fields_[column];
  }
  std::int64_t rank() const {
    const std::string& text = fields_[rank_];
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      lines_.refuse("'{}' must be an integer, not '{}'.", header_[rank_], excerpt(text));
    return value;
  }
  bool is_clicked() const {
    const std::string& text = fields_[clicked_];
    if (text == "1" || text == "true") return true;
    if (text != "0" && text != "false")
      lines_.refuse("'{}' must be 0, 1, false or true, not '{}'.", header_[clicked_], excerpt(text));
    return false;
  }

  TextLines lines_;
  std::int64_t first_rank_;
  std::vector<std::string> header_;
  std::int64_t list_ = -1;
  std::int64_t query_ = -1;
  std::int64_t doc_ = -1;
  std::int64_t rank_ = -1;
  std::int64_t clicked_ = -1;
  std::int64_t time_ = -1;
  std::vector<std::string> fields_;
  Row row_;  // the next one
  bool has_row_ = false;
  std::vector<Row> rows_;                   // of a list
  std::unordered_set<std::uint64_t> seen_;  // lists, by hash
};

/// User Behavior Insights, version 1.3: documents of its queries and events, or search hits with them as
/// _source.
class UbiLists final : public ShownLists {
 public:
  explicit UbiLists(const ShownListSource& source)
      : lines_(TextLines::of_file(source.lists)),
        events_(source.events.string()),
        first_rank_(source.first_rank) {
    read_events(source);
  }

  bool next(ShownListRecord& list) override {
    while (next_filled(lines_)) {
      const ordered_json json = document(lines_);
      const std::string query_id = json_id(lines_, json_field(lines_, json, "query_id"), "query_id").text;
      if (!seen_.insert(fingerprint_of(query_id).low).second)
        lines_.refuse("'query_id': Query '{}' appears twice.", excerpt(query_id));
      list = {};
      list.line = lines_.number();
      FeedbackRecord& record = list.record;
      for (const char* hits : {"query_response_hit_ids", "query_response_object_ids"}) {
        if (record.docs.empty() && is_given(json, hits)) record.docs = json_ids(lines_, json[hits], hits);
      }
      if (record.docs.empty()) {
        ++empty_lists_;
        continue;
      }
      record.impression = query_id;
      record.query = json_id(lines_, json_field(lines_, json, "user_query"), "user_query").text;
      if (is_given(json, "timestamp")) record.time = json_time(lines_, json["timestamp"], "timestamp");
      take_clicks(query_id, record);
      return true;
    }
    return false;
  }

  std::int64_t empty_lists() const override { return empty_lists_; }
  std::int64_t stray_clicks() const override {
    std::int64_t clicks = without_query_;
    for (const auto& [query_id, of_query] : clicks_) clicks += std::ssize(of_query);
    return clicks;
  }

 private:
  struct Click {
    std::string doc;        // empty if the event names only a rank
    std::int64_t rank = 0;  // as the event calls it
    std::int64_t line = 0;
  };

  static ordered_json document(const TextLines& lines) {
    ordered_json json = json_object(lines);
    if (!json.contains("_source")) return json;
    ordered_json source = json["_source"];
    if (!source.is_object()) lines.refuse("'_source' must be an object.");
    return source;
  }

  void read_events(const ShownListSource& source) {
    TextLines lines = TextLines::of_file(source.events);
    std::set<std::string> others;
    bool any = false;
    while (next_filled(lines)) {
      const ordered_json json = document(lines);
      const std::string action = json_id(lines, json_field(lines, json, "action_name"), "action_name").text;
      if (std::find(source.actions.begin(), source.actions.end(), action) == source.actions.end()) {
        if (others.size() < 10) others.insert(printable(action));
        continue;
      }
      any = true;
      if (is_given(json, "query_id")) {
        clicks_[json_id(lines, json["query_id"], "query_id").text].push_back(click_of(lines, json));
      } else {
        ++without_query_;
      }
    }
    if (any || others.empty()) return;
    const std::vector<std::string> names(others.begin(), others.end());
    throw_data_error(events_, 0, 0,
                     "No event has the action {}, but the file has {}: name those that count as "
                     "clicks with --action.",
                     joined(source.actions, " or "), joined(names));
  }

  static Click click_of(const TextLines& lines, const ordered_json& json) {
    Click click;
    click.line = lines.number();
    const ordered_json attributes =
        is_given(json, "event_attributes") ? json["event_attributes"] : ordered_json::object();
    const auto inner = [&](const std::string& outer, const std::string& key) -> ordered_json {
      if (!attributes.is_object() || !is_given(attributes, outer)) return nullptr;
      const ordered_json& object = attributes[outer];
      return object.is_object() && is_given(object, key) ? object[key] : ordered_json(nullptr);
    };
    if (const ordered_json id = inner("object", "object_id"); !id.is_null()) {
      click.doc = json_id(lines, id, "event_attributes.object.object_id").text;
      return click;
    }
    const ordered_json rank = inner("position", "ordinal");
    if (rank.is_null())
      lines.refuse(
          "'event_attributes.object.object_id' is missing, and so is "
          "'event_attributes.position.ordinal'.");
    if (!rank.is_number_integer())
      lines.refuse("'event_attributes.position.ordinal' must be an integer, not {}.", excerpt(rank.dump()));
    click.rank = rank.get<std::int64_t>();
    return click;
  }

  void take_clicks(const std::string& query_id, FeedbackRecord& record) {
    record.clicks.assign(record.docs.size(), 0);
    const auto clicks = clicks_.find(query_id);
    if (clicks == clicks_.end()) return;
    for (const Click& click : clicks->second) {
      std::int64_t rank = click.rank < first_rank_ ? -1 : click.rank - first_rank_;
      if (!click.doc.empty()) {
        rank = rank_of(record, click.doc);
        if (rank < 0)
          throw_data_error(
              events_, click.line, 1,
              "'event_attributes.object.object_id': Document '{}' was not shown for query '{}'.",
              excerpt(click.doc), excerpt(query_id));
      } else if (rank < 0 || rank >= std::ssize(record.docs)) {
        throw_data_error(events_, click.line, 1,
                         "'event_attributes.position.ordinal': Rank {} was not shown for query '{}'; ranks "
                         "go from {} to {}.",
                         click.rank, excerpt(query_id), first_rank_,
                         first_rank_ + std::ssize(record.docs) - 1);
      }
      record.clicks[rank] = 1;
    }
    clicks_.erase(clicks);
  }

  TextLines lines_;
  std::string events_;
  std::int64_t first_rank_;
  std::unordered_map<std::string, std::vector<Click>> clicks_;  // by query_id, until its list is read
  std::unordered_set<std::uint64_t> seen_;                      // query IDs, by hash
  std::int64_t empty_lists_ = 0;
  std::int64_t without_query_ = 0;
};

/// LETOR text whose grades are clicks: the documents of a query in the order in which they were shown. One
/// without a name has its features as ID.
class LetorLists final : public ShownLists {
 public:
  explicit LetorLists(const ShownListSource& source)
      : file_(source.lists.string()),
        pool_(1),
        data_(read_letor(file_, {.refuse_wide = true, .layout = FeatureLayout::kDense}, pool_)) {}

  bool next(ShownListRecord& list) override {
    if (query_ == data_.queries()) return false;
    const std::int64_t begin = data_.offset(query_);
    const std::int64_t docs = data_.docs_of(query_);
    const FeatureMatrix matrix = data_.features_of(query_);
    list = {};
    list.line = begin + 1;
    list.features = {matrix.values, static_cast<std::size_t>(docs * matrix.features)};
    FeedbackRecord& record = list.record;
    record.query = data_.qid(query_);
    require_utf8(record.query, list.line);
    std::unordered_set<std::string> seen;
    for (std::int64_t doc = 0; doc < docs; ++doc) {
      std::string name(data_.doc_name(begin + doc));
      if (name.empty()) name = feature_name(matrix.doc(doc));
      require_utf8(name, list.line);
      if (!seen.insert(name).second) {
        throw_data_error(file_, list.line, 1, "Document '{}' is in the list of query '{}' twice.",
                         excerpt(name), excerpt(record.query));
      }
      record.docs.push_back({std::move(name), false});
      record.clicks.push_back(data_.grades_of(query_)[doc] > 0 ? 1 : 0);
    }
    ++query_;
    return true;
  }

  std::int64_t features() const override { return data_.features(); }

 private:
  /// JSON, which the log is, has no other text.
  void require_utf8(std::string_view name, std::int64_t line) const {
    if (!is_utf8(name))
      throw DataError(file_, line, 1,
                      "A name in this list is not UTF-8: convert the file, with iconv, say.");
  }
  static std::string feature_name(std::span<const float> row) {
    Fingerprinter identity;
    identity.add(row);
    return identity.value().hex().substr(0, 16);
  }

  std::string file_;
  ThreadPool pool_;
  Dataset data_;
  std::int64_t query_ = 0;
};

}  // namespace

std::unique_ptr<ShownLists> ShownLists::open(const ShownListSource& source) {
  if (source.format == ShownListFormat::kCsv) return std::make_unique<CsvLists>(source);
  if (source.format == ShownListFormat::kUbi) return std::make_unique<UbiLists>(source);
  if (source.format == ShownListFormat::kLetor) return std::make_unique<LetorLists>(source);
  return std::make_unique<JsonLists>(source);
}

}  // namespace olrank
