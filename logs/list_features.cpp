#include "logs/list_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/text/text_table.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string pair_key(const std::string& query, const std::string& doc) {
  return query + '\0' + doc;
}

}  // namespace

ColumnNames ColumnNames::parse(const std::string& text) {
  static const std::array<std::string, 6> kMeanings = {"list", "query", "doc", "rank", "clicked", "time"};
  ColumnNames names;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t sign = part.find('=');
    const std::string meaning(part.substr(0, sign));
    if (std::find(kMeanings.begin(), kMeanings.end(), meaning) == kMeanings.end())
      throw_error<InvalidArgument>("--columns: What a column means {}", must_be_one_of(meaning, kMeanings));
    if (sign == std::string_view::npos || sign + 1 == part.size())
      throw_error<InvalidArgument>("--columns: '{}' has no name of a column: write {}=NAME.",
                                   printable(part), meaning);
    if (!names.given_.emplace(meaning, part.substr(sign + 1)).second)
      throw_error<InvalidArgument>("--columns: '{}' appears twice.", meaning);
  }
  return names;
}

std::string ColumnNames::name_of(const std::string& meaning) const {
  const auto found = given_.find(meaning);
  return found == given_.end() ? meaning : found->second;
}

std::int64_t ColumnNames::find(const std::vector<std::string>& header, const std::string& meaning) const {
  for (const std::string& name : {name_of(meaning), meaning}) {
    if (const auto found = std::find(header.begin(), header.end(), name); found != header.end())
      return found - header.begin();
  }
  return -1;
}

