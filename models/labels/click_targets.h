#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/io/state_archive.h"

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

}  // namespace olrank
