#pragma once

#include <cstdint>

#include "core/io/state_archive.h"

namespace olrank {

/// A piece of work that goes on step by step. Its state can be saved between two steps, and goes on to the
/// same bits once it is restored.
class Job {
 public:
  Job() = default;
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// The steps done: rounds, or passes.
  virtual std::int64_t steps() const = 0;
  /// The bytes of the curve's file that belong to the state.
  virtual std::uint64_t curve_bytes() const = 0;
  virtual void save(StateWriter& state) const = 0;
  virtual void load(StateReader& state) = 0;
};

}  // namespace olrank
