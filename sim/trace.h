#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/io/atomic_file.h"
#include "core/online/online_ranker.h"
#include "sim/trial.h"

namespace olrank {

/// Writes everything that a trial does, one JSON object per round, so it can be recomputed elsewhere.
/// Numbers read back exactly. The file appears when it is closed.
class Trace {
 public:
  /// `detail` adds parameters, squared widths and certain orders. `config_json` becomes the first line.
  Trace(const std::filesystem::path& path, bool detail, std::string_view config_json);

  bool detail() const { return detail_; }
  void write(const PlayedRound& round, std::string_view qid, const RoundDetail& rested_on);
  void close();

 private:
  void flush();

  AtomicFile file_;
  bool detail_;
  std::string buffer_;
};

}  // namespace olrank
