#include "serve/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>

#include "core/io/json.h"
#include "core/runtime/log.h"
#include "serve/api_error.h"
#include "serve/open_lists.h"
#include "serve/search_response.h"

namespace olrank {
namespace {

std::string no_parent() {
  return {};
}

/// The names of a ranking request's fields: POST /v1/rerank brings the documents in a search response.
struct RankFieldNames {
  std::vector<std::string> top;
  std::array<std::string, 3> doc;
  std::string list;  // the path of the documents
  bool in_order;     // whether they come in the caller's own order
};
const RankFieldNames kRankNames = {
    {"query", "docs", "k", "explore", "user", "certainty", "incumbent", "allow_unknown", "query_features"},
    {"id", "features", "group"},
    "docs",
    false};
const RankFieldNames kDocumentNames = {{}, {"id", "features", "version"}, "documents", false};
const RankFieldNames kRerankNames = {{"query", "response", "k", "explore", "user", "certainty"},
                                     {SearchResponseReader::kId, SearchResponseReader::kFeatures, "group"},
                                     "response.hits.hits",
                                     true};

class RankReader final : public RequestReader {
 public:
  RankReader(const RequestLimits& limits, RankRequest& request, const RankFieldNames& names)
      : limits_(limits), request_(request), names_(names) {
    request.query.clear();
    request.docs.clear();
    request.values.clear();
    request.groups.clear();
    request.fields.clear();
    request.of_query.clear();
    if (limits.schema) request.of_query = limits.schema->empty_row(true);
    request.cutoff = limits.cutoff;
    request.explore = true;
    request.certainty = false;
    request.incumbent.clear();
    request.incumbent_docs.clear();
    request.user.clear();
    request.stored.clear();
    request.time = utc_milliseconds();
    request.list = names.list;
    if (stores()) place_ = kDocList;
  }

  /// The latest document of a PUT.
  StoredDocument take_document() {
    StoredDocument document;
    document.id = request_.docs.back();
    document.version = version_;
    document.times = std::move(times_);
    times_.clear();
    if (limits_.schema) {
      document.fields.assign(request_.fields.begin() + static_cast<std::int64_t>(row_),
                             request_.fields.end());
      document.columns.resize(limits_.features);
      limits_.schema->compute(request_.of_query.data(), document.fields.data(), document.columns.data());
    } else {
      document.columns.assign(request_.values.end() - limits_.features, request_.values.end());
    }
    return document;
  }

  void finish() {
    if ((seen_ >> kQuery & 1U) == 0) throw ApiError(422, "query", kMissing);
    if ((seen_ >> kDocs & 1U) == 0) throw ApiError(422, names_.top[kDocs], kMissing);
    add_stored();
    // A search may find nothing.
    if (request_.docs.empty() && !names_.in_order)
      throw ApiError(422, names_.list, "At least one document is required.");
    if (unknown_ > 0 && !allows_unknown_) {
      throw ApiError(
          422, names_.list,
          fmt::format("{} not stored: {}{}. PUT them to /v1/docs, send all of their features, or set "
                      "allow_unknown to rank them by defaults.{}",
                      unknown_ == 1 ? "One document is" : fmt::format("{} documents are", unknown_),
                      joined(unknown_ids_), std::cmp_greater(unknown_, unknown_ids_.size()) ? ", …" : "",
                      limits_.documents->is_shared()
                          ? " One that another process has just stored is known here "
                            "in a moment: ask again."
                          : ""));
    }
    if (limits_.counters != nullptr)
      limits_.counters->fill(request_.query, request_.docs, request_.time, request_.fields);
    if (limits_.schema) compute_columns();
    std::unordered_map<std::string_view, std::int32_t> ids;
    for (std::size_t doc = 0; doc < request_.docs.size(); ++doc) {
      if (!ids.emplace(request_.docs[doc].text, static_cast<std::int32_t>(doc)).second) {
        throw ApiError(422, fmt::format("{}[{}].{}", names_.list, doc, names_.doc[kId]),
                       fmt::format("Document '{}' appears twice.", request_.docs[doc].text));
      }
    }
    if (names_.in_order) {
      request_.incumbent = request_.docs;
      request_.incumbent_docs.resize(request_.docs.size());
      std::iota(request_.incumbent_docs.begin(), request_.incumbent_docs.end(), 0);
      return;
    }
    if ((seen_ >> kIncumbent & 1U) != 0) return check_incumbent(ids);
    if (limits_.incumbent)
      throw ApiError(422, "incumbent",
                     "The field is missing: this service has the incumbent order among its --arms.");
  }

