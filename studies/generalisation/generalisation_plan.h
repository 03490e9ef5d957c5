#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/text/text_table.h"
#include "jobs/experiment_run.h"
#include "jobs/study.h"

namespace olrank {

/// The sizes of the experiments. R_X = 1 and W = 5 throughout A, B and C.
struct GeneralisationSizes {
  std::vector<std::int64_t> lengths = {5, 10, 20, 50, 100, 200, 500};   // m of A and B
  std::vector<std::int64_t> queries = {50, 100, 200, 500, 1000, 2000};  // n of A
  std::int64_t held_out = 20000;                                        // queries, at most
  std::int64_t held_out_docs = 1000000;                                 // documents, at most
  double most_pair_work = 1.25e8;                                       // n m² of losses of pairs in A
  std::int64_t features = 20;                                           // d of A, B, C and E
  std::int64_t slope_queries = 100;                                     // n of B
  std::vector<std::int64_t> online = {50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000};  // n of C and E
  std::int64_t population = 20000;                     // queries of C and E
  std::vector<std::int64_t> widths = {46, 500, 5000};  // d of D
  std::int64_t sparse_queries = 100;                   // n of D
  std::vector<std::int64_t> real_lengths = {5, 10, 20, 50, 100, 200};

  static GeneralisationSizes small();
  /// Everything that decides a cell's numbers.
  std::string text() const;
};

/// Numbers of one setting and seed: what it is by label, and what was measured.
struct CellRow {
  std::map<std::string, std::string> labels;
  std::map<std::string, double> values;

  const std::string& label(const std::string& name) const { return labels.at(name); }
  double value(const std::string& name) const { return values.at(name); }
};

/// Makes what the file of a cell holds; rows_of() reads its rows back.
nlohmann::ordered_json cell_json(char experiment, const std::string& setting, std::int64_t seed,
                                 const std::string& recipe, const std::vector<CellRow>& rows);
std::vector<CellRow> rows_of(const nlohmann::ordered_json& cell);

/// Real lists, whose queries all have `longest` documents or more.
struct RealLists {
  std::string name;    // of the folder
  std::string folder;  // as given
  std::shared_ptr<const Dataset> queries;
  std::int64_t longest = 0;  // the largest m of the sizes that enough queries have
  std::int64_t all_queries = 0;
  std::int64_t folds = 1;
  std::string fingerprint;  // of its parts in the first fold
};

/// Reads a folder's parts, normalises them and keeps the queries with enough documents.
RealLists load_real_lists(const std::string& folder, const GeneralisationSizes& sizes);

struct GeneralisationPlan {
  std::string experiments = "ABCDE";
  std::vector<std::int64_t> seeds;
  GeneralisationSizes sizes;
  std::vector<RealLists> data;
};

/// All cells, experiment by experiment: an experiment, a setting of it and a seed each, such as
/// "A-query-m50-seed3".
std::vector<WorkCell> plan_cells(const GeneralisationPlan& plan);

// The rows of single cells.
std::vector<CellRow> list_length_rows(const GeneralisationSizes& sizes, std::int64_t docs,
                                      const std::string& noise, std::int64_t seed);
std::vector<CellRow> real_list_rows(const GeneralisationSizes& sizes, const RealLists& lists,
                                    std::int64_t seed);
std::vector<CellRow> slope_rows(const GeneralisationSizes& sizes, std::int64_t docs, std::int64_t seed);
std::vector<CellRow> excess_risk_rows(const GeneralisationSizes& sizes, const std::string& loss,
                                      std::int64_t seed);
std::vector<CellRow> sparse_rows(const GeneralisationSizes& sizes, std::int64_t features,
                                 std::int64_t seed);
std::vector<CellRow> optimistic_rows(const GeneralisationSizes& sizes, double noise, std::int64_t seed);
std::vector<CellRow> ranking_rows(const RealLists& lists, const std::string& loss, std::int64_t fold);

struct GeneralisationRequest {
  std::vector<std::string> data;  // folders of real lists
  std::string out;
  int jobs = 1;  // cells at once
};

/// Computes the plan's cells that the output folder lacks and, once it has all, writes and prints the
/// findings. Reads the lists of the request's folders into the plan. Returns the exit code.
int run_generalisation(GeneralisationPlan plan, const GeneralisationRequest& generalisation,
                       const ExperimentRequest& request, const std::string& command, const OutputForm& form,
                       const TextSink& print);

}  // namespace olrank
