#include "core/data/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/data/data_loader.h"
#include "core/data/dataset_cache.h"
#include "core/data/dataset_file.h"
#include "core/data/normaliser.h"
#include "core/data/query_weights.h"
#include "core/error.h"
#include "core/io/text_lines.h"

namespace olrank {
namespace {

constexpr std::size_t kShown = 5;  // findings of one kind

struct DocLines {
  std::vector<std::int64_t> line;                               // of each document, in the data set's order
  std::vector<std::pair<std::string, std::int64_t>> scattered;  // queries that come back, and where
};

/// The ID of the query in a line that has been read without complaint; empty if it has no document.
std::string_view qid_in(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t grade = line.find_first_not_of(kBlanks);
  if (grade == std::string_view::npos || line[grade] == '#') return {};
  const std::size_t word =
      line.find("qid:", grade) + 4;  // right after the grade, so the rest is not searched
  return line.substr(word, line.find_first_of(" \t\r#", word) - word);
}

/// The line of each document of a file that has been read without complaint.
DocLines find_lines(const std::string& path) {
  std::unordered_map<std::string, std::vector<std::int64_t>> lines_of;
  std::vector<const std::vector<std::int64_t>*> in_order;
  std::unordered_set<std::string> told;
  DocLines found;
  std::string last;
  std::vector<std::int64_t>* lines = nullptr;  // of the last query
  TextLines text = TextLines::of_file(path, std::size_t{1} << 40);
  while (text.next()) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";
    const bool marked = text.number() == 1 && text.line().starts_with(kMark);
    const std::string_view qid = qid_in(text.line().substr(marked ? kMark.size() : 0));
    if (qid.empty()) continue;
    if (lines == nullptr || qid != last) {
      last = qid;
      lines = &lines_of[last];
      if (lines->empty()) {
        in_order.push_back(lines);
      } else if (told.insert(last).second) {
        found.scattered.emplace_back(last, text.number());
      }
    }
    lines->push_back(text.number());
  }
  for (const std::vector<std::int64_t>* of_query : in_order)
    found.line.insert(found.line.end(), of_query->begin(), of_query->end());
  return found;
}

class Inspector {
 public:
  Inspector(const Dataset& data, DocLines lines, ExecutionContext& context)
      : data_(data), lines_(std::move(lines)), context_(context) {}

  Inspection inspect() {
    count();
    find_constant();
    for (std::int64_t query = 0; query < data_.queries(); ++query) find_duplicates(query);
    find_scattered();
    add_summaries();
    return std::move(result_);
  }

 private:
  void count() {
    result_.queries = data_.queries();
    result_.docs = data_.docs();
    result_.features = data_.features();
    result_.fingerprint = data_.fingerprint();
    if (const std::vector<float>& weights = data_.contents().weights; !weights.empty()) {
      const auto [least, most] = std::minmax_element(weights.begin(), weights.end());
      result_.weights.emplace(*least, *most);
    }
    std::vector<std::int64_t> docs;
    for (std::int64_t query = 0; query < data_.queries(); ++query) {
      docs.push_back(data_.docs_of(query));
      result_.qids.emplace_back(data_.qid(query));
      const auto grades = data_.grades_of(query);
      if (*std::max_element(grades.begin(), grades.end()) == 0) ++result_.queries_without_relevant;
    }
    for (const std::uint8_t grade : data_.all_grades()) ++result_.grades[grade];
    for (std::int64_t doc = 0; doc < data_.docs(); ++doc)
      result_.named_docs += data_.doc_name(doc).empty() ? 0 : 1;
    std::sort(docs.begin(), docs.end());
    result_.fewest_docs = docs.front();
    result_.most_docs = docs.back();
    const std::size_t half = docs.size() / 2;
    const auto middle = static_cast<double>(docs[half]);
    result_.median_docs =
        docs.size() % 2 == 1 ? middle : (middle + static_cast<double>(docs[half - 1])) / 2.0;
  }

  void find_constant() {
    for (const std::int64_t feature : constant_features(data_, context_)) {
      const float value = data_.all_features().doc(0)[feature];
      (value == 0.0F ? result_.missing_features : result_.constant_features).push_back(feature + 1);
    }
  }

  void find_duplicates(std::int64_t query) {
    std::unordered_map<std::string_view, std::int64_t> first_of_row;
    std::unordered_map<std::string_view, std::int64_t> first_of_name;
    for (std::int64_t doc = data_.offset(query); doc < data_.offset(query + 1); ++doc) {
      const auto row = data_.all_features().doc(doc);
      const std::string_view bytes(reinterpret_cast<const char*>(row.data()), row.size_bytes());
      if (const auto [first, is_new] = first_of_row.try_emplace(bytes, doc); !is_new) {
        ++result_.duplicate_docs;
        const bool contradicts = grade(doc) != grade(first->second);
        if (contradicts) {
          ++result_.contradicting_docs;
          add("contradicting", doc, first->second,
              fmt::format("same features as {{}}, but grade {} instead of {}", grade(doc),
                          grade(first->second)));
        } else {
          add("duplicate", doc, first->second, "same features and grade as {}");
        }
      }
      const std::string_view name = data_.doc_name(doc);
      if (name.empty()) continue;
      if (const auto [first, is_new] = first_of_name.try_emplace(name, doc); !is_new) {
        ++result_.duplicate_names;
        add("name", doc, first->second, "same document name as {}");
      }
    }
  }