  bool start_object() override {
    if (is_ignored()) return begin_ignored();
    if (place_ == kBody) {
      place_ = kTop;
    } else if (place_ == kDocList) {
      if (std::ssize(request_.docs) == limits_.docs && !stores())
        reject(fmt::format("A request may have at most {} documents.", limits_.docs), 413);
      request_.docs.emplace_back();
      doc_seen_ = 0;
      version_ = 0;
      doc_field_ = -1;
      place_ = kDoc;
    } else if (limits_.schema && (doc_has_features() || (place_ == kTop && field_ == kQueryFeatures))) {
      start_fields();
    } else if (doc_has_features()) {
      start_row();
      name_after_.resize(limits_.features + 1, nullptr);
      named_ = 0;
      place_ = kFeatureMap;
    } else {
      reject_type("object");
    }
    return true;
  }
  bool key(std::string& name) override {
    if (place_ == kIgnored) return true;
    if (place_ == kTop) {
      const std::size_t known =
          limits_.schema || names_.in_order ? names_.top.size() : std::size_t{kQueryFeatures};
      field_ = known_key(no_parent, name, std::span(names_.top).first(known), seen_);
    } else if (place_ == kFields) {
      find_schema_field(name);
    } else if (place_ == kDoc) {
      const auto parent = [&] { return last_doc() + "."; };
      if (name == names_.doc[kGroup] && limits_.groups == 0 && !stores())
        throw ApiError(422, parent() + name,
                       "This service has no groups; it was started without --groups.");
      const auto names = std::span(names_.doc).first(limits_.groups > 0 || stores() ? kGroup + 1 : kGroup);
      doc_field_ = known_key(parent, name, names, doc_seen_);
    } else {
      feature_ = feature_of(name);
    }
    return true;
  }
  bool end_object() override {
    if (place_ == kIgnored) return end_ignored();
    if (place_ == kFeatureMap) {
      place_ = kDoc;
    } else if (place_ == kFields) {
      place_ = of_query_ ? kTop : kDoc;
    } else if (place_ == kDoc) {
      if ((doc_seen_ >> kId & 1U) == 0) missing(kId);
      complete();
      if (limits_.groups > 0 && !stores() && (doc_seen_ >> kGroup & 1U) == 0) missing(kGroup);
      place_ = kDocList;
    } else {
      place_ = kBody;
    }
    return true;
  }
  bool start_array() override {
    if (is_ignored()) return begin_ignored();
    if (place_ == kTop && field_ == kDocs) {
      place_ = kDocList;
    } else if (place_ == kFields && schema_field_->kind == FeatureKind::kVector) {
      feature_ = 0;
      place_ = kVector;
    } else if (doc_has_features()) {
      if (limits_.schema)
        reject("This service has a schema: give the features as an object of names and values.");
      feature_ = 0;
      given_.clear();
      place_ = kFeatureList;
    } else if (place_ == kTop && field_ == kIncumbent) {
      place_ = kIncumbentOrder;
    } else {
      reject_type("array");
    }
    return true;
  }
  bool end_array() override {
    if (place_ == kIgnored) return end_ignored();
    if (place_ == kFeatureList) {
      if (feature_ != limits_.features) reject_count(feature_);
      place_ = kDoc;
    } else if (place_ == kVector) {
      place_ = kFields;
      if (feature_ != schema_field_->length) reject_length(feature_);
    } else {
      place_ = kTop;
    }
    return true;
  }

