#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/settings/enum_names.h"
#include "core/settings/schema.h"
#include "logs/list_features.h"

namespace olrank {

enum class FeatureKind { kNumber, kCategory, kVector, kText, kTime, kCounter };

template <>
struct EnumNames<FeatureKind> {
  static constexpr std::array values =
      names_in_order<FeatureKind>("number", "category", "vector", "text", "time", "counter");
};

/// One feature of a schema: a field of requests, or what is computed from other features.
struct SchemaFeature {
  static constexpr std::string_view kClickRate = "click-rate", kClicks = "clicks", kViews = "views",
                                    kAge = "age", kByDocument = "document", kByQuery = "query";
  static constexpr std::int64_t kEntries = 1'000'000;

  std::string name;
  FeatureKind kind = FeatureKind::kNumber;
  double missing = 0.0;             // the value of a document that lacks it; of a time its age in days
  std::vector<std::string> values;  // of a category
  std::int64_t length = 0;          // of a vector
  bool query = false;               // whether the vector comes with the query
  bool input = true;                // whether the model gets it
  std::string from;                 // the feature whose value this one transforms
  std::vector<std::string> dot;     // the vectors of the query and of the document
  std::vector<double> clip;         // lowest and highest value
  bool log1p = false;
  // These belong to a counter.
  std::string of;                   // what it tells of a document; empty: the feature is no counter
  std::string by{kByDocument};      // or of a document of this query
  std::optional<double> half_life;  // of views and clicks, in days; none: they count for ever
  std::vector<double> prior;        // clicks and views that every document has; empty: the default
  std::int64_t limit = kEntries;    // documents, or documents of a query, that it remembers
  std::vector<std::string> was;     // its earlier names

  bool is_computed() const { return !from.empty() || !dot.empty(); }
  bool is_sent() const { return !is_computed() && kind != FeatureKind::kCounter; }
  std::vector<double> prior_or_default() const {
    return prior.empty() ? std::vector<double>{1.0, 10.0} : prior;
  }
  bool is_number() const { return kind != FeatureKind::kCategory && kind != FeatureKind::kVector; }
  static const Schema& schema();
};

/// The features of a service: what requests send, and how they become the numbers that the model's
/// normalisation gets, its columns. A category is one column for each of its values, "colour=red", and a
/// vector one for each number, "taste[0]".
class FeatureSchema {
 public:
  /// Throws InvalidArgument, with the place in the file, for what is no schema.
  static FeatureSchema parse(std::string_view toml, const std::string& origin);

  /// TOML; parse() returns an equal schema.
  std::string text() const;
  std::string digest() const;
  const std::vector<SchemaFeature>& features() const { return features_; }
  const std::vector<std::string>& columns() const { return columns_; }
  /// The columns of a document that lacks everything.
  std::vector<float> columns_without_fields() const;
  /// The columns by name, for lists whose features had other names.
  NamedInputs named_columns() const;

  // Requests send numbers in rows: those of the query, and those of each document.

  std::int64_t width(bool of_query) const { return std::ssize(empty_[of_query ? 1 : 0]); }
  const std::vector<float>& empty_row(bool of_query) const { return empty_[of_query ? 1 : 0]; }
  /// The field of requests with this name; null if there is none.
  const SchemaFeature* find(const std::string& name, bool of_query) const;
  std::int64_t place(const SchemaFeature& field) const { return places_[&field - features_.data()]; }
  std::vector<std::string> fields(bool of_query) const;
  bool has_counters() const;
  /// Whether requests send a number for each column that is no counter, and nothing else.
  bool takes_numbers() const;
  /// The feature that had this name earlier, as find(); null if there is none.
  const SchemaFeature* find_earlier(const std::string& name, bool of_query) const;
  bool drops(const std::string& name) const;
  /// Makes a row and times of a document of the schema before, and their columns, those of this one.
  void convert(const FeatureSchema& before, std::vector<float>& row, std::vector<std::int64_t>& times,
               std::vector<float>& columns) const;
  /// A document as a request would send it, with texts as their lengths. By turns `times` has the place of
  /// a field and its time.
  std::string fields_json(const std::vector<float>& row, const std::vector<std::int64_t>& times) const;
  /// Writes the columns of a document.
  void compute(const float* query, const float* doc, float* columns) const;

 private:
  void check(const SchemaFeature& feature, const std::string& origin) const;
  void order(const std::vector<std::string>& origins);
  void add_columns();
  const SchemaFeature* any(const std::string& name) const;

  std::vector<SchemaFeature> features_;
  std::unordered_map<std::string, std::size_t> index_;  // of each feature, by its name
  std::vector<std::string> dropped_;
  std::vector<std::string> columns_;
  std::vector<std::int64_t> places_;   // of each feature in its row; −1: it is computed
  std::vector<std::size_t> computed_;  // the order in which features have their values
  std::vector<float> empty_[2];        // the rows of documents and of queries without fields
};

/// Says in words how the columns change, given those before and their schema, which is null without one.
/// Throws InvalidArgument for a change that the lists so far do not allow.
std::string schema_change(const std::vector<std::string>& names_before, const FeatureSchema* before,
                          const FeatureSchema& after);

}  // namespace olrank
