#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/settings/enum_names.h"

namespace olrank {

enum class RecommenderKind { kMter, kMterS, kMterSa, kFact, kFmf, kEfm, kBprmf, kNmf, kPopular };
template <>
struct EnumNames<RecommenderKind> {
  static constexpr std::array values = {std::pair{RecommenderKind::kMter, std::string_view("mter")},
                                        std::pair{RecommenderKind::kMterS, std::string_view("mter-s")},
                                        std::pair{RecommenderKind::kMterSa, std::string_view("mter-sa")},
                                        std::pair{RecommenderKind::kFact, std::string_view("fact")},
                                        std::pair{RecommenderKind::kFmf, std::string_view("fmf")},
                                        std::pair{RecommenderKind::kEfm, std::string_view("efm")},
                                        std::pair{RecommenderKind::kBprmf, std::string_view("bprmf")},
                                        std::pair{RecommenderKind::kNmf, std::string_view("nmf")},
                                        std::pair{RecommenderKind::kPopular, std::string_view("popular")}};
};

}  // namespace olrank
