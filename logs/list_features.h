#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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

}  // namespace olrank
