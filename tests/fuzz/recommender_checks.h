#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "jobs/recommending/recommender_file.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/promise.h"
#include "tests/fuzz/state_bytes.h"

namespace olrank::fuzz {

/// The cores of mter have room for the cube of these before a file that lacks them is refused.
inline bool has_large_core(std::string_view bytes) {
  constexpr std::string_view kName = "mter.shape";
  constexpr std::string_view kShape = "mter.shape l 40:";
  constexpr std::int64_t kLargest = 64;
  std::array<std::int64_t, 5> shape{};
  for (std::size_t at = bytes.find(kName); at != std::string_view::npos; at = bytes.find(kName, at + 1)) {
    const std::string_view entry = bytes.substr(at);
    if (!entry.starts_with(kShape) || entry.size() < kShape.size() + sizeof shape) return true;
    std::memcpy(shape.data(), entry.data() + kShape.size(), sizeof shape);
    if (*std::max_element(shape.begin(), shape.end()) > kLargest) return true;
  }
  return false;
}

/// A model of `recommend train`: an error, or a recommender that scores and explains, and that its own
/// bytes reproduce. With the first byte odd, the bytes are entries, and those behind a form feed are the
/// model's.
inline void check_recommender_file(unsigned choice, std::string_view bytes) {
  const bool pack = choice % 2 != 0;
  if (has_large_core(bytes)) return;
  std::string packed;
  if (pack) {
    StateWriter model;
    StateWriter state;
    const std::string_view outer = bytes.substr(0, bytes.find('\f'));
    put_entries(state, outer);
    put_entries(model, bytes.substr(std::min(outer.size() + 1, bytes.size())));
    state.put_text("model", model.bytes());
    packed = state.bytes();
  }
  const MemoryFile file(pack ? std::string_view(packed) : bytes);
  is_taken<Error>([&] {
    const LoadedRecommender loaded = read_recommender(file.path());
    const ReviewNames& names = loaded.names;
    std::vector<float> scores(names.items.size());
    for (std::int64_t user = 0; user < std::min<std::int64_t>(names.users.size(), 4); ++user) {
      loaded.model->score(user, scores);
      for (std::int64_t item = 0; item < std::min<std::int64_t>(names.items.size(), 4); ++item)
        loaded.model->explain(user, item, names);
      for (const std::int32_t item : loaded.seen.others_of(user))
        promise(item >= 0 && item < names.items.size());
    }
    if (loaded.model->scores_new_users()) loaded.model->score_new_user({}, scores);
    const ReviewCounts counts = {
        names.users.size(), names.items.size(), names.features.size(), names.phrases.size(), 0, 0};
    const std::string written = recommender_bytes(*loaded.model);
    promise(recommender_bytes(*recommender_of_bytes(written, "again", loaded.settings.kind, counts)) ==
            written);
  });
}

using std::literals::operator""sv;
inline constexpr Target kTargets[] = {{"recommender_file", with_choice<check_recommender_file>,
                                       "0123456789: cdflLiIB\f\0\x01\x80\x3F\xFF"sv, 4'000}};

}  // namespace olrank::fuzz
