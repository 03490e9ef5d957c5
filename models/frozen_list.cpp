#include "models/frozen_list.h"

#include "core/explore/exploring_list.h"

namespace olrank {

void make_frozen_list(const ExplorationSettings& settings, PhiloxKey key, const RankingTask& task,
                      Ranking& ranking) {
  ExploringList list(task.explore ? settings.list : ListRule::kGreedy, settings.refine, key);
  const RankedList made = list.make(ranking.by_score, ranking.orders, task.round, task.cutoff);
  ranking.list.assign(made.docs.begin(), made.docs.end());
  ranking.knows_orders = true;
  ranking.certainty = made.certainty;
}

}  // namespace olrank