 private:
  enum Place {
    kBody,
    kTop,
    kDocList,
    kDoc,
    kFeatureList,
    kFeatureMap,
    kIncumbentOrder,
    kFields,
    kVector,
    kIgnored
  };
  enum TopField {
    kQuery,
    kDocs,
    kCutoff,
    kExplore,
    kUser,
    kCertainty,
    kIncumbent,
    kAllowUnknown,
    kQueryFeatures
  };                                         // as in RankFieldNames
  enum DocField { kId, kFeatures, kGroup };  // and kGroup is the version of a document to store
  std::string field() const override {
    switch (place_) {
      case kBody:
        return "body";
      case kTop:
        return field_ < 0 ? "body" : names_.top[field_];
      case kDocList:
        return fmt::format("{}[{}]", names_.list, request_.docs.size());
      case kDoc:
        if (doc_field_ < 0) return last_doc();
        return fmt::format("{}.{}", last_doc(), names_.doc[doc_field_]);
      case kFeatureList:
        if (limits_.names.empty() || feature_ == limits_.features)
          return fmt::format("{}.{}[{}]", last_doc(), names_.doc[kFeatures], feature_);
        [[fallthrough]];
      case kFeatureMap:
        return fmt::format("{}.{}.{}", last_doc(), names_.doc[kFeatures], limits_.feature(feature_));
      case kFields:
      case kIgnored:
        return schema_place();
      case kVector:
        return fmt::format("{}[{}]", schema_place(), feature_);
      case kIncumbentOrder:
        return fmt::format("incumbent[{}]", request_.incumbent.size());
    }
    return "body";
  }

  bool begin_ignored() {
    place_ = kIgnored;
    return ++ignored_depth_ > 0;
  }
  bool end_ignored() {
    if (--ignored_depth_ == 0) place_ = kFields;
    return true;
  }
  bool null() override { return is_ignored() || RequestReader::null(); }

  bool text(std::string& value) override {
    if (is_ignored()) return true;
    if (place_ == kTop && field_ == kQuery) {
      request_.query = limits_.normalise_query ? normalised_query(value) : value;
      if (request_.query.empty() && !value.empty())
        reject(
            "The text has nothing but white space, which --normalise-query removes: send a text that names "
            "the page.");
      check_text(request_.query, limits_.text_bytes);
    } else if (place_ == kTop && field_ == kUser) {
      check_text(value, limits_.text_bytes);
      request_.user = value;
    } else if (place_ == kDoc && doc_field_ == kId) {
      check_text(value, limits_.text_bytes);
      request_.docs.back() = {value, false};
    } else if (place_ == kDoc && doc_field_ == kGroup && !stores()) {
      request_.groups.push_back(as_group(value));
    } else if (place_ == kFields) {
      set_text(value);
    } else if (place_ == kIncumbentOrder) {
      add_to_incumbent({value, false});
    } else {
      reject_type("string");
    }
    return true;
  }
  bool number_float(const JsonNumber& given) override {
    if (is_ignored()) return true;
    if (place_ == kVector || (place_ == kFields && schema_field_->kind == FeatureKind::kNumber))
      return add_field(given.rounded());
    if (place_ != kFeatureList && place_ != kFeatureMap) return RequestReader::number_float(given);
    return add_feature(given.rounded());
  }
  bool number(double value, std::optional<std::int64_t> whole) override {
    if (is_ignored()) return true;
    switch (place_) {
      case kFeatureList:
      case kFeatureMap:
        return add_feature(static_cast<float>(value));
      case kVector:
        return add_field(static_cast<float>(value));
      case kFields:
        return set_number(value, whole);
      case kTop:
        if (field_ == kQuery && whole) {
          request_.query = fmt::format("{}", *whole);
          return true;
        }
        if (field_ == kUser && whole) {
          request_.user = fmt::format("{}", *whole);
          return true;
        }
        if (field_ == kCutoff) return set_cutoff(whole);
        break;
      case kDoc:
        if (doc_field_ == kId && whole) {
          request_.docs.back() = {fmt::format("{}", *whole), true};
          return true;
        }
        if (doc_field_ == kGroup && stores()) return set_version(whole);
        break;
      case kIncumbentOrder:
        if (!whole) break;
        add_to_incumbent({fmt::format("{}", *whole), true});
        return true;
      default:
        break;
    }
    reject_type("number");
  }
  bool flag(bool value) override {
    if (is_ignored()) return true;
    if (place_ != kTop || (field_ != kExplore && field_ != kCertainty && field_ != kAllowUnknown))
      reject_type("boolean");
    (field_ == kExplore     ? request_.explore
     : field_ == kCertainty ? request_.certainty
                            : allows_unknown_) = value;
    return true;
  }

