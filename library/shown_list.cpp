#include "library/shown_list.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/io/state_archive.h"

namespace olrank {

std::string ShownList::bytes() const {
  StateWriter state;
  state.put("list.docs", docs);
  state.put("list.scores", scores);
  std::vector<std::int32_t> orders;
  for (const CertainPair& pair : certain) orders.insert(orders.end(), {pair.first, pair.second});
  state.put("list.certain", orders);
  state.put("list.widths", widths);
  state.put("list.propensity", propensity);
  if (query != nullptr) {
    state.put("list.recipe", std::vector<std::uint64_t>{query->recipe.high, query->recipe.low});
    state.put("list.round", query->round);
    state.put("list.answered", std::uint8_t{query->answered});
    state.put_text("list.query", query->name);
    state.put("list.inputs", query->all_inputs());
  }
  return state.bytes();
}

ShownList ShownList::from_bytes(std::string bytes) {
  StateReader reader(std::move(bytes), "list", "rank the query again");
  ShownList list;
  list.docs = reader.get<std::int32_t>("list.docs");
  list.scores = reader.get<float>("list.scores");
  const auto orders = reader.get<std::int32_t>("list.certain");
  list.widths = reader.get<double>("list.widths");
  list.propensity = reader.get<double>("list.propensity");
  const auto count = std::ssize(list.scores);
  const auto is_doc = [&](std::int32_t doc) { return doc >= 0 && doc < count; };
  std::vector<std::int32_t> sorted = list.docs;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    reader.fail("It has a document twice.");
  if (!std::all_of(list.docs.begin(), list.docs.end(), is_doc) || orders.size() % 2 != 0 ||
      !std::all_of(orders.begin(), orders.end(), is_doc) ||
      (!list.propensity.empty() && list.propensity.size() != list.docs.size()) ||
      (!list.widths.empty() && std::ssize(list.widths) != count * count)) {
    reader.fail("It names documents that it does not have.");
  }
  for (std::size_t place = 0; place < orders.size(); place += 2)
    list.certain.push_back({orders[place], orders[place + 1]});
  list.query = std::make_shared<Query>();
  Query& query = *list.query;
  const auto recipe = reader.get<std::uint64_t>("list.recipe");
  if (recipe.size() != 2) reader.fail("Its ranker is unknown.");
  query.recipe = {recipe[0], recipe[1]};
  query.round = reader.get_one<std::uint32_t>("list.round");
  query.answered = reader.get_one<std::uint8_t>("list.answered") != 0;
  query.name = reader.get_text("list.query");
  query.inputs = reader.get<float>("list.inputs");
  query.docs = count;
  if (count == 0 || query.inputs.empty() || std::ssize(query.inputs) % count != 0 ||
      !std::all_of(query.inputs.begin(), query.inputs.end(),
                   [](float value) { return std::isfinite(value); })) {
    reader.fail("Its documents are damaged.");
  }
  reader.require_end();
  query.width = std::ssize(query.inputs) / count;
  query.give_names();
  return list;
}

}  // namespace olrank
