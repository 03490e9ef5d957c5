#include "logs/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "core/error.h"
#include "core/io/json.h"
#include "core/io/text_lines.h"
#include "core/text/message_text.h"

namespace olrank {
namespace {

constexpr std::size_t kRememberedBytes = std::size_t{32} << 20;  // of versions that were read from disk
constexpr std::size_t kLongestLine = std::size_t{256} << 20;
constexpr std::string_view kNormalisation = ",\"normalisation\":";

/// Takes a document from its line and skips unknown keys.
class DocumentReader final : public JsonHandler {
 public:
  bool read(std::string_view line, StoredDocument& document) {
    document_ = &document;
    document = {};
    more_ = 0;
    return parse_json_events(line, *this) && !document.id.text.empty() && document.version > 0;
  }

  std::int64_t more() const { return more_; }

  bool null() override { return depth_ > 0; }
  bool boolean(bool value) override {
    if (depth_ == 1 && key_ == "deleted") document_->is_deleted = value;
    return depth_ > 0;
  }
  bool number_integer(std::int64_t value) override {
    if (depth_ == 2 && key_ == "times") return document_->times.push_back(value), true;
    if (depth_ == 2) return add(static_cast<float>(value));
    if (key_ == "id") document_->id = {fmt::format("{}", value), true};
    if (key_ == "version") document_->version = value;
    if (key_ == "more") more_ = value;
    return depth_ > 0;
  }
  bool number_unsigned(std::uint64_t value) override {
    if (std::cmp_less_equal(value, std::numeric_limits<std::int64_t>::max()))
      return number_integer(static_cast<std::int64_t>(value));
    return depth_ == 2 && add(static_cast<float>(value));
  }
  bool number_float(const JsonNumber& number) override {
    float value = 0.0F;  // from the digits, as a detour over double may round twice
    const std::string_view text = number.digits;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return depth_ == 2 && add(value);
  }
  bool string(std::string& value) override {
    if (depth_ == 1 && key_ == "id") document_->id = {value, false};
    return depth_ > 0;
  }
  bool start_object() override { return depth_++ == 0; }
  bool key(std::string& name) override {
    key_ = name;
    return true;
  }
  bool end_object() override { return --depth_ == 0; }
  bool start_array() override { return depth_++ == 1; }
  bool end_array() override { return --depth_ == 1; }
  void invalid(std::size_t, Fault) override {}

 private:
  bool add(float value) {
    if (key_ == "columns") document_->columns.push_back(value);
    if (key_ == "fields") document_->fields.push_back(value);
    return std::isfinite(value);
  }

