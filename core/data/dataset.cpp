#include "core/data/dataset.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/error.h"

namespace olrank {

Dataset::Dataset(Contents contents) : contents_(std::move(contents)) {
  assert(contents_.offsets.size() == contents_.qids.size() + 1);
  assert(contents_.weights.empty() || contents_.weights.size() == contents_.qids.size());
  const CompactFeatures& compact = contents_.compact;
  const std::size_t values = contents_.grades.size() * static_cast<std::size_t>(contents_.features);
  assert(is_sparse() || contents_.values.size() == (is_compact() ? 0 : values));
  assert(!is_sparse() || (contents_.row_begins.size() == contents_.grades.size() + 1 &&
                          contents_.values.size() == contents_.columns.size()));
  assert(!is_compact() ||
         compact.codes.size() == values * static_cast<std::size_t>(bytes_of(compact.type)));
  static_cast<void>(compact);
  static_cast<void>(values);
  assert(contents_.doc_names.empty() || contents_.doc_names.size() == contents_.grades.size());
  for (const std::uint8_t grade : contents_.grades) max_grade_ = std::max(max_grade_, int{grade});
}

void Dataset::refuse_sparse() {
  throw InvalidArgument(
      "This needs dense features, and the data are sparse: set data.layout = \"dense\", with enough "
      "memory for all of their zeros.");
}

void Dataset::copy_features(std::int64_t query, float* to) const {
  const CompactFeatures& compact = contents_.compact;
  const std::int64_t first = offset(query) * features();
  const auto count = static_cast<std::size_t>(docs_of(query) * features());
  if (!is_compact()) {
    std::copy_n(contents_.values.data() + first, count, to);
    return;
  }
  const auto width = static_cast<std::size_t>(2 * features());
  const auto bounds = compact.bounds.empty()
                          ? compact.bounds
                          : compact.bounds.subspan(static_cast<std::size_t>(query) * width, width);
  decode_features(compact.type, compact.codes.data() + first * bytes_of(compact.type), bounds, features(),
                  {to, count});
}

FeatureMatrix Dataset::read_features(std::int64_t query, std::vector<float>& buffer) const {
  if (!is_compact()) return rows_of(query);
  const auto count = static_cast<std::size_t>(docs_of(query) * features());
  if (buffer.size() < count) buffer.resize(count);
  copy_features(query, buffer.data());
  return {buffer.data(), docs_of(query), features()};
}

}  // namespace olrank
