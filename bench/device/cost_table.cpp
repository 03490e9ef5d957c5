#include "bench/device/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/device/device_case.h"
#include "core/error.h"

namespace olrank {
namespace {

struct Decision {
  std::string_view operation;
  std::string_view where;
  std::string_view why;
};

constexpr std::string_view kKernel = "kernel";
constexpr std::string_view kProducts = "cuBLASLt";
constexpr std::string_view kSolver = "cuSOLVER";
constexpr std::string_view kTraining = "kernel; cuBLASLt from m = 256 or three layers on";

// In the order of the table. An empty operation begins a part, whose name is in `where`.
constexpr Decision kDecisions[] = {
    {"", "score a query", ""},
    {"query_inputs/query_inputs", kKernel,
     "Of documents that others have on the card: bounds, shares and the check of values in one launch."},
    {"tangent_factors/tangent_factors", kKernel,
     "Layers, output and factors in two launches; the products alone take less than a launch."},
    {"score_order/mean_scores", kKernel, "Summed in the order of members, rounded once."},
    {"score_order/order_by_score", kKernel, "A place is a count of comparisons, so nothing is sorted."},
    {"certain_orders/certain_by_width", kKernel,
     "From M to bits in one pass; status and outcome join the answer on the way."},
    {"certain_orders/certain_by_vote", kKernel, "The same, from the scores of members."},
    {"theory_alpha/set_theory_alpha", kKernel, "One number, which must not go to the host."},

    {"", "full covariance, dual form", ""},
    {"tangent_kernel/query_kernels", kKernel,
     "Two products are multiplied number by number in registers; a library would write both to memory."},
    {"inverse_factor/apply_factor", kKernel,
     "L⁻¹ is a triangle in packed row blocks: a dense product takes twice the work and twice the memory."},
    {"inverse_factor/dual_gram", kKernel,
     "Few tiles and thousands of rows: parts are added in a fixed order, where a library's split is off."},
    {"pair_corner/factor_pair_corner", kKernel, "A k × k matrix, too small for a launch of a library."},
    {"inverse_factor/append_pairs", kKernel,
     "One pass over L⁻¹ for all pairs; memory is the limit, and a dense product would read twice as much."},
    {"inverse_factor/apply_factor_transposed", kKernel, "Of drift checks: one pass over the triangle."},
    {"covariance_matrix/pair_kernel", kKernel, "λI + K of a rebuild, by the same kernel as K_nV."},
    {"factorisation/factorise", kSolver,
     "Of a rebuild: one factorisation instead of n appended rows, and independent of them."},
    {"factorisation/invert_factor", kSolver, "L⁻¹ from L."},
    {"covariance_matrix/pack_factor", kKernel, "L⁻¹ into its row blocks."},
    {"covariance_matrix/status_of_factor", kKernel, "log det and failure, from the diagonal."},
    {"tangent_factors/gather_pairs", kKernel, "Copies rows."},

    {"", "full covariance, primal form", ""},
    {"inverse_covariance/inverse_covariance_gram", kProducts,
     "Large dense products: what the library is best at. G, 13 MB, is formed first."},
    {"inverse_covariance/update_inverse_covariance", kKernel,
     "Of rank k: reads one half of A⁻¹ and writes both. Memory is the limit."},
    {"inverse_covariance/apply_inverse_covariance", kKernel, "Of drift checks: one pass over A⁻¹."},
    {"inverse_covariance/reset_inverse_covariance", kKernel, "Writes A⁻¹ once."},
    {"inverse_covariance/fill_parameter_table", kKernel, "Once per network."},
    {"covariance_matrix/pair_covariance", kKernel,
     "A of a rebuild, 256 pairs at a time. cuSOLVER factorises and inverts it."},
    {"covariance_matrix/mirror_lower", kKernel, "The other half of A⁻¹, for the library's products."},
    {"covariance_matrix/copy_matrix", kKernel,
     "Of inducing covariances that grow: rows get other strides."},
    {"covariance_matrix/copy_lower", kKernel, "Before and after a library has factorised."},

    {"", "diagonal covariance", ""},
    {"diagonal_covariance/diagonal_gram", kKernel,
     "G is formed tile by tile and inactive units are skipped; a library would need it in memory."},
    {"diagonal_covariance/add_to_diagonal", kKernel, "Pairs in order, one pass."},
    {"diagonal_covariance/reset_diagonal", kKernel, "Once per trial."},
    {"theory_alpha/diagonal_log_det", kKernel, "A sum of logarithms."},

    {"", "training", ""},
    {"history_update/gather_docs", kKernel, "Copies rows."},
    {"history_update/write_terms", kKernel, "Writes what has changed."},
    {"pair_incidence/find_incidence", kKernel, "Groups terms by document, so that sums need no atomics."},
    {"pair_training/perturb_labels", kKernel, "Draws with the bits of the CPU."},
    {"replay/split_sample", kKernel, "The same for the terms of a sample."},
    {"replay/add_finite_gradient", kKernel, "Of a round's own pairs, at θ of the latest whole training."},
    {"replay/subtract_from_whole", kKernel, "What corrects a sample's gradient."},
    {"persistent_training/train_persistently", kKernel,
     "All 20 steps of two layers: documents stay on the multiprocessor, and no step waits for a launch."},
    {"pair_training/forward_history", kTraining,
     "Where a training does not fit one kernel; what is large is a product like any other."},
    {"pair_training/pair_losses", kKernel, "Reads the terms once, in order."},
    {"pair_training/pair_gradients", kTraining, "As above."},
    {"pair_training/score_gradient", kTraining, "The same from derivatives that are known."},
    {"largest_curvature/begin_curvature", kKernel, "Once per power iteration."},
    {"largest_curvature/iterate_curvature", kKernel,
     "In double, from factors in float32: G is never written. Runs when many documents are new."},
    {"largest_curvature/step_from_curvature", kKernel, "One number."},
    {"gradient_products/gradient_products", kKernel, "G·v without G."},
    {"gradient_products/gradient_sum", kKernel, "Gᵀw without G."},
    {"optimizer_step/begin_training", kKernel, "Copies θ."},
    {"optimizer_step/gradient_descent_step", kKernel, "One pass over θ, or part of the pass before it."},
    {"optimizer_step/decayed_step", kKernel, "One pass over θ."},
    {"optimizer_step/nesterov_step", kKernel, "One pass over θ."},
    {"optimizer_step/adam_step", kKernel, "One pass over θ."},
    {"relu_layers/forward", "kernel; cuBLASLt as in training, and for judged documents",
     "With the ReLU in its epilogue; a query's documents are too few for a second launch."},
    {"relu_layers/backward_hidden", "cuBLASLt, and a kernel for the gates", "Of three layers and more."},
    {"mini_batch/gather_batch", kKernel, "Copies rows."},
    {"mini_batch/fill_batch_incidence", kKernel, "Once per size of a batch."},
    {"mini_batch/begin_batches", kKernel, "Sets cursors."},
    {"mini_batch/finish_batch", kKernel, "Moves a cursor."},
    {"mini_batch/note_bad_scores", kKernel, "Keeps the first batch that diverged."},
    {"ndcg_weights/group_observations", kKernel, "Groups observations by list."},
    {"ndcg_weights/ndcg_weights", kKernel, "A weight per pair from two places."},
    {"list_loss/list_losses", kKernel,
     "A block per query in one launch, where a library's softmaxes are several over padded lists."},
    {"list_batch/gather_lists", kKernel, "Copies whole queries and their grades next to each other."},
    {"list_batch/add_numbers", kKernel, "Adds the gradient of a block of queries to those before it."},
};

/// cuSOLVER computes these alone; no case measures them.
std::vector<DeviceCase> factorisations(const std::vector<std::int64_t>& sizes) {
  std::vector<DeviceCase> cases;
  for (const char* name : {"factorisation/factorise", "factorisation/invert_factor"}) {
    for (const std::int64_t n : sizes) {
      const auto count = static_cast<double>(n);
      DeviceCase one;
      one.name = name;
      one.parameters = {{"n", n}};
      one.least.operations = count * count * count / 3.0;
      one.least.bytes = 8.0 * count * count;  // a triangle, read and written
      cases.push_back(one);
    }
  }
  return cases;
}

/// The papers' network, a long query and three ages of a trial.
DeviceSizes table_sizes() {
  DeviceSizes sizes;
  sizes.docs = 120;
  sizes.pairs = {1000, 5000, 10'000};
  return sizes;
}

// An H200's data sheet states these rates.
constexpr double kBytesPerSecond = 4.8e12;
constexpr double kOperationsPerSecond = 67e12;  // float32, and double on tensor cores

double least_seconds(const DeviceCase& one) {
  return std::max(one.least.operations / kOperationsPerSecond, one.least.bytes / kBytesPerSecond);
}

std::int64_t parameter(const DeviceCase& one, std::string_view name, std::int64_t missing) {
  for (const auto& [key, value] : one.parameters) {
    if (key == name) return value;
  }
  return missing;
}

/// Writes it with two digits, or all that are before the point.
std::string short_number(double value) {
  if (value == 0.0) return "0";
  if (value >= 99.5) return fmt::format("{:.0f}", value);
  const int digits = std::max(0, 1 - static_cast<int>(std::floor(std::log10(value))));
  return value < 0.01 ? "< 0.01" : fmt::format("{:.{}f}", value, digits);
}

/// One value for each of the table's n, or a single one where it does not depend on n.
template <class Value>
std::string values_of(const std::vector<DeviceCase>& cases, const Value& value) {
  std::vector<std::string> texts;
  texts.reserve(cases.size());
  for (const DeviceCase& one : cases) texts.push_back(short_number(value(one)));
  if (std::all_of(texts.begin(), texts.end(), [&](const std::string& text) { return text == texts[0]; }))
    return texts[0];
  return fmt::format("{}", fmt::join(texts, " / "));
}

std::string cells_of(const std::vector<DeviceCase>& cases) {
  return fmt::format("{} | {} | {}",
                     values_of(cases, [](const DeviceCase& one) { return 1e-9 * one.least.operations; }),
                     values_of(cases, [](const DeviceCase& one) { return 1e-6 * one.least.bytes; }),
                     values_of(cases, [](const DeviceCase& one) { return 1e6 * least_seconds(one); }));
}

/// Where an operation is measured after another number of pairs than the table's.
std::string note_on_size(const std::vector<DeviceCase>& cases) {
  const std::int64_t n = parameter(cases[0], "n", 0);
  const auto ages = table_sizes().pairs;
  if (n == 0 || std::find(ages.begin(), ages.end(), n) != ages.end()) return "";
  return fmt::format(", n = {}", n);
}

class Costs {
 public:
  Costs() : cases_(device_cases(table_sizes())) {
    for (DeviceCase& one : factorisations(table_sizes().pairs)) cases_.push_back(std::move(one));
  }

  /// The cases of an operation with the fewest members, by n; none if nothing measures it.
  std::vector<DeviceCase> of(std::string_view operation) const {
    std::vector<DeviceCase> found;
    for (const DeviceCase& one : cases_) {
      if (one.name != operation) continue;
      if (!found.empty() && parameter(one, "n", 0) == parameter(found.back(), "n", 0)) continue;
      if (operation == "tangent_kernel/query_kernels" && parameter(one, "n", 0) == 0) continue;
      found.push_back(one);
    }
    return found;
  }

  /// Seconds of a round at the i-th n, by these parts and J = 20 training steps.
  double round_seconds(const std::vector<std::string_view>& parts, std::size_t i) const {
    double seconds = 20.0 * least_seconds(of("training/step")[i]);
    for (const std::string_view part : parts) {
      const auto cases = of(part);
      seconds += least_seconds(cases[std::min(i, cases.size() - 1)]);
    }
    return seconds;
  }

  std::string round_row(std::string_view name, const std::vector<std::string_view>& parts) const {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < table_sizes().pairs.size(); ++i)
      texts.push_back(short_number(1e6 * round_seconds(parts, i)));
    return fmt::format("| **{}** | | | **{}** | | |\n", name, fmt::join(texts, " / "));
  }

  void check_complete() const {
    for (const DeviceCase& one : cases_) {
      // Sums of other operations, and one operation by others.
      if (one.name.starts_with("widths/") || one.name.starts_with("training/") ||
          one.name.starts_with("evaluation/"))
        continue;
      const auto decided = [&](const Decision& decision) { return decision.operation == one.name; };
      if (std::none_of(std::begin(kDecisions), std::end(kDecisions), decided)) {
        throw InvalidArgument(
            fmt::format("bench/device/cost_table.cpp does not say where '{}' is computed.", one.name));
      }
    }
  }

 private:
  std::vector<DeviceCase> cases_;
};

}  // namespace

std::string cost_table() {
  const Costs costs;
  costs.check_complete();
  std::string table = "| operation | GFLOP | MB | µs | where | why |\n|---|---|---|---|---|---|\n";
  for (const Decision& decision : kDecisions) {
    if (decision.operation.empty()) {
      table += fmt::format("| **{}** | | | | | |\n", decision.where);
    } else if (const auto cases = costs.of(decision.operation); !cases.empty()) {
      table += fmt::format("| `{}`{} | {} | {} | {} |\n", decision.operation, note_on_size(cases),
                           cells_of(cases), decision.where, decision.why);
    }
  }
  table += costs.round_row("a round, full covariance", {"tangent_factors/tangent_factors",
                                                        "widths/full-dual", "inverse_factor/append_pairs"});
  table += costs.round_row(
      "a round, diagonal covariance",
      {"tangent_factors/tangent_factors", "widths/diagonal", "diagonal_covariance/add_to_diagonal"});
  return table;
}

}  // namespace olrank
