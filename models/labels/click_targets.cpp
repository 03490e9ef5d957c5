#include "models/labels/label_objective.h"

#include <algorithm>
#include <cmath>

#include "core/math/pair_loss.h"

namespace olrank {
ClickTargets ClickTargets::shares(std::vector<double> targets) {
  ClickTargets made;
  made.shares_ = std::move(targets);
  return made;
}

void ClickTargets::take_cells(std::vector<ClickCell> cells, std::int64_t docs) {
  std::int32_t ranks = 0;
  double shown = 0.0;
  for (const ClickCell& cell : cells) {
    ranks = std::max(ranks, cell.rank + 1);
    shown += cell.shown;
  }
  // The mean over documents of the terms' sizes is 1, so that steps and penalties do not grow with the log.
  const double scale = shown > 0.0 ? static_cast<double>(docs) / shown : 1.0;
  for (ClickCell& cell : cells) {
    cell.shown *= scale;
    cell.clicked *= scale;
  }
  begins_.assign(docs + 1, 0);
  biases_.assign(ranks, 0.0);
  cells_ = std::move(cells);
}

ClickTargets ClickTargets::towers(std::vector<ClickCell> cells, std::int64_t docs) {
  ClickTargets made;
  made.take_cells(std::move(cells), docs);
  for (const ClickCell& cell : made.cells_) {
    made.terms_.push_back({cell.shown, cell.clicked, cell.rank});
    ++made.begins_[cell.doc + 1];
  }
  for (std::int64_t doc = 0; doc < docs; ++doc) made.begins_[doc + 1] += made.begins_[doc];
  made.cells_.clear();
  made.revise(std::vector<float>(docs));
  return made;
}

ClickTargets ClickTargets::mixture(std::vector<ClickCell> cells, std::int64_t docs) {
  ClickTargets made;
  made.take_cells(std::move(cells), docs);
  made.examination_.assign(made.biases_.size(), 0.0);
  made.biases_.assign(1, 0.0);
  made.terms_.resize(docs);
  for (std::int64_t doc = 0; doc < docs; ++doc) made.begins_[doc + 1] = doc + 1;
  // It starts from click rates that differ by examination alone.
  std::vector<double> shown(made.examination_.size());
  for (const ClickCell& cell : made.cells_) {
    shown[cell.rank] += cell.shown;
    made.examination_[cell.rank] += cell.clicked;
  }
  for (std::size_t rank = shown.size(); rank-- > 0;) {
    double& rate = made.examination_[rank];
    rate = shown[rank] > 0.0 ? rate / shown[rank] : 0.0;
  }
  const double most = *std::max_element(made.examination_.begin(), made.examination_.end());
  for (double& rate : made.examination_) rate = std::max(rate / most, 0.01);
  made.examination_.front() = 1.0;
  made.revise(std::vector<float>(docs));
  return made;
}

double ClickTargets::probability(double score, std::size_t rank) const {
  return sigmoid(score + biases_[rank]);
}

double ClickTargets::loss(std::int64_t first_doc, std::span<const float> scores,
                          std::span<double> slopes) const {
  double loss = 0.0;
  if (!shares_.empty()) {
    const std::span<const double> targets = std::span(shares_).subspan(first_doc, scores.size());
    double all = 0.0;
    double sum = 0.0;
    const double most = scores.empty() ? 0.0 : *std::max_element(scores.begin(), scores.end());
    for (std::size_t doc = 0; doc < scores.size(); ++doc) {
      all += targets[doc];
      slopes[doc] = std::exp(scores[doc] - most);
      sum += slopes[doc];
    }
    const double log_sum = std::log(sum);
    for (std::size_t doc = 0; doc < scores.size(); ++doc) {
      loss += targets[doc] * (log_sum - (scores[doc] - most));
      slopes[doc] = all * slopes[doc] / sum - targets[doc];
    }
    return loss;
  }
  for (std::size_t doc = 0; doc < scores.size(); ++doc) {
    const std::int64_t place = first_doc + static_cast<std::int64_t>(doc);
    slopes[doc] = 0.0;
    for (std::int64_t term = begins_[place]; term < begins_[place + 1]; ++term) {
      const auto& [weight, yes, bias] = terms_[term];
      const double logit = scores[doc] + biases_[bias];
      loss += pair_term_loss(logit, weight, yes);
      slopes[doc] += pair_term_slope(sigmoid(logit), weight, yes);
    }
  }
  return loss;
}

void ClickTargets::revise(std::span<const float> scores) {
  if (!changes()) return;
  if (!cells_.empty()) expect(scores);
  find_biases(scores);
}

/// The E step gives the model its targets; the M step of θ needs no model.
void ClickTargets::expect(std::span<const float> scores) {
  for (Term& term : terms_) term = {};
  std::vector<double> examined(examination_.size());
  std::vector<double> shown(examination_.size());
  for (const ClickCell& cell : cells_) {
    const double relevant = probability(scores[cell.doc]);
    const double looked = examination_[cell.rank];
    const double skipped = (cell.shown - cell.clicked) / std::max(1.0 - looked * relevant, 1e-12);
    terms_[cell.doc].weight += cell.shown;
    terms_[cell.doc].yes += cell.clicked + skipped * (1.0 - looked) * relevant;
    examined[cell.rank] += cell.clicked + skipped * looked * (1.0 - relevant);
    shown[cell.rank] += cell.shown;
  }
  for (std::size_t rank = 1; rank < shown.size(); ++rank) {
    if (shown[rank] > 0.0) examination_[rank] = std::min(examined[rank] / shown[rank], 1.0);
  }
}

/// Newton's method for each β. A pseudo-document of score 0 and this weight, half clicked, keeps it finite.
void ClickTargets::find_biases(std::span<const float> scores) {
  constexpr int kSteps = 20;
  constexpr double kPseudo = 1e-6;
  constexpr double kLongestStep = 2.0;
  std::vector<double> slopes(biases_.size());
  std::vector<double> curvatures(biases_.size());
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t bias = 0; bias < biases_.size(); ++bias) {
      const double half = sigmoid(biases_[bias]);
      slopes[bias] = kPseudo * (0.5 - half);
      curvatures[bias] = kPseudo * half * (1.0 - half);
    }
    for (std::size_t doc = 0; doc < scores.size(); ++doc) {
      for (std::int64_t at = begins_[doc]; at < begins_[doc + 1]; ++at) {
        const Term& term = terms_[at];
        const double p = probability(scores[doc], term.bias);
        slopes[term.bias] -= pair_term_slope(p, term.weight, term.yes);
        curvatures[term.bias] += pair_term_curvature(p, term.weight);
      }
    }
    double largest = 0.0;
    for (std::size_t bias = 0; bias < biases_.size(); ++bias) {
      const double change = std::clamp(slopes[bias] / curvatures[bias], -kLongestStep, kLongestStep);
      biases_[bias] += change;
      largest = std::max(largest, std::abs(change));
    }
    if (largest < 1e-9) return;
  }
}

void ClickTargets::fields(StateFields& state) {
  state.any("clicks.biases", biases_);
  state.any("clicks.examination", examination_);
  std::vector<double> terms;
  for (const Term& term : terms_) terms.insert(terms.end(), {term.weight, term.yes});
  state.sized("clicks.terms", terms);
  for (std::size_t at = 0; at < terms_.size(); ++at) {
    terms_[at].weight = terms[2 * at];
    terms_[at].yes = terms[2 * at + 1];
  }
}

}  // namespace olrank
