#pragma once

#include <filesystem>
#include <string>

#include "apps/command.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// A study of recommenders.
struct StudyRequest {
  std::string file;
  std::string out;
  int threads = available_threads();
  bool choose = false;   // whatever the file says
  bool dry_run = false;  // only says what it would train
};

/// Whether a file has the table of such a study.
bool is_recommend_study(const std::filesystem::path& file);
/// Returns the exit code.
int run_recommend_study(const StudyRequest& request, const OutputFlags& output);

}  // namespace olrank
