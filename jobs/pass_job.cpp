#include "jobs/pass_job.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/io/json.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/stopwatch.h"

namespace olrank {

using nlohmann::ordered_json;

std::optional<ordered_json> PassJob::first_point() {
  return std::nullopt;
}

void PassJob::save(StateWriter& state) const {
  state.put_text("pass.untimed_curve", untimed_curve_);
  state.put("pass.curve_bytes", curve_bytes_);
  save_training(state);
}

void PassJob::load(StateReader& state) {
  untimed_curve_ = state.get_text("pass.untimed_curve");
  curve_bytes_ = state.get_one<std::uint64_t>("pass.curve_bytes");
  load_training(state);
}

void PassJob::append(ordered_json point, JobFolder& folder) {
  point.erase("seconds");
  untimed_curve_ += dump_json(point) + "\n";
  point["seconds"] = folder.seconds();
  const std::string line = dump_json(point) + "\n";
  folder.append(line);
  curve_bytes_ += line.size();
}

bool play_passes(PassJob& job, JobFolder& folder, const Recipe& recipe, bool resume,
                 const std::function<void(const ordered_json& point, double seconds, bool last)>& told) {
  constexpr double kSecondsBetweenCheckpoints = 1.0;
  if (resume && folder.has_checkpoint()) {
    folder.restore(job, recipe);
  } else {
    folder.begin();
    if (auto point = job.first_point()) job.append(std::move(*point), folder);
  }
  folder.write_checkpoint(job, recipe);
  folder.finish_checkpoint();  // so that a killed training has one
  Stopwatch since_checkpoint;
  while (!job.finished()) {
    const ordered_json point = job.advance();
    job.append(point, folder);
    const bool last = job.finished();
    told(point, folder.seconds(), last);
    const bool stop = InterruptGuard::requested() != 0 && !last;
    if (stop || since_checkpoint.seconds() >= kSecondsBetweenCheckpoints) {
      folder.write_checkpoint(job, recipe);
      since_checkpoint = {};
    }
    if (!stop) continue;
    folder.finish_checkpoint();
    return false;
  }
  return true;
}

}  // namespace olrank
