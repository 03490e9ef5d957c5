#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace olrank {

/// A pass of a training.
struct TrainingPagePoint {
  std::int64_t epoch = 0;
  std::optional<double> loss;
  std::optional<double> vali_loss;
  std::optional<double> vali_ndcg;
};

/// One trained model.
struct TrainingPageModel {
  std::string name;  // "fold 1, seed 2"
  std::vector<TrainingPagePoint> points;
  std::int64_t kept_epoch = 0;                          // of the model that was kept
  std::vector<std::pair<std::string, double>> figures;  // objective and test metrics, equal names in each
};

struct TrainingPage {
  std::string title;      // "listnet, linear, on MQ2008"
  std::string sentence;   // what came out
  std::string ndcg_name;  // "NDCG@10"
  std::vector<TrainingPageModel> models;
  std::string configuration;  // TOML
};

/// Learning curves and test figures as one self-contained HTML page, in the style of reports.
std::string training_page(const TrainingPage& training);

}  // namespace olrank
