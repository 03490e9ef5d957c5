#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// A log of all deployed policies says this of a query's documents.
struct ObservedQuery {
  std::vector<std::int64_t> docs;  // their names
  std::vector<float> features;     // [docs × d]
  std::vector<double> clicks;      // of each document
  std::vector<double> places;  // [docs × ranks] lists that the policies were expected to show it in there
  std::int64_t lists = 0;
};

/// The intervention-aware estimate of each document's relevance (Oosterhuis and de Rijke, "Unifying online
/// and counterfactual learning to rank", WSDM 2021), above the `usual` one: clicks − usual · E, over E, the
/// examinations that all policies of the log together were expected to bring, Σ_k examination[k] · places.
/// A click at rank k has the probability examination[k] · relevance, so that the estimate has no bias where
/// E is at least the share `least` of the lists. Below, that share takes the place of E in the denominator,
/// and the estimate is nearer to the usual.
void estimate_relevance(const ObservedQuery& query, std::span<const double> examination, double usual,
                        double least, std::span<double> relevance);

std::unique_ptr<OnlineRanker> make_intervention_aware(const RankerRequest& request);
void set_intervention_aware_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
