#include "core/ranks/rank_place.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "core/error.h"

namespace olrank {
namespace {

constexpr int kMostRanks = 4096;
constexpr int kMostPort = 65'535;

std::string text_in(const Environment& environment, const char* name) {
  const char* text = environment(name);
  return text == nullptr ? "" : text;
}

int number_in(const Environment& environment, const char* name, int least, int most) {
  const std::string text = text_in(environment, name);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!text.empty() && error == std::errc() && end == text.data() + text.size() && number >= least &&
      number <= most)
    return number;
  throw InvalidArgument(fmt::format("{} has to be a number from {} to {}, not '{}': torchrun sets it.",
                                    name, least, most, text));
}

int number_in(const Environment& environment, const char* name, int least, int most, int without) {
  return text_in(environment, name).empty() ? without : number_in(environment, name, least, most);
}

void require_set(const Environment& environment, const char* name) {
  if (!text_in(environment, name).empty()) return;
  throw InvalidArgument(
      fmt::format("WORLD_SIZE asks for {} ranks, but {} is not set: start each rank with RANK, WORLD_SIZE, "
                  "MASTER_ADDR and "
                  "MASTER_PORT, as torchrun does.",
                  text_in(environment, "WORLD_SIZE"), name));
}

}  // namespace

std::optional<RankPlace> rank_place(const Environment& environment) {
  if (text_in(environment, "WORLD_SIZE").empty()) return std::nullopt;
  RankPlace place;
  place.ranks = number_in(environment, "WORLD_SIZE", 1, kMostRanks);
  if (place.ranks == 1) return std::nullopt;
  for (const char* name : {"RANK", "MASTER_ADDR", "MASTER_PORT"}) require_set(environment, name);
  place.rank = number_in(environment, "RANK", 0, place.ranks - 1);
  place.address = text_in(environment, "MASTER_ADDR");
  place.port = number_in(environment, "MASTER_PORT", 1, kMostPort);
  const bool one_machine = place.address == "localhost" || place.address.starts_with("127.");
  place.local_ranks =
      number_in(environment, "LOCAL_WORLD_SIZE", 1, place.ranks, one_machine ? place.ranks : 1);
  place.local_rank =
      number_in(environment, "LOCAL_RANK", 0, place.local_ranks - 1, one_machine ? place.rank : 0);
  place.hosts_store = place.rank == 0 && text_in(environment, "TORCHELASTIC_USE_AGENT_STORE") != "True";
  place.attempt = number_in(environment, "TORCHELASTIC_RESTART_COUNT", 0, 1'000'000, 0);
  return place;
}

}  // namespace olrank
