#include "studies/generalisation/generalisation_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/io/json.h"

namespace olrank {
namespace {

/// Changes whenever cells of equal settings get other numbers.
constexpr int kCellFormat = 3;

double sum_of_sizes(const std::vector<std::int64_t>& sizes) {
  return static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
}

class CellPlanner {
 public:
  explicit CellPlanner(const GeneralisationPlan& plan) : plan_(plan), sizes_(plan.sizes) {}

  std::vector<WorkCell> plan() {
    for (const char experiment : plan_.experiments) {
      switch (experiment) {
        case 'A':
          plan_lengths();
          break;
        case 'B':
          for (const std::int64_t docs : sizes_.lengths)
            add('B', fmt::format("m{}", docs), 0.02 * static_cast<double>(docs),
                [sizes = sizes_, docs](std::int64_t seed) { return slope_rows(sizes, docs, seed); });
          break;
        case 'C':
          for (const std::string loss : {"listnet", "ranknet-mean"})
            add('C', loss, 2e-4 * sum_of_sizes(sizes_.online),
                [sizes = sizes_, loss](std::int64_t seed) { return excess_risk_rows(sizes, loss, seed); });
          break;
        case 'D':
          for (const std::int64_t features : sizes_.widths)
            add('D', fmt::format("d{}", features), 2e-3 * static_cast<double>(features),
                [sizes = sizes_, features](std::int64_t seed) {
                  return sparse_rows(sizes, features, seed);
                });
          break;
        case 'E':
          for (const auto& [name, noise] : {std::pair{"quiet", 0.0}, {"noisy", 0.3}})
            add('E', name, 1e-4 * sum_of_sizes(sizes_.online),
                [sizes = sizes_, share = noise](std::int64_t seed) {
                  return optimistic_rows(sizes, share, seed);
                });
          break;
        default:
          plan_rankings();
          break;
      }
    }
    return std::move(cells_);
  }

 private:
  using Rows = std::function<std::vector<CellRow>(std::int64_t seed)>;

  void add(char experiment, const std::string& setting, double cost, const Rows& rows,
           const std::string& data = "none") {
    for (const std::int64_t seed : plan_.seeds) add_one(experiment, setting, seed, cost, rows, data);
  }
  void add_one(char experiment, const std::string& setting, std::int64_t seed, double cost,
               const Rows& rows, const std::string& data) {
    const std::string recipe = fmt::format("format {}; {}; data {}", kCellFormat, sizes_.text(), data);
    const auto compute = [=] { return cell_json(experiment, setting, seed, recipe, rows(seed)); };
    cells_.push_back({fmt::format("{}-{}-seed{}", experiment, setting, seed), recipe, cost, compute});
  }

  void plan_lengths() {
    for (const std::string noise : {"query", "document"}) {
      for (const std::int64_t docs : sizes_.lengths) {
        add('A', fmt::format("{}-m{}", noise, docs), 0.02 * static_cast<double>(docs) + 0.5,
            [sizes = sizes_, docs, noise](std::int64_t seed) {
              return list_length_rows(sizes, docs, noise, seed);
            });
      }
    }
    for (const RealLists& lists : plan_.data) {
      add(
          'A', "real-" + lists.name, 1.0,
          [sizes = sizes_, lists](std::int64_t seed) { return real_list_rows(sizes, lists, seed); },
          lists.fingerprint);
    }
  }

  /// Folds in place of seeds: nothing is drawn.
  void plan_rankings() {
    for (const RealLists& lists : plan_.data) {
      if (lists.folds < 2) continue;
      for (const std::string loss : {"listnet", "ranksvm-mean", "ranknet-mean"}) {
        for (std::int64_t fold = 1; fold <= lists.folds; ++fold) {
          add_one(
              'F', fmt::format("{}-{}-fold{}", lists.name, loss, fold), 0, 4.0,
              [lists, loss, fold](std::int64_t) { return ranking_rows(lists, loss, fold); },
              lists.fingerprint);
        }
      }
    }
  }

  const GeneralisationPlan& plan_;
  const GeneralisationSizes& sizes_;
  std::vector<WorkCell> cells_;
};

}  // namespace

GeneralisationSizes GeneralisationSizes::small() {
  GeneralisationSizes sizes;
  sizes.lengths = {5, 20, 50};
  sizes.queries = {50, 200};
  sizes.held_out_docs = 20000;
  sizes.slope_queries = 50;
  sizes.online = {50, 200, 800};
  sizes.population = 1000;
  sizes.widths = {46, 500};
  sizes.sparse_queries = 50;
  return sizes;
}

std::string GeneralisationSizes::text() const {
  return fmt::format(
      "m {}; n {}; held out {} queries, {} documents; n m² of pairs {}; d {}; slopes {}; online n {}; "
      "population {}; d of balls {}, n {}; real m {}",
      fmt::join(lengths, ","), fmt::join(queries, ","), held_out, held_out_docs, most_pair_work, features,
      slope_queries, fmt::join(online, ","), population, fmt::join(widths, ","), sparse_queries,
      fmt::join(real_lengths, ","));
}

nlohmann::ordered_json cell_json(char experiment, const std::string& setting, std::int64_t seed,
                                 const std::string& recipe, const std::vector<CellRow>& rows) {
  nlohmann::ordered_json json = {{"experiment", std::string(1, experiment)},
                                 {"setting", setting},
                                 {"seed", seed},
                                 {"recipe", recipe},
                                 {"rows", nlohmann::ordered_json::array()}};
  for (const CellRow& row : rows) {
    nlohmann::ordered_json entry = nlohmann::ordered_json::object();
    for (const auto& [name, text] : row.labels) entry[name] = text;
    for (const auto& [name, value] : row.values) entry[name] = number_or_null(value);
    json["rows"].push_back(std::move(entry));
  }
  return json;
}

std::vector<CellRow> rows_of(const nlohmann::ordered_json& cell) {
  std::vector<CellRow> rows;
  for (const auto& entry : cell.at("rows")) {
    CellRow& row = rows.emplace_back();
    for (const auto& [name, value] : entry.items()) {
      if (value.is_string()) {
        row.labels[name] = value.get<std::string>();
      } else {
        row.values[name] = value.is_number() ? value.get<double>() : std::nan("");
      }
    }
  }
  return rows;
}

std::vector<WorkCell> plan_cells(const GeneralisationPlan& plan) {
  return CellPlanner(plan).plan();
}

}  // namespace olrank