  bool doc_has_features() const { return place_ == kDoc && doc_field_ == kFeatures; }
  bool stores() const { return names_.top.empty(); }
  bool set_version(std::optional<std::int64_t> whole) {
    constexpr std::int64_t kMost = std::int64_t{1} << 53;  // whole in a double, as some programs read it
    if (!whole || *whole < 1 || *whole > kMost) reject("A version must be an integer from 1 to 2^53.");
    version_ = *whole;
    return true;
  }
  /// A document that lacks numbers gets a row, into which add_stored() puts those of the stored one.
  void complete() {
    const bool has_features = (doc_seen_ >> kFeatures & 1U) != 0;
    if (has_features && std::find(given_.begin(), given_.end(), 0) == given_.end()) return;
    const DocumentStore* store = stores() || names_.in_order ? nullptr : limits_.documents;
    if (!has_store_) has_store_ = store != nullptr && !store->is_empty();
    if (!*has_store_) {
      if (!has_features) missing(kFeatures);
      return;
    }
    if (!has_features) limits_.schema ? start_fields() : start_row();
    lacking_.push_back(static_cast<std::int32_t>(request_.docs.size()) - 1);
    lacking_given_.insert(lacking_given_.end(), given_.begin(), given_.end());
    lacking_sent_.push_back(has_features ? 1 : 0);
  }
  /// Looks all of them up together, as each look into a large store waits for the memory.
  void add_stored() {
    if (lacking_.empty()) return;
    limits_.documents->find_newest(request_.docs, lacking_, request_.stored);
    as_stored_.assign(request_.docs.size(), 0);
    const std::size_t width = lacking_given_.size() / lacking_.size();
    std::vector<float>& rows = limits_.schema ? request_.fields : request_.values;
    for (std::size_t i = 0; i < lacking_.size(); ++i) {
      const char* given = lacking_given_.data() + i * width;
      const StoredDocument* stored = request_.stored[lacking_[i]].get();
      if (stored == nullptr) {
        if (lacking_sent_[i] != 0 && has_all_of_other(given)) continue;
        constexpr std::size_t kNamed = 5;
        if (unknown_++ < kNamed)
          unknown_ids_.push_back(fmt::format("'{}'", excerpt(request_.docs[lacking_[i]].text)));
        continue;
      }
      float* row = rows.data() + lacking_[i] * width;
      const std::vector<float>& numbers = limits_.schema ? stored->fields : stored->columns;
      as_stored_[lacking_[i]] = lacking_sent_[i] == 0 && stored->times.empty() ? 1 : 0;
      if (lacking_sent_[i] == 0) std::copy(numbers.begin(), numbers.end(), row);
      for (std::size_t place = 0; lacking_sent_[i] != 0 && place < numbers.size(); ++place) {
        if (given[place] == 0) row[place] = numbers[place];
      }
      for (std::size_t j = 0; j + 1 < stored->times.size(); j += 2) {
        const std::int64_t place = stored->times[j];
        if (given[place] == 0) row[place] = age_of(stored->times[j + 1]);
      }
    }
  }
  /// A document that is as it was stored has its columns already, unless they depend on more.
  void compute_columns() {
    const FeatureSchema& schema = *limits_.schema;
    const bool depends = limits_.counters != nullptr || request_.of_query != schema.empty_row(true);
    request_.values.resize(request_.docs.size() * limits_.features);
    for (std::size_t doc = 0; doc < request_.docs.size(); ++doc) {
      float* columns = request_.values.data() + doc * limits_.features;
      if (!depends && !as_stored_.empty() && as_stored_[doc] != 0) {
        std::copy_n(request_.stored[doc]->columns.begin(), limits_.features, columns);
      } else {
        schema.compute(request_.of_query.data(), request_.fields.data() + doc * schema.width(false),
                       columns);
      }
    }
  }
  float age_of(std::int64_t time) const {
    constexpr double kDay = 86'400'000.0;
    return static_cast<float>((static_cast<double>(request_.time) - static_cast<double>(time)) / kDay);
  }
  void require_room(std::size_t values) const {
    if (values > limits_.values)
      reject(fmt::format("A request may have at most {} features, all documents together.", limits_.values),
             413);
  }
  void start_row() {
    const std::size_t begin = request_.values.size();
    require_room(begin + static_cast<std::size_t>(limits_.features));
    request_.values.resize(begin + limits_.features, 0.0F);
    given_.assign(limits_.features, 0);
  }
  void start_fields() {
    of_query_ = place_ == kTop;
    std::vector<float>& row = of_query_ ? request_.of_query : request_.fields;
    const std::vector<float>& empty = limits_.schema->empty_row(of_query_);
    row_ = of_query_ ? 0 : row.size();
    const std::size_t rows = of_query_ || stores() ? 1 : request_.docs.size();
    require_room(rows * std::max(empty.size(), static_cast<std::size_t>(limits_.features)));
    row.resize(row_);
    row.insert(row.end(), empty.begin(), empty.end());
    given_.assign(empty.size(), 0);
    for (const SchemaFeature& feature : limits_.schema->features()) {  // no document has a counter
      if (feature.kind == FeatureKind::kCounter && !of_query_) given_[limits_.schema->place(feature)] = 1;
    }
    schema_field_ = nullptr;
    is_ignored_ = false;
    place_ = kFields;
  }
  void find_schema_field(const std::string& name) {
    schema_field_ = nullptr;
    const SchemaFeature* field = limits_.schema->find(name, of_query_);
    if (field == nullptr) field = limits_.schema->find_earlier(name, of_query_);
    if (field == nullptr) field = field_of_other(name);
    is_ignored_ = field == nullptr && (limits_.schema->drops(name) || is_of_other(name));
    if (is_ignored_) return;
    if (field == nullptr) {
      const std::vector<std::string> names = limits_.schema->fields(of_query_);
      const std::string near = near_name(excerpt(name), names);
      throw ApiError(422, schema_place() + "." + excerpt(name),
                     fmt::format("The schema has no feature '{}' that {} sends.{}", excerpt(name),
                                 of_query_ ? "a query" : "a document",
                                 near.empty() ? "" : fmt::format(" Did you mean '{}'?", near)));
    }
    schema_field_ = field;
    const std::int64_t place = limits_.schema->place(*field);
    if (given_[place] != 0) reject("The feature appears twice.");
    std::fill_n(given_.begin() + place, field->kind == FeatureKind::kVector ? field->length : 1, char{1});
  }
  std::shared_ptr<const FeatureSchema> other() const {
    return limits_.other_schema ? limits_.other_schema() : nullptr;
  }
  /// In a request for a schema that will take the place of this one, renamed features count, and new ones
  /// do not yet.
  const SchemaFeature* field_of_other(const std::string& name) const {
    const auto next = other();
    const SchemaFeature* renamed = next ? next->find(name, of_query_) : nullptr;
    for (std::size_t was = 0; renamed != nullptr && was < renamed->was.size(); ++was) {
      if (const SchemaFeature* field = limits_.schema->find(renamed->was[was], of_query_)) return field;
    }
    return nullptr;
  }
  bool is_of_other(const std::string& name) const {
    const auto schema = other();
    return schema && schema->find(name, of_query_) != nullptr;
  }
  /// Whether a document with these numbers has all that a request for the other schema can have.
  bool has_all_of_other(const char* given) const {
    const auto schema = limits_.schema ? other() : nullptr;
    if (!schema) return false;
    for (const SchemaFeature& feature : limits_.schema->features()) {
      if (!feature.is_sent() || feature.query || given[limits_.schema->place(feature)] != 0) continue;
      const bool is_known =
          schema->find(feature.name, false) != nullptr ||
          schema->find_earlier(feature.name, false) != nullptr ||
          std::any_of(feature.was.begin(), feature.was.end(),
                      [&](const std::string& was) { return schema->find(was, false) != nullptr; });
      if (is_known) return false;
    }
    return true;
  }
  bool is_ignored() const { return place_ == kIgnored || (place_ == kFields && is_ignored_); }
  std::string schema_place() const {
    const std::string parent =
        of_query_ ? names_.top[kQueryFeatures] : fmt::format("{}.{}", last_doc(), names_.doc[kFeatures]);
    return schema_field_ == nullptr ? parent : fmt::format("{}.{}", parent, schema_field_->name);
  }
  bool add_field(float value) {
    if (!std::isfinite(value)) reject("The number is out of range for a 32-bit float.");
    std::int64_t place = limits_.schema->place(*schema_field_);
    if (place_ == kVector) {
      if (feature_ == schema_field_->length) reject_length(feature_ + 1);
      place += feature_++;
    }
    (of_query_ ? request_.of_query : request_.fields)[row_ + place] = value;
    return true;
  }
  bool set_number(double value, std::optional<std::int64_t> whole) {
    switch (schema_field_->kind) {
      case FeatureKind::kNumber:
        return add_field(static_cast<float>(value));
      case FeatureKind::kCategory:
        if (whole) return set_text(fmt::format("{}", *whole));
        break;
      case FeatureKind::kTime:
        if (whole) return set_time(*whole);
        break;
      default:
        break;
    }
    reject(fmt::format("Feature '{}' is a {} and takes no such number.", schema_field_->name,
                       name_of(schema_field_->kind)));
  }
  bool set_text(const std::string& value) {
    switch (schema_field_->kind) {
      case FeatureKind::kCategory: {
        const auto& values = schema_field_->values;
        const auto known = std::find(values.begin(), values.end(), value);
        return add_field(known == values.end() ? -1.0F : static_cast<float>(known - values.begin()));
      }
      case FeatureKind::kText:  // characters, not bytes
        return add_field(static_cast<float>(std::count_if(value.begin(), value.end(), [](char byte) {
          return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
        })));
      case FeatureKind::kTime:
        if (const auto time = utc_milliseconds(value)) return set_time(*time);
        reject("A time must be milliseconds since 1970 or a text such as 2026-01-31T23:59:59Z.");
      default:
        reject(fmt::format("Feature '{}' is a {} and takes no text.", schema_field_->name,
                           name_of(schema_field_->kind)));
    }
  }
  bool set_time(std::int64_t time) {
    if (!stores()) return add_field(age_of(time));
    times_.insert(times_.end(), {limits_.schema->place(*schema_field_), time});
    return true;
  }
  [[noreturn]] void reject_length(std::int64_t count) const {
    reject(fmt::format("The vector has {}{}, but the schema gives '{}' a length of {}.",
                       count > schema_field_->length ? "at least " : "", counted(count, "number"),
                       schema_field_->name, schema_field_->length));
  }