void read_csv_line(const TextLines& lines, std::size_t columns, std::vector<std::string>& fields) {
  std::string_view line = lines.line();
  if (lines.number() == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (!is_utf8(line)) lines.fail(line, "The line is not UTF-8.");
  if (const std::string wrong = split_csv(line, fields); !wrong.empty()) lines.fail(line, wrong);
  for (auto name = fields.begin(); columns == 0 && name != fields.end(); ++name) {
    if (!name->empty() && std::find(fields.begin(), name, *name) != name)
      lines.fail(line, "The header has the column '{}' twice.", excerpt(*name));
  }
  if (columns != 0 && fields.size() != columns)
    lines.fail(line, "The line has {}, and the header has {}.", counted(fields.size(), "field"), columns);
}

ListFeatures ListFeatures::read(const std::filesystem::path& file, const ColumnNames& names) {
  ListFeatures features;
  TextLines lines = TextLines::of_file(file);
  bool begun = false;
  while (next_filled(lines)) {
    if (!std::exchange(begun, true) && !lines.line().starts_with('{')) {
      features.read_csv(lines, names);
      break;
    }
    features.read_json_line(lines);
  }
  if (features.values_.empty()) throw DataError(file.string(), 0, 0, "The file has no features.");
  return features;
}

/// The lines after the header, at which `lines` is.
void ListFeatures::read_csv(TextLines& lines, const ColumnNames& names) {
  std::vector<std::string> header;
  read_csv_line(lines, 0, header);
  const std::int64_t query = names.find(header, "query");
  const std::int64_t doc = names.find(header, "doc");
  if (doc < 0)
    lines.refuse("The header has no column '{}': name it with --columns doc=NAME.", names.name_of("doc"));
  for (std::int64_t column = 0; column < std::ssize(header); ++column) {
    if (column != query && column != doc) names_.push_back(header[column]);
  }
  std::vector<std::string> fields;
  std::vector<float> values;
  while (next_filled(lines)) {
    read_csv_line(lines, header.size(), fields);
    values.clear();
    for (std::int64_t column = 0; column < std::ssize(fields); ++column) {
      if (column == query || column == doc) continue;
      const std::string& text = fields[column];
      float value = 0.0F;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
        lines.refuse("'{}' must be a finite number, not '{}'.", excerpt(header[column]), excerpt(text));
      values.push_back(value);
    }
    const bool of_all = query < 0 || fields[query].empty();
    add(lines, of_all ? nullptr : &fields[query], fields[doc], values);
  }
}

void ListFeatures::read_json_line(const TextLines& lines) {
  const nlohmann::ordered_json json = json_object(lines);
  const std::string query = json.contains("query") ? json_id(lines, json["query"], "query").text : "";
  const std::string doc = json_id(lines, json_field(lines, json, "doc"), "doc").text;
  std::vector<float> values;
  for (const nlohmann::ordered_json& number :
       json_array(lines, json_field(lines, json, "features"), "features")) {
    const auto value = number.is_number() ? number.get<float>() : std::numeric_limits<float>::quiet_NaN();
    if (!std::isfinite(value)) lines.refuse("'features[{}]' must be a finite number.", values.size());
    values.push_back(value);
  }
  add(lines, json.contains("query") ? &query : nullptr, doc, values);
}

void ListFeatures::add(const TextLines& lines, const std::string* query, const std::string& doc,
                       const std::vector<float>& values) {
  if (doc.empty()) lines.refuse("The line names no document.");
  if (values.empty()) lines.refuse("The document has no features.");
  if (values_.empty()) features_ = std::ssize(values);
  if (features_ != std::ssize(values))
    lines.refuse("The document has {}, and those before it have {}.", counted(values.size(), "feature"),
                 features_);
  const std::int64_t row = std::ssize(values_) / features_;
  const bool is_new = query == nullptr ? of_docs_.emplace(doc, row).second
                                       : of_pairs_.emplace(pair_key(*query, doc), row).second;
  if (!is_new) lines.refuse("Document '{}' appears twice.", excerpt(doc));
  values_.insert(values_.end(), values.begin(), values.end());
}

const float* ListFeatures::find(const std::string& query, const std::string& doc) const {
  const auto pair = of_pairs_.find(pair_key(query, doc));
  if (pair != of_pairs_.end()) return values_.data() + pair->second * features_;
  const auto alone = of_docs_.find(doc);
  return alone == of_docs_.end() ? nullptr : values_.data() + alone->second * features_;
}

bool next_filled(TextLines& lines) {
  while (lines.next()) {
    if (!lines.blank()) return true;
  }
  return false;
}

using nlohmann::ordered_json;

ordered_json json_object(const TextLines& lines) {
  std::optional<std::string> repeated;
  ordered_json json = try_parse_json(lines.line(), repeated);
  if (!json.is_object()) lines.refuse("The line is not a JSON object.");
  if (repeated) lines.refuse("The line has '{}' twice.", excerpt(*repeated));
  return json;
}

const ordered_json& json_field(const TextLines& lines, const ordered_json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end()) lines.refuse("'{}' is missing.", key);
  return *found;
}

const ordered_json& json_array(const TextLines& lines, const ordered_json& value,
                               const std::string& field) {
  if (!value.is_array()) lines.refuse("'{}' must be an array.", field);
  return value;
}

DocId json_id(const TextLines& lines, const ordered_json& value, const std::string& field) {
  if (value.is_number_integer()) return {value.dump(), true};
  if (value.is_string() && !value.get_ref<const std::string&>().empty())
    return {value.get<std::string>(), false};
  lines.refuse("'{}' must be an ID: an integer, or a string that is not empty.", field);
}

std::int64_t time_of(const TextLines& lines, const std::string& text, const std::string& field) {
  constexpr std::int64_t kFirst = 100'000'000'000;  // ms, in March 1973; as seconds, in the year 5138
  std::int64_t time = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), time);
  if (error == std::errc() && end == text.data() + text.size()) {
    if (time >= kFirst) return time;
    lines.refuse(
        "'{}' is {}, which are milliseconds of the year 1973 or before: "
        "give milliseconds since 1970, not seconds.",
        field, time);
  }
  if (const auto parsed = utc_milliseconds(text); parsed && *parsed > 0) return *parsed;
  lines.refuse(
      "'{}' must be milliseconds since 1970 or a time such as "
      "2026-01-31T23:59:59Z, not '{}'.",
      field, excerpt(text));
}

