#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/ops/list_loss.h"
#include "core/random/rng_stream.h"
#include "models/labels/label_settings.h"

namespace olrank {

/// W of experiments A, B and C.
inline constexpr double kStudyRadius = 5.0;

/// Every draw of the study is for one of these; it is part of the key.
enum class StudyDraw : std::uint64_t {
  kSample = 1,
  kTwin = 2,
  kHeldOut = 3,
  kRealLists = 4,
  kPopulation = 5,
  kChoice = 6,
  kOrder = 7,
};

/// Lists of all lengths share their draws: the first documents of a long list are the short one's.
PhiloxKey study_key(std::int64_t seed, StudyDraw draw);

struct StudyLoss {
  std::string name;  // "ranksvm-mean" is divided by the query's pairs, "smooth-dcg-10" is at k = 10
  ListLossForm form;
};

/// Finds it by name; throws for an unknown one.
StudyLoss study_loss(const std::string& name, int most_grade);
/// The losses of experiments A and B.
std::vector<StudyLoss> list_length_losses(int most_grade);

/// The most pairs of different grades that `docs` documents of grades 0 … most_grade have.
std::int64_t most_pairs(std::int64_t docs, int most_grade);

/// G of the theorems: slope_bound() over all grades of a list of `docs` documents.
double theorem_slopes(const ListLossForm& form, std::int64_t docs);

/// λ of the guarantee of regularised risk minimisation, √(4 G_w²/n) / √(W²/2 + 4 W²/n) with
/// G_w = G R. Tewari and Chaudhuri, "Generalization error bounds for learning to rank: does the length of
/// document lists matter?", ICML 2015, on regularised risk minimisation.
double theorem_penalty(double slopes_in_w, double radius, std::int64_t queries);

/// Theorem 6 of the same paper: 2 G_w W (8/n + √(2/n)) bounds the excess risk of fits with that penalty.
double regularised_bound(double slopes_in_w, double radius, std::int64_t queries);

/// Bounds a loss for ‖w‖ ≤ W: B of the same paper, as its value at w = 0 and the slopes from there.
double most_loss(const ListLossForm& form, std::int64_t docs, double slopes_in_w, double radius);

/// Twice the Rademacher complexity that Corollary 8 of the same paper bounds, 10 G_w W √(log₂(3mn)/n) times
/// log(6 B √n/(5 G_w W √log₂(3mn))): by symmetrisation a bound on the mean gap of any fit in the ball,
/// convex or not.
double uniform_bound(const ListLossForm& form, std::int64_t docs, double slopes_in_w, double radius,
                     std::int64_t queries);

/// η of one pass over n queries of a loss with H_w-Lipschitz gradient, W/(4 H W + 2 √(4 H² W² + 2 H L* n)).
/// The step is the same paper's, for smooth losses.
double smooth_step(double curvature_in_w, double radius, double best_risk, std::int64_t queries);

/// A linear model of a loss, without bias.
struct LinearFit {
  std::vector<float> theta;
  std::vector<float> latest;  // where theta is a mean of iterates
};

/// Fits until the solver converges or its passes are used up.
LinearFit fit_linear(LabelSettings settings, const Dataset& data, int most_grade, PhiloxKey key = {});
/// Regularised risk minimisation with L-BFGS, to a gradient of at most 1e-4 of `slopes_in_w`: what
/// that leaves of the objective is 1e-3 of the gaps.
std::vector<float> fit_regularised(const ListLossForm& form, const Dataset& data, double penalty,
                                   double slopes_in_w);

/// The mean loss of a linear model.
double mean_loss(const ListLossForm& form, const Dataset& data, std::span<const float> theta);
/// ‖w‖₂.
double length_of(std::span<const float> theta);

/// Two fits to two samples of equal size say this about the gap between risk and training loss: ½ [L_B(w_A)
/// − L_A(w_A) + L_A(w_B) − L_B(w_B)]. Its expectation is that of L(ŵ) − L̂(ŵ), as each sample is fresh for
/// the other fit; the losses' own scatter cancels, and for exact minimisers it is never negative.
struct TwinLosses {
  double a_on_a = 0.0;
  double a_on_b = 0.0;
  double b_on_a = 0.0;
  double b_on_b = 0.0;
  double gap() const { return 0.5 * ((a_on_b - b_on_b) + (b_on_a - a_on_a)); }
};
TwinLosses twin_losses(const ListLossForm& form, const Dataset& a, const Dataset& b,
                       std::span<const float> of_a, std::span<const float> of_b);

/// The noise makes the grades of a generated query differ from the order of w°.
enum class PreferenceNoise {
  kDocument,  // each document's own error: long lists average it away
  kQuery,     // each query's own direction of preference: no list is long enough to average it away
  kLabel,     // a grade is replaced by one drawn without looking at the document
};

/// How rows look.
enum class RowKind {
  kSphere,  // ‖x‖₂ = R, in a uniform direction
  kSigns,   // entries ±1, so that ‖x‖_∞ = 1 and ‖x‖₂ = √d
  kGraded,  // ‖x‖₂ = R, and ⟨w°, x⟩ = grade − 2 exactly: without noise ListNet's best loss is the entropy
};

struct ListRecipe {
  std::int64_t docs = 10;      // m
  std::int64_t features = 20;  // d
  double row_norm = 1.0;       // R; not for kSigns
  RowKind rows = RowKind::kSphere;
  PreferenceNoise noise = PreferenceNoise::kQuery;
  double noise_share = 0.3;    // of the variance of relevance; of the labels for kLabel
  std::int64_t relevant = 10;  // features that matter, for kSigns
  static constexpr int kMostGrade = 4;
};

/// Queries from a distribution, numbered without end. Query q is the same however many are asked for at
/// once, in any order, on any thread.
class ListSource {
 public:
  ListSource(const ListRecipe& recipe, PhiloxKey key) : recipe_(recipe), key_(key) {}

  const ListRecipe& recipe() const { return recipe_; }
  Dataset queries(std::int64_t first, std::int64_t count) const;

 private:
  void make_query(std::int64_t query, float* values, std::uint8_t* grades) const;
  void make_row(std::int64_t query, std::int64_t doc, const std::vector<double>& direction, float* row,
                std::uint8_t& grade) const;

  ListRecipe recipe_;
  PhiloxKey key_;
};

/// The w° of the recipe: what relevance follows without noise.
std::vector<double> true_direction(const ListRecipe& recipe);

/// ⟨e°, x⟩ of a kGraded row is this times (grade − 2) times R, so that ‖w°‖₂ = 1/(kGradeStep R).
inline constexpr double kGradeStep = 0.4;

/// Lists back to back: `offsets` has the documents before each, and all of them at its end.
Dataset dataset_with_offsets(std::vector<float> values, std::vector<std::uint8_t> grades,
                             std::vector<std::int64_t> offsets, std::int64_t features);
/// Lists of `docs` documents each.
Dataset dataset_of_lists(std::vector<float> values, std::vector<std::uint8_t> grades, std::int64_t docs,
                         std::int64_t features);
/// The first queries, in the same memory.
Dataset first_queries(const Dataset& data, std::int64_t count);
/// The queries of these numbers, in this order; a number may come more than once.
Dataset chosen_queries(const Dataset& data, const std::vector<std::int64_t>& numbers);

}  // namespace olrank