  void add_to_incumbent(DocId id) {
    check_text(id.text, limits_.text_bytes);
    if (std::ssize(request_.incumbent) == limits_.docs)
      reject(fmt::format("A request may have at most {} documents.", limits_.docs), 413);
    request_.incumbent.push_back(std::move(id));
  }
  /// The IDs become those of the documents, which may be numbers where these are texts.
  void check_incumbent(std::unordered_map<std::string_view, std::int32_t>& left) const {
    for (std::size_t rank = 0; rank < request_.incumbent.size(); ++rank) {
      if (const auto found = left.find(request_.incumbent[rank].text); found != left.end()) {
        request_.incumbent[rank] = request_.docs[found->second];
        request_.incumbent_docs.push_back(found->second);
        left.erase(found);
        continue;
      }
      throw ApiError(422, fmt::format("incumbent[{}]", rank),
                     fmt::format("'{}' is no document of this request, or appears twice.",
                                 request_.incumbent[rank].text));
    }
    if (left.empty()) return;
    throw ApiError(422, "incumbent",
                   fmt::format("The order lacks {} of the {} documents, such as '{}'.", left.size(),
                               request_.docs.size(), left.begin()->first));
  }
  bool set_cutoff(std::optional<std::int64_t> whole) {
    if (!whole || *whole < 1) reject("k must be an integer of at least 1.");
    if (limits_.most_ranks > 0 && *whole > limits_.most_ranks)
      reject(fmt::format("k must be at most {}: this service balances the exposure of no more ranks.",
                         limits_.most_ranks));
    request_.cutoff = *whole;
    return true;
  }
  DocGroup as_group(const std::string& value) const {
    if (const auto group = group_named(value, limits_.groups)) return *group;
    reject(fmt::format("A document's group must be {}.", letters_of(limits_.groups)));
  }
  bool add_feature(float value) {
    const bool is_list = place_ == kFeatureList;
    if (is_list && feature_ == limits_.features) reject_count(feature_ + 1);
    if (!std::isfinite(value)) reject("The number is out of range for a 32-bit float.");
    if (is_list) {
      request_.values.push_back(value);
      ++feature_;
    } else {
      *(request_.values.end() - limits_.features + feature_) = value;
    }
    return true;
  }
  /// Index of a feature given by its name or by its number, from 1.
  std::int64_t feature_of(const std::string& name) {
    const auto place = [&] {
      return fmt::format("{}.{}.{}", last_doc(), names_.doc[kFeatures], excerpt(name));
    };
    std::int64_t index = 0;
    const Name*& expected = name_after_[named_];
    if (expected != nullptr && expected->first == name) {
      index = expected->second;
    } else if (const auto known = limits_.names.find(name); known != limits_.names.end()) {
      expected = &*known;
      index = known->second;
    } else {
      const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), index);
      const bool is_number = !name.empty() && rest == name.data() + name.size();
      if (!is_number && !limits_.names.empty())
        throw ApiError(422, place(), no_such_feature(name, limits_.names));
      if (!is_number || error != std::errc{} || index < 1 || index > limits_.features)
        throw ApiError(422, place(), fmt::format("Feature numbers go from 1 to {}.", limits_.features));
      --index;
    }
    if (given_[index] != 0)
      throw ApiError(422, place(), fmt::format("The feature '{}' appears twice.", limits_.feature(index)));
    given_[index] = 1;
    named_ = index + 1;
    return index;
  }
  [[noreturn]] void reject_count(std::int64_t count) const {
    const std::string more = count > limits_.features ? "at least " : "";
    const bool lacks_named = count < limits_.features && !limits_.names.empty();
    throw ApiError(
        422, fmt::format("{}.{}", last_doc(), names_.doc[kFeatures]),
        fmt::format(
            "The document has {}{} features, but the model expects {}{}.", more, count, limits_.features,
            lacks_named ? fmt::format("; it ends before '{}'", limits_.feature(count)) : std::string()));
  }
  [[noreturn]] void missing(DocField field) const {
    throw ApiError(422, fmt::format("{}.{}", last_doc(), names_.doc[field]), kMissing);
  }
  std::string last_doc() const { return fmt::format("{}[{}]", names_.list, request_.docs.size() - 1); }