std::int64_t json_time(const TextLines& lines, const ordered_json& value, const std::string& field) {
  return time_of(lines, value.is_string() ? value.get<std::string>() : value.dump(), field);
}

std::string NamedInputs::present_name(const std::string& name) const {
  for (const auto& [before, now] : renamed) {
    if (before == name) return now;
  }
  return name;
}

bool NamedInputs::drops(const std::string& name) const {
  return std::any_of(dropped.begin(), dropped.end(), [&name](const std::string& one) {
    return name.starts_with(one) &&
           (name.size() == one.size() || name[one.size()] == '=' || name[one.size()] == '[');
  });
}

std::vector<std::string> telling_names(const std::vector<std::string>& names) {
  const bool has_number = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.find_first_not_of("0123456789") == std::string::npos;
  });
  return has_number || names == plain_feature_names(std::ssize(names)) ? std::vector<std::string>() : names;
}

std::vector<std::string> names_of_inputs(const std::vector<std::string>& features,
                                         const FittedNormaliser& normaliser) {
  if (features.empty() || normaliser.kept.empty()) return features;
  std::vector<std::string> names;
  for (const std::int64_t feature : normaliser.kept) names.push_back(features[feature]);
  return names;
}

FeatureMap::FeatureMap(NamedInputs inputs) : inputs_(std::move(inputs)) {
  if (!inputs_.names.empty()) text_ = feature_names_text(inputs_.names);
  inputs_.defaults.resize(inputs_.names.size());
}

std::string FeatureMap::apply(FeedbackRecord& record) {
  if (text_.empty() || record.inputs.empty()) return {};
  if (record.feature_names.empty() && !inputs_.unnamed.empty())
    record.feature_names = feature_names_text(inputs_.unnamed);
  if (record.feature_names.empty()) {
    if (record.columns == std::ssize(inputs_.names)) record.feature_names = text_;
    return {};
  }
  if (record.feature_names == text_ && record.columns == std::ssize(inputs_.names)) return {};
  if (record.feature_names != latest_) {
    latest_.clear();
    if (std::string wrong = find_places(record); !wrong.empty()) return wrong;
    latest_ = record.feature_names;
  }
  if (record.columns != given_)
    return fmt::format("The list has {} per document and {} in 'feature_names'.",
                       counted(record.columns, "input"), counted(given_, "name"));
  const std::int64_t width = std::ssize(places_);
  std::vector<float> mapped(record.docs.size() * width);
  for (std::int64_t doc = 0; doc < std::ssize(record.docs); ++doc) {
    const float* given = record.inputs.data() + doc * record.columns;
    for (std::int64_t input = 0; input < width; ++input)
      mapped[doc * width + input] = places_[input] < 0 ? inputs_.defaults[input] : given[places_[input]];
  }
  record.inputs = std::move(mapped);
  record.columns = width;
  record.feature_names = text_;
  return {};
}

std::string FeatureMap::find_places(const FeedbackRecord& record) {
  const std::vector<std::string> given = parse_feature_names(record.feature_names);
  given_ = std::ssize(given);
  std::unordered_map<std::string, std::int64_t> known;
  for (const std::string& name : inputs_.names) known.emplace(name, std::ssize(known));
  places_.assign(inputs_.names.size(), -1);
  for (std::int64_t place = 0; place < std::ssize(given); ++place) {
    const auto found = known.find(inputs_.present_name(given[place]));
    if (found == known.end()) {
      if (inputs_.drops(given[place])) continue;
      return fmt::format("The list has the feature '{}', which the model lacks: {}.", excerpt(given[place]),
                         inputs_.advice);
    }
    if (places_[found->second] >= 0)
      return fmt::format("The list has the feature '{}' twice.", excerpt(found->first));
    places_[found->second] = place;
  }
  return {};
}

}  // namespace olrank
