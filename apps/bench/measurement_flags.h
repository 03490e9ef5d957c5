#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "apps/command.h"
#include "bench/measurement_file.h"

namespace olrank {

/// The output flags of all benchmark commands: a table, a file, and a comparison with an earlier file.
class MeasurementFlags {
 public:
  void declare(CLI::App& app);

  /// Throws InvalidArgument for an invalid --factor or --compare FILE; call it before measuring.
  void check() const;

  /// Prints and writes the measurements. Returns the exit code: 1 if --compare finds something slower than
  /// --factor allows.
  int report(const MeasurementFile& file, const OutputFlags& output) const;

 private:
  std::string json_;
  const CLI::Option* json_option_ = nullptr;
  std::string compare_;
  double factor_ = 1.5;
};

}  // namespace olrank
