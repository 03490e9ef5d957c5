#pragma once

#include <string>
#include <vector>

#include "apps/bench/measurement_file.h"
#include "bench/device/device_case.h"

namespace olrank {

/// A target, and what was measured.
struct Verdict {
  std::string what;  // "share of gemm float", "times LibTorch", "N = 10 over N = 1"
  double measured = 0.0;
  double wanted = 0.0;
  bool at_most = false;  // else at least

  bool ok() const { return at_most ? measured <= wanted : measured >= wanted; }
};

struct DeviceRow {
  Measurement measurement;
  Spread libtorch;            // replayed as a graph, as ours; no repeats where there is no such form
  Spread started;             // LibTorch's calls started one by one, as one would write them
  bool captured = true;       // or `libtorch` is `started`, as the calls make no graph
  double disagreement = 0.0;  // of the two
  std::vector<Verdict> verdicts;

  double ratio() const { return libtorch.median / measurement.seconds.median; }
  double started_ratio() const { return started.median / measurement.seconds.median; }
};

/// What N members cost beside one, on rows of one training step each: judged where both were measured.
void judge_members(std::vector<DeviceRow>& rows);

std::string device_table(const std::vector<DeviceRow>& rows);

struct DeviceDescription {
  std::string name;
  double copy = 0.0;
  double gemm_float = 0.0;
  double gemm_tf32 = 0.0;
  double gemm_double = 0.0;
};

/// A file of `olrank bench`, whose measurements have more to tell: LibTorch's seconds and the targets.
std::string device_json(const std::string& command, const DeviceDescription& device,
                        const std::vector<DeviceRow>& rows);

}  // namespace olrank
