#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/summary_table.h"

namespace olrank {

struct RankerDescription {
  std::string name;
  std::string summary;   // "olranknet, width 100, full covariance"
  std::string settings;  // all of them, as text: equal texts are equal rankers
};

/// What a folder's manifest says was run.
struct RunDescription {
  std::string data;                                        // its source
  std::map<std::int64_t, std::string> fingerprints;        // of a fold's parts
  std::vector<std::string> parts;                          // a sentence a fold
  std::vector<std::pair<std::string, std::string>> facts;  // what the page tells, in order
  std::vector<std::string> deviations;                     // from the protocol
  std::vector<std::pair<std::string, std::string>>
      settings;  // of data, protocol and clicks: "protocol.rounds"
  std::vector<RankerDescription> rankers;
  std::vector<std::string> users;
  std::vector<std::int64_t> folds;
  std::vector<std::int64_t> seeds;
  std::int64_t rounds = 0;
  std::int64_t trials = 0;  // of the whole experiment
};

/// What is told with every result of the run.
ResultConventions conventions_of(const RunDescription& run);

/// Reads FOLDER/manifest.json. Throws InvalidArgument for a folder without one, IoError for one that is no
/// manifest.
RunDescription read_run_description(const std::filesystem::path& folder);

}  // namespace olrank
