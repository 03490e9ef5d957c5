#pragma once

#include <cstdint>
#include <vector>

#include "core/online/query_docs.h"

namespace olrank {

/// A query's names, which are its numbers unless it has others.
struct NamedQuery {
  explicit NamedQuery(const QueryDocs& query) {
    if (query.identity != nullptr) {
      identity = *query.identity;
      return;
    }
    for (std::int32_t doc = 0; doc < query.docs(); ++doc) numbers.push_back(query.number(doc));
    identity = {query.query, numbers};
  }

  std::vector<std::int64_t> numbers;
  QueryIdentity identity;
};

}  // namespace olrank