  void find_scattered() {
    result_.queries_scattered = std::ssize(lines_.scattered);
    for (std::size_t i = 0; i < std::min(kShown, lines_.scattered.size()); ++i) {
      result_.findings.push_back(
          {lines_.scattered[i].second,
           fmt::format("Query {} continues after documents of other queries.", lines_.scattered[i].first)});
    }
  }

  void add_summaries() {
    if (std::count_if(result_.grades.begin(), result_.grades.end(), [](std::int64_t n) { return n > 0; }) ==
        1) {
      result_.findings.push_back(
          {0, "All documents have the same grade: nothing can be learned or evaluated."});
    }
    std::stable_sort(result_.findings.begin(), result_.findings.end(),
                     [](const auto& a, const auto& b) { return a.line < b.line; });
  }

  int grade(std::int64_t doc) const { return data_.all_grades()[doc]; }

  std::int64_t line(std::int64_t doc) const { return lines_.line.empty() ? 0 : lines_.line[doc]; }

  /// `sentence` has a place for the earlier document.
  void add(const std::string& kind, std::int64_t doc, std::int64_t earlier, const std::string& sentence) {
    if (shown_[kind]++ >= kShown) return;
    const std::string other =
        line(earlier) > 0 ? fmt::format("line {}", line(earlier)) : fmt::format("document {}", earlier + 1);
    result_.findings.push_back(
        {line(doc), fmt::format("Query {}, document {}: {}.", data_.qid(query_of(doc)), doc + 1,
                                fmt::format(fmt::runtime(sentence), other))});
  }

  std::int64_t query_of(std::int64_t doc) const {
    const auto offsets = data_.offsets();
    return std::upper_bound(offsets.begin(), offsets.end(), doc) - offsets.begin() - 1;
  }

  const Dataset& data_;
  DocLines lines_;
  ExecutionContext& context_;
  Inspection result_;
  std::map<std::string, std::size_t> shown_;
};

}  // namespace

Inspection inspect_file(const std::string& path, const LetorOptions& options, ExecutionContext& context) {
  MissingValues missing;
  DocLines lines;
  const auto read = [&]() -> Dataset {
    if (path == "-") return read_letor(path, options, context.pool(), &missing);
    std::error_code failed;
    if (!std::filesystem::is_regular_file(path, failed))
      return read_letor(path, options, context.pool(), &missing);
    MappedMemory memory = MappedMemory::of_file(path);
    if (is_dataset_file(memory.text())) {
      Dataset data = read_dataset_memory(std::move(memory), path, context.pool());
      return data.is_sparse() ? with_all_zeros(data, path, options, context.pool()) : data;
    }
    Dataset data =
        read_letor_bytes(memory.text(), path, options, context.pool(), &missing, weights_file_of(path));
    lines = find_lines(path);
    return data;
  };
  const Dataset data = read();
  Inspection result = Inspector(data, std::move(lines), context).inspect();
  result.null_values = missing;
  return result;
}

std::vector<std::string> files_to_inspect(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return {path};
  std::vector<std::string> files;
  for (std::int64_t fold = 1; fold <= count_folds(path); ++fold) {
    const PartFiles parts = find_part_files(path, fold);
    for (const auto* part : {&parts.train, &parts.vali, &parts.test}) {
      for (const std::string& file : *part) {
        if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
      }
    }
  }
  return files;
}

std::vector<WidthFinding> compare_widths(const std::string& folder, const std::vector<InspectedFile>& all) {
  const auto width_of = [&](const std::vector<std::string>& files) {
    std::int64_t width = 0;
    for (const InspectedFile& inspected : all) {
      if (inspected.found && std::find(files.begin(), files.end(), inspected.path) != files.end()) {
        width = std::max(width, inspected.found->features);
      }
    }
    return width;
  };
  std::vector<WidthFinding> findings;
  for (std::int64_t fold = 1; fold <= count_folds(folder); ++fold) {
    const PartFiles parts = find_part_files(folder, fold);
    const std::int64_t train = width_of(parts.train);
    for (const auto& [name, files] : {std::pair("validation", parts.vali), std::pair("test", parts.test)}) {
      const std::int64_t width = width_of(files);
      if (train == 0 || width == 0 || width == train) continue;
      const bool wider = width > train;
      findings.push_back(
          {fmt::format("{}, fold {}: The {} set has {} features, {} {} than the training set ({}); {}.",
                       folder, fold, name, width, std::abs(width - train), wider ? "more" : "fewer", train,
                       wider ? "a run would fail" : "missing features count as 0"),
           wider});
    }
  }
  return findings;
}

}  // namespace olrank
