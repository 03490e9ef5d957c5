#pragma once

#include <memory>
#include <string>

#include "core/online/click_model.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// The grades of a query. Throws InvalidArgument, naming the ranker, where the labels have none for it.
QueryGrades grades_of(const LabelledQueries& labels, const QueryDocs& query, const std::string& ranker);

std::unique_ptr<OnlineRanker> make_lambdarank_labels(const RankerRequest& request);
void set_lambdarank_labels_defaults(RankerSettings& settings, const DefaultsContext& context);

std::unique_ptr<OnlineRanker> make_lambdarank_step(const RankerRequest& request);
void set_lambdarank_step_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
