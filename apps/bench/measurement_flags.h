#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "apps/bench/measurement_file.h"
#include "apps/command.h"

namespace olrank {

/// What every command of measurements does with them: a table, a file, a comparison with an earlier file.
class MeasurementFlags {
 public:
  void declare(CLI::App& app);

  /// Throws for a --factor or a --compare FILE that will not do: to be called before anything is measured.
  void check() const;

  /// Prints and writes. The exit code: 1 where --compare finds something slower than --factor allows.
  int tell(const MeasurementFile& file, const OutputFlags& output) const;

 private:
  std::string json_;
  const CLI::Option* json_option_ = nullptr;
  std::string compare_;
  double factor_ = 1.5;
};

}  // namespace olrank
