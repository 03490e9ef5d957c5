#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/clicks/click_fit.h"
#include "logs/log_reader.h"

namespace olrank {

/// Click models of a log, compared on lists that are held out.
struct ClickReportRequest {
  LoggedClicksRequest log;
  /// Empty: all that the log has what they need for. The rank-only model is always there.
  std::vector<FittedModel> models;
  ClickFitSettings fit;

  /// One of the models by its name, or "all". Throws InvalidArgument with the flag and the names.
  void choose(const std::string& model);
  /// Throws InvalidArgument, with the flag, for values that no request has.
  void check() const;
};

/// The fifths stand for grades in a simulated user: the fitted documents by attraction, in five parts that
/// were shown equally often.
struct AttractionFifths {
  std::vector<double> click;
  std::vector<double> satisfaction;  // of their clicks
};

struct ClickReport {
  struct Model {
    FittedModel model = FittedModel::kRankOnly;
    std::int64_t iterations = 0;
    bool converged = false;
    ClickFigures fitted;
    ClickFigures held_out;
    ReadingParameters reading;
    double continuation = 0.0;  // of a dcm: mean over the clicks
    AttractionFifths fifths;
  };
  std::int64_t lists = 0;
  std::int64_t held_out = 0;
  std::int64_t documents = 0;
  std::int64_t clicks = 0;
  std::int64_t longer_lists = 0;
  std::vector<std::int64_t> clicks_by_rank;  // of the fitted lists
  std::vector<std::int64_t> lists_by_rank;   // fitted lists that have the rank
  RankLinks links;
  std::vector<Model> models;    // the rank-only one first
  bool without_inputs = false;  // and therefore without two-tower and trust

  /// Whose held-out likelihood is largest.
  const Model& best() const;
  /// Whether examination and attraction can be told apart at all ranks.
  bool is_identified() const { return links.groups.size() == 1; }
};

/// Throws as read_logged_clicks() does, and InvalidArgument for a model by inputs and a log without them.
ClickReport report_clicks(const ClickReportRequest& request);

/// Says whether examination is identified, and by what.
std::string identification_text(const ClickReport& report);

nlohmann::ordered_json click_report_json(const ClickReportRequest& request, const ClickReport& report);
std::string click_report_text(const ClickReport& report, std::int64_t columns);

}  // namespace olrank
