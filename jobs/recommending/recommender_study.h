#pragma once

#include <filesystem>
#include <string>

#include "core/runtime/execution_context.h"
#include "core/text/text_table.h"

namespace olrank {

struct RecommenderStudyRequest {
  std::string file;
  std::string out;
  int threads = available_threads();
  bool choose = false;   // whatever the file says
  bool dry_run = false;  // only says what it would train
};

bool is_recommend_study(const std::filesystem::path& file);
/// Trains what the folder lacks, then writes and prints the table. Returns the exit code.
int run_recommender_study(const RecommenderStudyRequest& request, const std::string& command,
                          const OutputForm& form, const TextSink& print);

}  // namespace olrank
