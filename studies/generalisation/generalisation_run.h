#pragma once

#include <string>
#include <vector>

#include "core/text/text_table.h"
#include "jobs/experiment_setup.h"
#include "studies/generalisation/generalisation_plan.h"

namespace olrank {

struct GeneralisationRequest {
  std::vector<std::string> data;  // folders of real lists
  std::string out;
  int jobs = 1;  // cells at once
};

/// Computes the plan's cells that the output folder lacks and, once it has all, writes and prints the
/// findings. Reads the lists of the request's folders into the plan. Returns the exit code.
int run_generalisation(GeneralisationPlan plan, const GeneralisationRequest& generalisation,
                       const ExperimentRequest& request, const std::string& command, const OutputForm& form,
                       const TextSink& print);

}  // namespace olrank
