#include "core/data/join.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/data/doc_table.h"
#include "core/io/folder.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::int64_t kBlock = 1024;  // documents a task copies
constexpr double kShareOfDisk = 0.9;   // of the free space that one file may take

std::string readable(std::int64_t bytes) {
  return readable_bytes(static_cast<double>(bytes));
}

void append_query(const Dataset& data, std::int64_t query, bool named, QueryNumbers& queries,
                  DocTable& table) {
  const auto grades = data.grades_of(query);
  table.grades.insert(table.grades.end(), grades.begin(), grades.end());
  const std::uint32_t number = queries.number_of(data.qid(query));
  append_run(table.query_runs, {number, static_cast<std::uint32_t>(grades.size())});
  const std::vector<float>& weights = data.contents().weights;
  const float weight = weights.empty() ? 1.0F : weights[query];
  if (number == table.weights.size()) table.weights.push_back(weight);
  if (table.weights[number] != weight) {
    throw_error<InvalidArgument>(
        "Query '{}' has documents of the weights {} and {}: give them one weight, that of the query's "
        "list.",
        data.qid(query), table.weights[number], weight);
  }
  if (!named) return;
  for (std::int64_t doc = data.offset(query); doc < data.offset(query + 1); ++doc) {
    table.name_text += data.doc_name(doc);
    table.name_ends.push_back(table.name_text.size());
  }
}

void copy_rows(const Dataset& data, std::int64_t from, std::int64_t count, float* to,
               std::int64_t features) {
  if (features == data.features()) {
    std::memcpy(to, data.all_features().doc(from).data(),
                static_cast<std::size_t>(count * features) * sizeof(float));
    return;
  }
  for (std::int64_t doc = from; doc < from + count; ++doc, to += features) {
    const auto row = data.all_features().doc(doc);
    std::memcpy(to, row.data(), row.size_bytes());
  }
}

}  // namespace

Dataset join_parts(std::vector<Dataset> parts, ExecutionContext& context) {
  if (parts.size() == 1) return std::move(parts.front());
  const bool sparse =
      std::any_of(parts.begin(), parts.end(), [](const Dataset& part) { return part.is_sparse(); });
  DocTable table;
  QueryNumbers queries;
  std::int64_t docs = 0;
  bool named = false;
  bool reordered = false;
  for (const Dataset& part : parts) {
    docs += part.docs();
    reordered |= part.reordered();
    table.features = std::max(table.features, part.features());
    named |= part.has_doc_names();
  }
  const std::shared_ptr<FeatureStore> store = parts.front().contents().store;
  if (sparse) {
    table.rows.emplace();
  } else {
    table.values = feature_memory(store.get(), docs, table.features);
  }
  float* to = table.values.as<float>().data();
  while (!parts.empty()) {
    const Dataset part = std::move(parts.front());
    parts.erase(parts.begin());
    for (std::int64_t query = 0; query < part.queries(); ++query)
      append_query(part, query, named, queries, table);
    if (sparse) {
      table.rows->append_rows(part.all_rows());
      continue;
    }
    context.for_blocks(part.docs(), kBlock, [&](std::int64_t begin, std::int64_t end, int) {
      copy_rows(part, begin, end - begin, to + begin * table.features, table.features);
    });
    to += part.docs() * table.features;
  }
  table.qids = queries.take_names();
  Dataset::Contents contents = gathered(std::move(table), context.pool()).contents();
  contents.reordered |= reordered;
  contents.store = store;
  return Dataset(std::move(contents));
}

Dataset widened(const Dataset& data, std::int64_t features, ExecutionContext& context) {
  if (features == data.features()) return data;
  if (data.is_sparse()) {
    Dataset::Contents contents = data.contents();
    contents.features = features;
    contents.fingerprint = content_fingerprint(contents, context.pool());
    return Dataset(std::move(contents));
  }
  MappedMemory matrix = feature_memory(data.contents().store.get(), data.docs(), features);
  float* const values = matrix.as<float>().data();
  context.for_blocks(data.docs(), kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    copy_rows(data, begin, end - begin, values + begin * features, features);
  });
  return with_features(data, {features, std::move(matrix)}, context.pool());
}

Dataset select_queries(const Dataset& data, const std::vector<std::int64_t>& queries,
                       ExecutionContext& context) {
  DocTable table;
  QueryNumbers numbers;
  table.features = data.features();
  for (const std::int64_t query : queries) {
    append_query(data, query, data.has_doc_names(), numbers, table);
  }
  // A data set that is left without a single name has no names.
  if (table.name_text.empty()) table.name_ends.clear();
  if (data.is_sparse()) {
    table.rows.emplace();
    for (const std::int64_t query : queries) table.rows->append_rows(data.rows_of(query));
  } else {
    table.values = feature_memory(data.contents().store.get(), table.docs(), table.features);
    float* to = table.values.as<float>().data();
    for (const std::int64_t query : queries) {
      copy_rows(data, data.offset(query), data.docs_of(query), to, table.features);
      to += data.docs_of(query) * table.features;
    }
  }
  table.qids = numbers.take_names();
  return gathered(std::move(table), context.pool());
}

