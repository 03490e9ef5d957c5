#include "jobs/study.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <exception>
#include <thread>

#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
constexpr std::string_view kCells = "cells";

void run_in_slots(std::size_t count, int slots, const std::function<bool()>& stopping,
                  const std::function<void(std::size_t number, std::int64_t slot)>& work) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&](std::int64_t slot) {
    while (!failed && !stopping()) {
      const std::size_t number = next++;
      if (number >= count) return;
      try {
        work(number, slot);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        failed = true;
      }
    }
  };
  std::vector<std::thread> others;
  for (std::int64_t slot = 1; slot < slots; ++slot) others.emplace_back(run, slot);
  run(0);
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

std::filesystem::path WorkCells::file_of(const WorkCell& cell) const {
  return folder_ / kCells / (cell.name + ".json");
}

std::vector<std::string> WorkCells::files() const {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / kCells, missing)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".json") && naming_.is_cell(name)) names.push_back(name);
  }
  return names;
}

bool WorkCells::has(const WorkCell& cell) const {
  return std::filesystem::exists(file_of(cell));
}

nlohmann::ordered_json WorkCells::read(const WorkCell& cell) const {
  const std::filesystem::path file = file_of(cell);
  nlohmann::ordered_json json = parse_checked_json(read_file(file, kLargestJson), file.string(),
                                                   "remove it, or start again with --force");
  if (!json.is_object() || !json.contains(naming_.recipe)) {
    throw_error<IoError>("{}: This is not a cell of '{}': remove it, or start again with --force.",
                         file.string(), naming_.command);
  }
  if (json[naming_.recipe] != cell.recipe) {
    throw_error<InvalidArgument>(
        "{} was made with other sizes or data ({}), not these ({}). Choose another --out, or replace the "
        "results with --force.",
        file.string(), json[naming_.recipe].get<std::string>(), cell.recipe);
  }
  return json;
}

void WorkCells::write(const WorkCell& cell, const nlohmann::ordered_json& result) const {
  make_folder(folder_ / kCells);
  write_file_atomically(file_of(cell), dump_checked_json(result, 1));
}

void WorkCells::clear() const {
  for (const std::string& name : files()) {
    const std::array<std::string_view, 1> file = {name};
    remove_files(folder_, kCells, file);
  }
}

void WorkCells::compute(const std::vector<WorkCell>& cells, const Shard& shard, int jobs) const {
  std::vector<const WorkCell*> missing;
  double cost = 0.0;
  for (std::size_t place = 0; place < cells.size(); ++place) {
    if (!shard.has(place) || has(cells[place])) continue;
    missing.push_back(&cells[place]);
    cost += cells[place].cost;
  }
  log_info("{} to compute, of {} in all.", counted(missing.size(), "cell"), cells.size());
  // The cells that are done show the scale of the costs, and so how long the rest will take.
  ProgressLine output;
  const Stopwatch begun;
  std::size_t done = 0;
  double done_cost = 0.0;
  std::mutex lock;
  run_in_slots(
      missing.size(), jobs, [] { return InterruptGuard::requested() != 0; },
      [&](std::size_t place, std::int64_t) {
        const WorkCell& cell = *missing[place];
        const std::optional<nlohmann::ordered_json> result = cell.compute();
        if (!result) return;
        write(cell, *result);
        const std::lock_guard held(lock);
        ++done;
        done_cost += cell.cost;
        const double seconds = begun.seconds();
        const std::string& title = cell.title.empty() ? cell.name : cell.title;
        const double left = seconds * (cost - done_cost) / done_cost;
        if (output.as_events()) {
          return log_event("cell", {{"cell", title},
                                    {"done", done},
                                    {"of", missing.size()},
                                    {"seconds", seconds},
                                    {"seconds_left", left}});
        }
        output.show(fmt::format("{} of {}, {}: {}, about {} left", done, counted(missing.size(), "cell"),
                                title, readable_duration(seconds), readable_duration(left)),
                    seconds, done == missing.size());
      });
}

}  // namespace olrank