  const RequestLimits& limits_;
  RankRequest& request_;
  const RankFieldNames& names_;
  Place place_ = kBody;
  int field_ = -1;  // before the first key
  int doc_field_ = -1;
  unsigned seen_ = 0;
  unsigned doc_seen_ = 0;
  std::int64_t feature_ = 0;  // index of the next feature: in a list, how many were read
  bool of_query_ = false;     // whether the fields are the query's
  std::size_t row_ = 0;       // where the row of fields begins
  const SchemaFeature* schema_field_ = nullptr;
  bool is_ignored_ = false;          // the latest field
  std::int64_t ignored_depth_ = 0;   // of lists and objects in its value
  std::int64_t version_ = 0;         // of a document to store
  std::vector<std::int64_t> times_;  // likewise, as in StoredDocument
  bool allows_unknown_ = false;
  std::optional<bool> has_store_;  // whether the service stores documents, once a document lacks numbers
  std::size_t unknown_ = 0;        // documents that need numbers and are not stored
  std::vector<std::string> unknown_ids_;  // of the first of them
  std::vector<char> given_;  // whether the document's object has the number; empty: a list of all
  // These say which documents lack numbers, which numbers each of them has, and whether it sent any.
  std::vector<std::int32_t> lacking_;
  std::vector<char> lacking_given_;
  std::vector<char> lacking_sent_;
  std::vector<char> as_stored_;  // [docs]: sends no numbers, and no time makes it older; empty: none is
  std::size_t named_ = 0;        // one more than the index of its latest feature; 0: none
  using Name = decltype(RequestLimits::names)::value_type;
  std::vector<const Name*> name_after_;  // by named_, in an earlier document: most have one order
};

}  // namespace