std::int32_t DocFinder::by_name(std::int64_t query, std::string_view name) {
  const auto [known, is_new] = sorted_.try_emplace(query);
  std::vector<std::int32_t>& docs = known->second;
  const auto name_of = [&](std::int32_t doc) { return data_.doc_name(data_.offset(query) + doc); };
  if (is_new) {
    for (std::int32_t doc = 0; doc < data_.docs_of(query); ++doc) {
      if (!name_of(doc).empty()) docs.push_back(doc);
    }
    std::sort(docs.begin(), docs.end(),
              [&](std::int32_t a, std::int32_t b) { return name_of(a) < name_of(b); });
  }
  const auto found =
      std::lower_bound(docs.begin(), docs.end(), name,
                       [&](std::int32_t doc, std::string_view sought) { return name_of(doc) < sought; });
  if (found == docs.end() || name_of(*found) != name) return kUnknown;
  const auto next = found + 1;
  return next != docs.end() && name_of(*next) == name ? kAmbiguous : *found;
}

std::int32_t DocFinder::by_label(std::int64_t query, std::string_view label) {
  const std::int32_t named = by_name(query, label);
  std::int32_t index = 0;
  const auto [end, failed] = std::from_chars(label.data(), label.data() + label.size(), index);
  const bool written_so = failed == std::errc() && end == label.data() + label.size() &&
                          (label.size() == 1 || label.front() != '0') && label.front() != '-';
  const bool unnamed =
      written_so && index < data_.docs_of(query) && data_.doc_name(data_.offset(query) + index).empty();
  if (!unnamed) return named;
  return named == kUnknown ? index : kAmbiguous;
}

MappedMemory FeatureStore::take(std::size_t bytes) {
  const auto size = static_cast<std::int64_t>(bytes);
  if (left_.fetch_sub(size) >= size) return MappedMemory::anonymous(bytes);
  left_ += size;
  MappedMemory memory = take_in_file(bytes);
  const std::string sentence = fmt::format(
      "Features of {} go beyond --max-memory {}, to a file in '{}' that ends with this process.",
      readable(size), readable(max_bytes_), folder_.string());
  static std::atomic<bool> told{false};
  if (told.exchange(true)) {
    log_detail("{}", sentence);
  } else {
    log_info("{} So do further ones; results do not change.", sentence);
  }
  return memory;
}

MappedMemory FeatureStore::take_in_file(std::size_t bytes, std::string_view what) const {
  make_folder(folder_);
  struct statfs system {};
  if (::statfs(folder_.c_str(), &system) == 0 && system.f_type == TMPFS_MAGIC) {
    throw_error<IoError>(
        "{} of {} exceed --max-memory {}, and '{}', where they would go, is memory itself (tmpfs): choose "
        "a cache folder (--cache or XDG_CACHE_HOME) on a disk, or raise --max-memory.",
        what, readable(static_cast<std::int64_t>(bytes)), readable(max_bytes_), folder_.string());
  }
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(folder_, unknown);
  if (!unknown && static_cast<double>(bytes) > kShareOfDisk * static_cast<double>(space.available)) {
    throw_error<IoError>(
        "{} of {} exceed --max-memory {} and would go to a file in '{}', but its disk has only {} free: "
        "free some space, choose a cache folder (--cache or XDG_CACHE_HOME) on another disk, or raise "
        "--max-memory.",
        what, readable(static_cast<std::int64_t>(bytes)), readable(max_bytes_), folder_.string(),
        readable(static_cast<std::int64_t>(space.available)));
  }
  return MappedMemory::of_unnamed_file(folder_, bytes);
}

MappedMemory feature_memory(FeatureStore* store, std::int64_t docs, std::int64_t features) {
  const std::size_t bytes = static_cast<std::size_t>(docs * features) * sizeof(float);
  return store != nullptr ? store->take(bytes) : MappedMemory::anonymous(bytes);
}

Dataset stored_by(std::shared_ptr<FeatureStore> store, Dataset data, const std::string& name) {
  if (store == nullptr) return data;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const std::int64_t bytes = data.rows_of(query).bytes();
    if (bytes <= store->max_bytes()) continue;
    throw_data_error(name, 0, 0,
                     "The {} documents of query '{}' need {}, but --max-memory allows {}. Raise "
                     "--max-memory: a query must fit into it.",
                     data.docs_of(query), data.qid(query), readable(bytes), readable(store->max_bytes()));
  }
  Dataset::Contents contents = data.contents();
  contents.store = std::move(store);
  return Dataset(std::move(contents));
}

}  // namespace olrank
