#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/random/rng_stream.h"

namespace olrank {

/// Text that resembles MSLR-WEB30K: 136 features; two fifths of the values are 0, a quarter are counts of
/// one to six digits, and a third are decimals, some of them constant within a query.
inline std::string mslr_like_text(std::size_t bytes) {
  std::string text;
  for (std::uint32_t doc = 0; text.size() < bytes; ++doc) {
    RngStream rng(make_key({.seed = 1, .purpose = Purpose::kProbe}), doc);
    RngStream of_query(make_key({.seed = 1, .purpose = Purpose::kQuery}), doc / 120);
    text += fmt::format("{} qid:{}", rng.index(5), doc / 120);
    for (int feature = 1; feature <= 136; ++feature) {
      text += fmt::format(" {}:", feature);
      switch (feature * 7 % 8) {
        case 0:
        case 1:
          text += "0";
          break;
        case 2:
          text += fmt::format("{}", rng.index(4) == 0 ? 1 + rng.index(3) : 0);
          break;
        case 3:
        case 4:
          text +=
              fmt::format("{}", static_cast<std::int64_t>(std::exp(7.0 * rng.uniform() * rng.uniform())));
          break;
        case 5:
          text += fmt::format("{:.6f}", 20.0 * of_query.uniform());
          break;
        case 6:
          text += fmt::format("{:.6f}", -30.0 * rng.uniform());
          break;
        default:
          text += rng.index(4) == 0 ? "0" : fmt::format("{:.6f}", rng.uniform());
      }
    }
    text += " \n";
  }
  return text;
}

}  // namespace olrank
