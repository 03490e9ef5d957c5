#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/page.h"
#include "report/study.h"

namespace olrank {

/// Findings are what a study's tests say about one user.
struct StudyFindings {
  std::string headline;                // which structures differ from the exact one
  std::vector<std::string> sentences;  // by structure: quality, certain share and cost; and what would tell
};

StudyFindings study_findings(const Study& study, const StudyUser& user);

/// A cell's structure without width and depth, and its noise if the plan has several: "ensemble-2, ν² 0.1".
std::string structure_name(const StudyPlan& plan, const StudyCell& cell);

/// The structures' names, in the plan's order.
std::vector<std::string> structure_names(const StudyPlan& plan);

/// "m = 16", and the number of layers if the study has several.
std::string size_name(const StudyPlan& plan, const StudyCell& cell);

/// Whether the value was compared with the exact structure and differs after Holm's correction.
bool is_significant(const StudyValue* value);

/// The row's widths relative to exact ones at the last evaluation; null without widths of its own or
/// without exact ones to compare them with.
const StudyWidths* final_widths(const StudyRow& row, const StudyCell& cell);

/// Findings and tables for a terminal of this width; 0 is no limit.
std::string study_text(const Study& study, std::int64_t columns);

/// The study's section of a page: its answer and a table of paired differences for each user.
void add_study(Page& page, const Study& study, const std::string& label);

}  // namespace olrank
