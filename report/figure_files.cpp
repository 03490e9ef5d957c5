#include "report/figure_files.h"

#include <fmt/format.h>

#include <set>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "report/drawing.h"
#include "report/figures.h"
#include "report/final_tables.h"
#include "report/markup.h"
#include "report/study.h"
#include "report/study_figures.h"

namespace olrank {
FigureWriter::FigureWriter(const std::vector<std::string>& formats) {
  for (const std::string& format : formats) {
    if (format == kSvgFormat) {
      svg_ = true;
    } else if (format == kPdfFormat) {
      if (pdf_.empty()) pdf_.emplace_back();
    } else {
      throw InvalidArgument(fmt::format("'{}' is no format of figures; choose {}, {} or {},{}.", format,
                                        kSvgFormat, kPdfFormat, kSvgFormat, kPdfFormat));
    }
  }
}

std::vector<PlacedFigure> placed_figures(const Report& report) {
  std::vector<PlacedFigure> figures;
  const auto add = [&](const std::string& place, ReportFigure figure) {
    std::string name = fmt::format("{}-{}", place, figure.slug);
    figures.push_back({std::move(name), std::move(figure)});
  };
  std::set<std::string> taken;
  for (const DataResults& data : report.data) {
    for (const UserResults& user : data.users) {
      const FinalTable table = final_table(user, data.cutoff);
      std::string place = name_slug(user.user);
      if (report.data.size() > 1) place = fmt::format("{}-{}", name_slug(data.data), place);
      for (std::size_t number = 2; !taken.insert(place).second; ++number)
        place = fmt::format("{}-{}", name_slug(user.user), number);
      for (ReportFigure& figure : figures_of(report, data, user, table)) add(place, std::move(figure));
    }
  }
  for (std::size_t i = 0; i < report.experiments.size(); ++i) {
    const ExperimentResults& results = report.experiments[i];
    if (!results.study) continue;
    const std::string place =
        report.experiments.size() > 1 ? fmt::format("study-{}", name_slug(report.labels[i])) : "study";
    const Study study = analyse_study(results, *results.study);
    for (ReportFigure& figure : study_figures(study)) add(place, std::move(figure));
    for (const StudyUser& user : study.users) {
      for (ReportFigure& figure : study_answers(study, user)) add(place, std::move(figure));
    }
  }
  return figures;
}

std::size_t FigureWriter::write(const Report& report, const std::filesystem::path& folder) const {
  make_folder(folder);
  const std::vector<PlacedFigure> figures = placed_figures(report);
  for (const auto& [name, figure] : figures) {
    const std::string light = standalone_svg(figure.drawing, Theme::kLight);
    if (svg_) {
      write_file_atomically(folder / (name + ".svg"), light);
      write_file_atomically(folder / (name + "-dark.svg"), standalone_svg(figure.drawing, Theme::kDark));
    }
    for (const PdfConverter& converter : pdf_)
      write_file_atomically(folder / (name + ".pdf"), converter.convert(light));
    write_file_atomically(folder / (name + ".csv"), figure.csv);
  }
  return figures.size();
}

}  // namespace olrank