std::string ApiError::json() const {
  return fmt::format("{{\"error\":{{\"status\":{},\"field\":{}{},\"message\":{}}}}}\n", status_,
                     json_string(field_), code_.empty() ? "" : ",\"code\":" + json_string(code_),
                     json_string(what()));
}

std::string RequestLimits::feature(std::int64_t index) const {
  const auto named =
      std::find_if(names.begin(), names.end(), [&](const auto& one) { return one.second == index; });
  return named != names.end() ? named->first : fmt::format("{}", index + 1);
}

void parse_rank_request(std::string_view body, const RequestLimits& limits, RankRequest& request) {
  RankReader reader(limits, request, kRankNames);
  parse_json_events(body, reader);
  reader.finish();
}

void parse_rerank_request(std::string_view body, const RequestLimits& limits, RankRequest& request) {
  if (limits.groups > 0)
    throw ApiError(422, "response",
                   "This service has groups, which search responses do not name: send the documents to "
                   "/v1/rank.");
  if (limits.schema && !limits.schema->takes_numbers())
    throw ApiError(
        422, "response",
        "The schema of this service has more than numbers and counters, which are all that search "
        "responses bring: send the documents to /v1/rank.");
  RankReader rank(limits, request, kRerankNames);
  SearchResponseReader reader(limits, rank);
  parse_json_events(body, reader);
  rank.finish();
}

