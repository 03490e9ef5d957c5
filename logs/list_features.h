#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/data/normaliser.h"
#include "core/feedback/feedback_record.h"
#include "core/io/text_lines.h"

namespace olrank {

/// The columns of a CSV file by what they mean. A file has a column under the name that is given for it, or
/// else under its own.
class ColumnNames {
 public:
  /// "doc=sku,clicked=click": of list, query, doc, rank, clicked and time. Throws InvalidArgument.
  static ColumnNames parse(const std::string& text);

  /// The place of the column in the header; −1 if there is none.
  std::int64_t find(const std::vector<std::string>& header, const std::string& meaning) const;
  /// Returns what the column is called, for messages.
  std::string name_of(const std::string& meaning) const;

 private:
  std::map<std::string, std::string> given_;
};

/// The fields of the current line; the header's without a byte order mark. Throws DataError for a line that
/// is not CSV, is not UTF-8 or, unless `columns` is 0, has another number of fields.
void read_csv_line(const TextLines& lines, std::size_t columns, std::vector<std::string>& fields);

/// Raw features of documents, for queries or for all.
class ListFeatures {
 public:
  /// CSV with the columns query, doc and one for each feature, or JSON lines {"query", "doc", "features":
  /// [numbers]}; without a query, the document has these features in all queries that have none for it.
  /// Throws DataError for a document that appears twice, and for what is no finite number.
  static ListFeatures read(const std::filesystem::path& file, const ColumnNames& names);

  std::int64_t features() const { return features_; }
  /// Their names in the header of a CSV file; none in JSON lines.
  const std::vector<std::string>& names() const { return names_; }
  /// [features]; null for a document that the file does not have.
  const float* find(const std::string& query, const std::string& doc) const;

 private:
  void read_csv(TextLines& lines, const ColumnNames& names);
  void read_json_line(const TextLines& lines);
  void add(const TextLines& lines, const std::string* query, const std::string& doc,
           const std::vector<float>& values);

  std::int64_t features_ = 0;
  std::vector<std::string> names_;
  std::vector<float> values_;                               // [rows × features]
  std::unordered_map<std::string, std::int64_t> of_pairs_;  // rows by query, NUL and document
  std::unordered_map<std::string, std::int64_t> of_docs_;
};

/// Goes to the next line that is not blank; false at the end.
bool next_filled(TextLines& lines);

// Lines of JSON from other programs. What is wrong is a DataError with the line and the field.

nlohmann::ordered_json json_object(const TextLines& lines);

/// Throws if the object lacks the key.
const nlohmann::ordered_json& json_field(const TextLines& lines, const nlohmann::ordered_json& object,
                                         const std::string& key);
const nlohmann::ordered_json& json_array(const TextLines& lines, const nlohmann::ordered_json& value,
                                         const std::string& field);
/// A string that is not empty, or an integer.
DocId json_id(const TextLines& lines, const nlohmann::ordered_json& value, const std::string& field);

/// Milliseconds since 1970, as an integer or as a date and time in text.
std::int64_t json_time(const TextLines& lines, const nlohmann::ordered_json& value,
                       const std::string& field);
std::int64_t time_of(const TextLines& lines, const std::string& text, const std::string& field);

/// The inputs of a model by the names of their features.
struct NamedInputs {
  std::vector<std::string> names;  // in the model's order; empty: unknown
  /// They tell the input of each document of a list that lacks the feature; empty: 0.
  std::vector<float> defaults{};
  /// Features of lists that the model leaves out. "colour" also names "colour=red" and "colour[0]".
  std::vector<std::string> dropped{};
  std::vector<std::pair<std::string, std::string>> renamed{};  // from what a list says to the model's name
  std::string advice = "take the log of a service with the features of the model";  // on such a feature
  std::vector<std::string> unnamed{};  // features of lists without names; empty: the model's, in its order

  /// The name of the model's feature that a list calls `name`.
  std::string present_name(const std::string& name) const;
  bool drops(const std::string& name) const;
};

/// The names that tell features apart: none if they are plain (f1, f2, …) or numbers are among them, as in
/// a table without names of columns.
std::vector<std::string> telling_names(const std::vector<std::string>& names);

/// The names of a model's inputs, given those of its raw features.
std::vector<std::string> names_of_inputs(const std::vector<std::string>& features,
                                         const FittedNormaliser& normaliser);

/// Puts the inputs of lists in the order of a model by the names of their features. Where one side has no
/// names, positions decide.
class FeatureMap {
 public:
  explicit FeatureMap(NamedInputs inputs);

  bool has_names() const { return !text_.empty(); }
  const std::vector<std::string>& names() const { return inputs_.names; }
  /// Gives the list the model's inputs and names. Returns what is wrong with its names; empty if nothing
  /// is.
  std::string apply(FeedbackRecord& record);

 private:
  std::string find_places(const FeedbackRecord& record);

  NamedInputs inputs_;
  std::string text_;                  // of the names
  std::string latest_;                // names of the latest list that had others
  std::int64_t given_ = 0;            // how many they are
  std::vector<std::int64_t> places_;  // of each input in such a list; −1: it lacks the feature
};

}  // namespace olrank
