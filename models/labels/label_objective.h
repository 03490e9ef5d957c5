#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/data/doc_table.h"
#include "core/device/device_network.h"
#include "core/io/state_archive.h"
#include "core/online/click_model.h"
#include "core/ops/list_loss.h"
#include "models/skeleton/belief.h"

namespace olrank {

/// How often a document was shown at a rank, and how often clicked there. Both may be weighted sums.
struct ClickCell {
  std::int64_t doc = 0;  // of the training part
  std::int32_t rank = 0;
  double shown = 0.0;
  double clicked = 0.0;  // at most `shown`
};

/// The clicks on the documents of a training part, which a model learns in place of grades. With the
/// scores s of a query, its loss is one of
///   shares   −Σ_d t_d ln softmax_d(s), of targets t_d ≥ 0. It is linear in them: unbiased targets make it
///            unbiased. Joachims, Swaminathan and Schnabel, WSDM 2017; the softmax of Bruch et al., ICTIR
///            2019
///   towers   −ln of the likelihood of P(click at rank r) = σ(s_d + β_r). Yan et al., "Revisiting two-tower
///            models for unbiased learning to rank", SIGIR 2022
///   mixture  the M step for P(click at rank r) = θ_r σ(s_d + β). Wang et al., "Position bias estimation
///            for unbiased learning to rank in personal search", WSDM 2018, regression-based EM
/// β and θ are found by revise(), between the passes of the model's training.
class ClickTargets {
 public:
  static ClickTargets shares(std::vector<double> targets);
  /// Cells go by document, those of a document together.
  static ClickTargets towers(std::vector<ClickCell> cells, std::int64_t docs);
  static ClickTargets mixture(std::vector<ClickCell> cells, std::int64_t docs);

  /// The loss of a query whose documents begin at `first_doc`, and its slopes by the scores.
  double loss(std::int64_t first_doc, std::span<const float> scores, std::span<double> slopes) const;
  /// Finds the best β for the scores of all documents; of a mixture, makes an E step first, and the M step
  /// of θ.
  void revise(std::span<const float> scores);
  /// Whether revise() does anything.
  bool changes() const { return shares_.empty(); }

  std::span<const double> shares() const { return shares_; }
  /// θ_r of a mixture, of which the first is 1: the scale of θ and σ is known only together.
  std::span<const double> examination() const { return examination_; }
  /// σ(s + β_r).
  double probability(double score, std::size_t rank = 0) const;

  void fields(StateFields& state);

 private:
  /// −yes ln σ(s_d + β) − (weight − yes) ln(1 − σ(s_d + β)).
  struct Term {
    double weight = 0.0;
    double yes = 0.0;
    std::int32_t bias = 0;
  };

  void take_cells(std::vector<ClickCell> cells, std::int64_t docs);
  void expect(std::span<const float> scores);
  void find_biases(std::span<const float> scores);

  std::vector<double> shares_;        // [docs]
  std::vector<ClickCell> cells_;      // of a mixture
  std::vector<Term> terms_;           // by document
  std::vector<std::int64_t> begins_;  // [docs + 1] into terms_
  std::vector<double> biases_;        // β
  std::vector<double> examination_;   // θ of a mixture
};

/// The losses of queries with labels, and their gradients by θ. Sums go over blocks of whole queries whose
/// borders depend on the queries alone, so results have the same bits on any number of threads.
class LabelObjective {
 public:
  /// Model and labels have to outlive this. Its threads are its own. With the same lists on a device, the
  /// device computes. With weights, relative_weights() of the data, each loss is multiplied by its query's.
  /// With clicks, which have to outlive this, too, the losses are theirs, and grades and form play no part.
  LabelObjective(const ScoreModel& model, const LabelledQueries& labels, const ListLossForm& form,
                 int threads, std::unique_ptr<DeviceLists> device = nullptr,
                 std::vector<double> weights = {}, const ClickTargets* clicks = nullptr);

  std::int64_t queries() const { return labels_.queries(); }
  std::int64_t parameters() const { return model_.parameters(); }
  const ListLossForm& form() const { return form_; }
  const ScoreModel& model() const { return model_; }

  /// The mean loss of these queries at θ, which throws NumericError where it is not finite. `gradient` [p]
  /// gets its gradient unless it is empty.
  double mean(std::span<const float> theta, std::span<const std::int64_t> queries,
              std::span<double> gradient);
  /// Returns the mean loss of all queries.
  double mean_of_all(std::span<const float> theta, std::span<double> gradient) {
    return mean(theta, all_, gradient);
  }

  /// One pass of Adam on the mean loss of each batch. Returns the sum of the losses that were met. Throws
  /// as mean() does, on a device at the end of the pass.
  double adam_pass(const AdamPass& pass, const AdamState& state);
  /// The lists on the device; null on the host.
  DeviceLists* device() const { return device_.get(); }

  /// The longest ‖x‖₂ of a document, R_X.
  double longest_row() const;
  /// Bounds of the slopes ‖∇_s‖₁ of every query, G.
  double largest_slopes() const;

 private:
  /// Queries that one worker computes at once.
  struct Block {
    std::size_t begin = 0;  // in the queries asked for
    std::size_t end = 0;
    std::int64_t docs = 0;
  };
  /// A worker computes with these.
  struct Worker {
    ExecutionContext context;  // one thread
    std::vector<float> values;
    SparseRows rows;
    std::vector<std::uint8_t> grades;
    std::vector<double> weights;
    std::vector<std::int64_t> list_ends;
  };

  void split(std::span<const std::int64_t> queries);
  double sum_of_blocks(std::span<const float> theta, std::span<const std::int64_t> queries,
                       std::span<double> gradient);
  double add_block(Worker& worker, std::span<const float> theta, std::span<const std::int64_t> queries,
                   std::span<double> gradient) const;
  double click_losses(std::span<const std::int64_t> queries, std::span<const float> scores,
                      std::span<double> slopes) const;
  FeatureMatrix documents_of(Worker& worker, std::span<const std::int64_t> queries) const;

  const ScoreModel& model_;
  LabelledQueries labels_;
  std::vector<double> weights_;  // [queries], or empty
  const ClickTargets* clicks_;   // null where grades count
  ListLossForm form_;
  ExecutionContext context_;
  std::unique_ptr<DeviceLists> device_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::int64_t> all_;
  std::vector<Block> blocks_;
  std::vector<double> losses_;    // by block
  std::vector<double> partial_;   // gradients of the blocks of a group
  std::vector<double> gradient_;  // of a batch
};

}  // namespace olrank