std::vector<StoredDocument> parse_documents(std::string_view body, const RequestLimits& limits) {
  RankRequest request;
  RankReader reader(limits, request, kDocumentNames);
  std::vector<StoredDocument> documents;
  std::unordered_set<std::string> ids;
  std::size_t values = 0;
  const auto blank = [](std::string_view text) {
    return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
  };
  // A document that is alone may have lines within.
  const std::string_view first = body.substr(0, body.find('\n'));
  const std::size_t last = first.find_last_not_of(" \t\r");
  const bool by_line = last == std::string_view::npos || first[last] == '}';
  while (!blank(body)) {
    const std::string_view line = by_line ? body.substr(0, body.find('\n')) : body;
    body.remove_prefix(std::min(line.size() + 1, body.size()));
    if (blank(line)) continue;
    parse_json_events(line, reader);
    documents.push_back(reader.take_document());
    constexpr std::size_t kOfDocument = 16;  // what a document takes beside its numbers, as numbers
    values += kOfDocument + documents.back().columns.size() + documents.back().fields.size();
    if (values > limits.values)
      throw ApiError(413, "documents",
                     fmt::format("These are too many documents for one request: send at most {} at a time.",
                                 documents.size() - 1));
    if (!ids.insert(documents.back().id.text).second)
      throw ApiError(422, fmt::format("documents[{}].id", documents.size() - 1),
                     fmt::format("Document '{}' appears twice.", documents.back().id.text));
    request.values.clear();
    request.fields.clear();
  }
  if (documents.empty()) throw ApiError(422, "body", "At least one document is required.");
  return documents;
}

std::string document_json(const StoredDocument& document, const RequestLimits& limits) {
  std::string out = "{\"id\":";
  append_json_id(out, document.id);
  out += fmt::format(",\"version\":{},\"features\":", document.version);
  if (limits.schema) return out + limits.schema->fields_json(document.fields, document.times) + "}";
  append_numbers(out, document.columns);
  return out + "}";
}

}  // namespace olrank
