#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace olrank {

struct RankerDescription {
  std::string name;
  std::string summary;   // "olranknet, width 100, full covariance"
  std::string settings;  // all of them as text; equal texts mean equal rankers
  bool skyline = false;  // learns from the true grades, which no other ranker sees
};

struct RunDescription {
  std::string data;                                        // the source
  std::map<std::int64_t, std::string> fingerprints;        // by fold, of all its parts
  std::vector<std::string> parts;                          // one sentence per fold
  std::vector<std::pair<std::string, std::string>> facts;  // for the page's setup section, in order
  std::vector<std::string> deviations;                     // from the protocol
  std::vector<std::pair<std::string, std::string>>
      settings;  // of data, protocol and clicks: "protocol.rounds"
  std::vector<RankerDescription> rankers;
  std::vector<std::string> users;
  std::vector<std::int64_t> folds;
  std::vector<std::int64_t> seeds;
  std::int64_t rounds = 0;
  std::int64_t trials = 0;  // of the whole experiment

  /// The value of a setting such as "protocol.name", or else the given word.
  std::string setting(const std::string& key, const std::string& otherwise) const;
};

/// The conventions printed with every result.
struct ResultConventions {
  std::string protocol;
  std::string empty_queries;  // offline rule for queries without a relevant document
  std::vector<std::int64_t> seeds;
  std::vector<std::string> deviations;  // from the protocol
};

/// Writes a text: "protocol paper, queries without a relevant document: zero, seeds 1, 2; ranker a: …".
std::string conventions_text(const ResultConventions& about);

ResultConventions conventions_of(const RunDescription& run);

/// Reads FOLDER/manifest.json. Throws InvalidArgument if there is none, IoError if it is invalid.
RunDescription read_run_description(const std::filesystem::path& folder);

}  // namespace olrank
