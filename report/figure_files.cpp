#include "report/outputs.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/throw_error.h"
#include "report/drawing.h"
#include "report/final_tables.h"
#include "report/markup.h"
#include "report/study.h"
#include "report/study_figures.h"

namespace olrank {
namespace {

/// Whether a folder of PATH holds an executable file of this name.
bool is_installed(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const std::size_t length = std::min(folders.find(':'), folders.size());
    const std::string file = fmt::format("{}/{}", folders.substr(0, length), program);
    if (length > 0 && access(file.c_str(), X_OK) == 0) return true;
    folders.remove_prefix(std::min(length + 1, folders.size()));
  }
  return false;
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using TemporaryFile = std::unique_ptr<std::FILE, FileCloser>;

/// A file without a name. A pipe would block if the program wrote before it has read everything.
TemporaryFile temporary_file() {
  TemporaryFile file(std::tmpfile());
  if (file == nullptr)
    throw_error<IoError>("Cannot create a temporary file for a PDF figure: {}.", std::strerror(errno));
  return file;
}

std::string whole_content(std::FILE* file) {
  std::string content;
  char block[65536];
  std::rewind(file);
  while (const std::size_t count = std::fread(block, 1, sizeof block, file)) content.append(block, count);
  return content;
}

/// Runs the command with these files as standard input and output. Returns its exit code, or -1.
int run(const std::vector<std::string>& command, std::FILE* input, std::FILE* output) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, fileno(input), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, fileno(output), STDOUT_FILENO);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// A program of this machine that turns SVG on its standard input into PDF: rsvg-convert, or cairosvg where
/// that is missing.
std::vector<std::string> find_pdf_command() {
  if (is_installed("rsvg-convert")) return {"rsvg-convert", "--format=pdf"};
  if (is_installed("cairosvg")) return {"cairosvg", "--format=pdf", "--output=-", "-"};
  throw IoError(
      "PDF figures are made by rsvg-convert, which is not installed; install it (package librsvg2-bin, or "
      "librsvg2-tools), or cairosvg, or choose --figures-format svg.");
}

std::string pdf_of(std::string_view svg, const std::vector<std::string>& command) {
  const TemporaryFile input = temporary_file();
  const TemporaryFile output = temporary_file();
  if (std::fwrite(svg.data(), 1, svg.size(), input.get()) != svg.size() || std::fflush(input.get()) != 0)
    throw_error<IoError>("Cannot write a temporary file for a PDF figure: {}.", std::strerror(errno));
  std::rewind(input.get());
  const int code = run(command, input.get(), output.get());
  std::string pdf = whole_content(output.get());
  if (code != 0 || pdf.compare(0, 5, "%PDF-") != 0) {
    throw_error<IoError>(
        "{} made no PDF of a figure ({}); choose --figures-format svg.", command.front(),
        code < 0 ? std::string("it did not run to its end") : fmt::format("exit code {}", code));
  }
  return pdf;
}

}  // namespace

FigureWriter::FigureWriter(const std::vector<std::string>& formats) {
  for (const std::string& format : formats) {
    if (format == kSvgFormat) {
      svg_ = true;
    } else if (format == kPdfFormat) {
      pdf_command_ = find_pdf_command();
    } else {
      throw_error<InvalidArgument>("'{}' is no format of figures; choose {}, {} or {},{}.", format,
                                   kSvgFormat, kPdfFormat, kSvgFormat, kPdfFormat);
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
    if (!pdf_command_.empty()) write_file_atomically(folder / (name + ".pdf"), pdf_of(light, pdf_command_));
    write_file_atomically(folder / (name + ".csv"), figure.csv);
  }
  return figures.size();
}

}  // namespace olrank
