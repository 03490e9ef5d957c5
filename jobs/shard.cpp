#include "jobs/shard.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/runtime/log.h"

namespace olrank {
namespace {

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

std::int64_t number_of(const char* name, const char* text) {
  if (text == nullptr)
    throw InvalidArgument(
        fmt::format("The environment variable {} is required for the shard but not set.", name));
  const auto number = parse_integer(text);
  if (!number)
    throw InvalidArgument(
        fmt::format("The environment variable {} must be an integer, not '{}'.", name, text));
  return *number;
}

Shard checked(Shard shard, std::string_view origin) {
  if (shard.count >= 1 && shard.index >= 0 && shard.index < shard.count) return shard;
  throw InvalidArgument(fmt::format("{}: Shard {} of {} does not exist; shards are numbered from 0.",
                                    origin, shard.index, shard.count));
}

}  // namespace

Shard parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash != std::string::npos) {
    const auto index = parse_integer(std::string_view(text).substr(0, slash));
    const auto count = parse_integer(std::string_view(text).substr(slash + 1));
    if (index && count) return checked({*index, *count}, "--shard " + text);
  }
  throw InvalidArgument(fmt::format("--shard must have the form I/N, such as 0/4, not '{}'.", text));
}

Shard shard_of_environment(const std::function<const char*(const char*)>& variable) {
  if (const char* task = variable("SLURM_ARRAY_TASK_ID")) {
    const std::int64_t first = number_of("SLURM_ARRAY_TASK_MIN", variable("SLURM_ARRAY_TASK_MIN"));
    const std::int64_t count = number_of("SLURM_ARRAY_TASK_COUNT", variable("SLURM_ARRAY_TASK_COUNT"));
    // An array such as 0-6:2 has a step.
    const char* step_text = variable("SLURM_ARRAY_TASK_STEP");
    const std::int64_t step = step_text != nullptr ? number_of("SLURM_ARRAY_TASK_STEP", step_text) : 1;
    const std::int64_t distance = number_of("SLURM_ARRAY_TASK_ID", task) - first;
    if (step < 1 || distance % step != 0) {
      throw InvalidArgument(fmt::format(
          "SLURM_ARRAY_TASK_ID {} is not in the array that starts at {} with step {}.", task, first, step));
    }
    return checked({distance / step, count}, "SLURM_ARRAY_TASK_ID");
  }
  for (const auto& [index_name, count_name] :
       {std::pair{"JOB_COMPLETION_INDEX", "OLRANK_SHARDS"}, std::pair{"RANK", "WORLD_SIZE"}}) {
    const char* index = variable(index_name);
    if (index == nullptr) continue;
    if (const char* count = variable(count_name)) {
      return checked({number_of(index_name, index), number_of(count_name, count)}, index_name);
    }
    log_info("{} is set but {} is not, so this process runs the whole experiment.", index_name, count_name);
  }
  return {};
}

}  // namespace olrank
