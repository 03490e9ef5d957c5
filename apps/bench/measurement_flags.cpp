#include "apps/bench/measurement_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/runtime/log.h"

namespace olrank {
namespace {

void warn_if_other_machine(const Machine& before, const Machine& now) {
  if (before.processor == now.processor && before.cores == now.cores && before.blas == now.blas) return;
  log_warning(
      "The earlier measurements come from another machine ({}, {} cores, {}; this one: {}, {} cores, {}), "
      "so the ratios are not comparable.",
      before.processor, before.cores, before.blas, now.processor, now.cores, now.blas);
}

}  // namespace

void MeasurementFlags::declare(CLI::App& app) {
  json_option_ =
      app.add_option("--json", json_, "write the measurements to FILE as JSON; without FILE, print them")
          ->type_name("FILE")
          ->expected(0, 1);
  app.add_option("--compare", compare_, "compare with measurements written by --json FILE")
      ->type_name("FILE");
  app.add_option("--factor", factor_,
                 "with --compare: exit 1 if anything is slower by more than this factor [default: 1.5]")
      ->type_name("REAL");
}

void MeasurementFlags::check() const {
  if (!(factor_ >= 1.0)) throw InvalidArgument("--factor must be at least 1.");
  if (!compare_.empty()) read_measurements(compare_);
}

int MeasurementFlags::report(const MeasurementFile& file, const OutputFlags& output) const {
  const bool prints_json = output.json || (json_option_->count() > 0 && json_.empty());
  fmt::print("{}", prints_json ? measurements_json(file) : measurements_text(file, output.columns()));
  if (!json_.empty()) {
    write_file_atomically(json_, measurements_json(file));
    log_info("Wrote {}: the measurements as JSON", json_);
  }
  for (const Measurement& one : file.measurements) check_share(one);
  if (compare_.empty()) return 0;
  const MeasurementFile before = read_measurements(compare_);
  warn_if_other_machine(before.machine, file.machine);
  const std::vector<SlowDown> changes = slow_downs(before, file);
  if (changes.empty())
    throw InvalidArgument(fmt::format("{} has no measurement in common with this run.", compare_));
  if (!prints_json) fmt::print("\n{}", slow_downs_text(changes, factor_));
  const auto slower = std::count_if(changes.begin(), changes.end(),
                                    [&](const SlowDown& change) { return is_slower(change, factor_); });
  if (slower > 0)
    log_warning("{} of {} measurements are slower by more than a factor of {}.", slower, changes.size(),
                factor_);
  return slower > 0 ? 1 : 0;
}

}  // namespace olrank