  StoredDocument* document_ = nullptr;
  std::string key_;
  std::int64_t more_ = 0;
  int depth_ = 0;
};

/// Returns what is between the number of a head's line and its checksum.
std::string_view text_of_head(std::string_view line) {
  const std::size_t begin = std::min(line.find(','), line.size());
  return line.substr(begin, line.rfind(',') - begin);
}

}  // namespace

std::string document_body(const StoredDocument& document, std::size_t more) {
  std::string body = ",\"id\":";
  append_json_id(body, document.id);
  body += fmt::format(",\"version\":{}", document.version);
  if (more > 0) body += fmt::format(",\"more\":{}", more);
  if (document.is_deleted) return body + ",\"deleted\":true";
  body += ",\"columns\":";
  append_numbers(body, document.columns);
  if (document.fields.empty()) return body;
  body += ",\"fields\":";
  append_numbers(body, document.fields);
  if (!document.times.empty()) body += fmt::format(",\"times\":[{}]", fmt::join(document.times, ","));
  return body;
}

std::string documents_head(std::string_view schema, const std::string& normalisation) {
  return fmt::format("{}{},\"schema\":\"{}\"", kNormalisation, normalisation, schema);
}

DocumentVersions::DocumentVersions(std::filesystem::path file)
    : file_(std::move(file)), text_(std::make_shared<const LogText>(file_)) {
  load(text_->end_of_lines(), {});
}

bool DocumentVersions::load(std::int64_t end, const Visit& visit) {
  const std::shared_ptr<const LogText> text = this->text();
  TextLines lines = TextLines::of_stream(log_stream(text), file_.string(), kLongestLine);
  for (std::int64_t position = text->begin(); position < end && lines.next();) {
    take_line(lines.line(), position, visit);
    position += std::ssize(lines.line()) + 1;
  }
  return !held_.empty();
}

void DocumentVersions::take_line(std::string_view line, std::int64_t begin, const Visit& visit) {
  ++lines_;
  const auto refuse = [&](const std::string& message) {
    throw DataError(file_.string(), lines_, 1, message);
  };
  if (!has_valid_check(line)) refuse("The line has changed since it was written: restore it from a copy.");
  if (line.substr(std::min(line.find(','), line.size())).starts_with(kNormalisation)) {
    // After a request that a kill has cut short, the head comes again.
    held_.clear();
    if (!heads_.empty() && heads_.back().text == text_of_head(line)) return;
    add_head(line, begin);
    if (visit) visit(nullptr, line);
    return;
  }
  Line next;
  DocumentReader reader;
  if (!reader.read(line, next.document) || heads_.empty()) refuse("The line is no version of a document.");
  if (!next.document.is_deleted && std::ssize(next.document.columns) != heads_.back().normaliser.features)
    refuse(fmt::format("The document has {}, but those of its service have {}.",
                       counted(next.document.columns.size(), "number"), heads_.back().normaliser.features));
  next.begin = begin;
  next.more = reader.more();
  // A kill within a request leaves its first documents, which were not acknowledged.
  if (!held_.empty() && held_.back().more != next.more + 1) held_.clear();
  held_.push_back(std::move(next));
  if (held_.back().more > 0) return;
  for (Line& one : held_) {
    add(one.document, one.begin);
    if (visit) visit(&one.document, line);
  }
  held_.clear();
}

void DocumentVersions::require_lines(const std::vector<std::string>& lines) const {
  DocumentVersions probe(file_, nullptr);
  probe.lines_ = lines_;
  if (!heads_.empty()) probe.heads_.push_back(heads_.back());
  for (const std::string& line : lines) probe.take_line(line, -1, {});
}

void DocumentVersions::add_head(std::string_view line, std::int64_t begin) {
  const std::string text = dump_json(parse_ordered_json(line).at("normalisation"));
  heads_.push_back({begin, std::string(text_of_head(line)), parse_normaliser(text, file_.string())});
}

void DocumentVersions::add(const StoredDocument& document, std::int64_t begin) {
  if (!document.is_deleted && begin >= 0) places_[document.id.text].push_back({document.version, begin});
}

std::shared_ptr<const StoredDocument> DocumentVersions::read(std::int64_t begin) const {
  const std::lock_guard lock(read_mutex_);
  if (const auto known = read_.find(begin); known != read_.end()) return known->second;
  constexpr std::int64_t kBytes = 4096;
  std::string text = this->text()->lines_at(begin, kBytes);
  text.resize(std::min(text.find('\n'), text.size()));
  auto document = std::make_shared<StoredDocument>();
  if (!has_valid_check(text) || !DocumentReader().read(text, *document))
    throw DataError(file_.string(), 0, 0, "The file has changed since it was opened.");
  if (read_bytes_ > kRememberedBytes) {
    read_.clear();
    read_bytes_ = 0;
  }
  read_bytes_ += sizeof(StoredDocument) + 2 * text.size();
  return read_.emplace(begin, std::move(document)).first->second;
}

bool DocumentVersions::Head::is_of(std::string_view schema) const {
  return text.ends_with(fmt::format("\"schema\":\"{}\"", schema));
}

const DocumentVersions::Head& DocumentVersions::head_of(const Place& place) const {
  const auto after =
      std::upper_bound(heads_.begin(), heads_.end(), place.begin,
                       [](std::int64_t begin, const Head& head) { return begin < head.begin; });
  return *std::prev(after);
}

std::shared_ptr<const StoredDocument> DocumentVersions::earlier(const std::string& id, std::int64_t version,
                                                                std::string_view head) const {
  const auto known = places_.find(id);
  if (known == places_.end()) return nullptr;
  for (const Place& place : known->second)
    if (place.version == version && head_of(place).text == head) return read(place.begin);
  return nullptr;
}

std::string DocumentVersions::apply(FeedbackRecord& record, bool* lacks) const {
  if (record.versions.empty()) return "";
  const std::shared_lock lock(mutex_);
  const std::size_t docs = record.versions.size();
  const Head* head = nullptr;
  std::vector<float> raw;
  std::shared_ptr<const StoredDocument> from_disk;
  for (std::size_t doc = 0; doc < docs; ++doc) {
    const std::int64_t version = record.versions[doc];
    if (version == 0) continue;
    const std::size_t own = record.docs.size();
    const std::string& id = doc < own ? record.docs[doc].text : record.rest[doc - own].text;
    const auto known = places_.find(id);
    const std::span<const Place> places =
        known == places_.end() ? std::span<const Place>() : std::span<const Place>(known->second);
    auto place =
        std::lower_bound(places.begin(), places.end(), version,
                         [](const Place& one, std::int64_t wanted) { return one.version < wanted; });
    // Each schema may have one of the same version.
    while (place != places.end() && std::next(place) != places.end() &&
           std::next(place)->version == version && !head_of(*place).is_of(record.schema))
      ++place;
    if (place == places.end() || place->version != version) {
      if (lacks != nullptr) *lacks = true;
      return fmt::format(
          "The record has version {} of document '{}', which {} lacks: put the file there that belongs to "
          "this log.",
          version, excerpt(id), file_.string());
    }
    const Head& own_head = head_of(*place);
    const std::int64_t features = own_head.normaliser.features;
    if (head == nullptr) raw.resize(docs * features);
    // A schema that came back has several heads of the same text.
    if (head != nullptr && head->text != own_head.text)
      return "The record has documents of different schemas.";
    head = &own_head;
    const StoredDocument* stored = std::next(place) == places.end() ? newest_in_memory(id) : nullptr;
    if (stored == nullptr) stored = (from_disk = read(place->begin)).get();
    const std::vector<float>& columns = stored->columns;
    std::copy(columns.begin(), columns.end(), raw.begin() + static_cast<std::int64_t>(doc) * features);
  }
  if (head == nullptr) return "The record has versions, but no stored document.";
  const FittedNormaliser* normaliser = &head->normaliser;
  for (const FeedbackRecord::GivenNumber& one : record.given) {
    if (one.column >= normaliser->features)
      return fmt::format("The record gives column {}, but its documents have {}.", one.column,
                         normaliser->features);
    raw[one.doc * normaliser->features + one.column] = one.value;
  }
  record.columns = normaliser->inputs();
  record.inputs.resize(docs * record.columns);
  normaliser->apply({raw.data(), static_cast<std::int64_t>(docs), normaliser->features},
                    record.inputs.data());
  record.inputs.resize(record.docs.size() * record.columns);
  record.versions.clear();
  record.rest.clear();
  record.given.clear();
  return "";
}

}  // namespace olrank
