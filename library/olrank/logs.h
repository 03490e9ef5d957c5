#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "olrank/data.h"

/// Evaluates logs of shown lists and their clicks: those of the service, traces of trials, and any in the
/// same format. Needs the C++20 standard library alone.
namespace olrank {

struct OffPolicyOptions {
  std::string log;                      // a file or the state folder of a service
  std::vector<std::string> models;      // model files, or folders of finished trials
  std::string policy = "greedy";        // or plackett-luce, epsilon=0.1, incumbent
  std::string reward = "clicks";        // or dcg, first-click, weight
  std::vector<std::string> estimators;  // empty: all that the log has the data for
  std::string click_model = "pbm";      // of direct, cascade-dr and intervention-aware
  std::int64_t at = 10;                 // ranks that count
  double clip = 0.0;                    // largest weight; 0: any
  double confidence = 0.95;             // of the intervals
  std::int64_t replicates = 400;        // of the bootstrap over queries
  std::uint64_t seed = 1;
  int threads = 0;          // 0: all cores
  bool trust_code = false;  // whether models may bring code of their own
  std::string page = {};    // a file for an HTML page; empty: none
};

/// Returns what other rankers would have got in place of those that showed a log's lists, as the JSON that
/// `olrank ope` prints for programs. `data` is what the documents of a trace refer to; null for a log with
/// their inputs.
std::string off_policy_values(const OffPolicyOptions& options, const RankingData* data = nullptr);

struct ClickFitOptions {
  std::string log;            // a file or the state folder of a service
  std::string model = "all";  // pbm, cascade, dcm, dbn, ubm, two-tower, trust
  double holdout = 0.2;       // share of lists that judge the models
  std::int64_t at = 100;      // ranks that count
  std::int64_t iterations = 100;
};

/// Click models of a log, as the JSON that `olrank clicks fit` prints for programs.
std::string fit_click_models(const ClickFitOptions& options);

}  // namespace olrank
