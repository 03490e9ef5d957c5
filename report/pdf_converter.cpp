#include "report/pdf_converter.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/error.h"

extern char** environ;

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
    throw IoError(
        fmt::format("Cannot create a temporary file for a PDF figure: {}.", std::strerror(errno)));
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

}  // namespace

PdfConverter::PdfConverter() {
  if (is_installed("rsvg-convert")) {
    command_ = {"rsvg-convert", "--format=pdf"};
  } else if (is_installed("cairosvg")) {
    command_ = {"cairosvg", "--format=pdf", "--output=-", "-"};
  } else {
    throw IoError(
        "PDF figures are made by rsvg-convert, which is not installed; install it (package librsvg2-bin, "
        "or "
        "librsvg2-tools), or cairosvg, or choose --figures-format svg.");
  }
}

std::string PdfConverter::convert(std::string_view svg) const {
  const TemporaryFile input = temporary_file();
  const TemporaryFile output = temporary_file();
  if (std::fwrite(svg.data(), 1, svg.size(), input.get()) != svg.size() || std::fflush(input.get()) != 0)
    throw IoError(fmt::format("Cannot write a temporary file for a PDF figure: {}.", std::strerror(errno)));
  std::rewind(input.get());
  const int code = run(command_, input.get(), output.get());
  std::string pdf = whole_content(output.get());
  if (code != 0 || pdf.compare(0, 5, "%PDF-") != 0) {
    throw IoError(fmt::format(
        "{} made no PDF of a figure ({}); choose --figures-format svg.", program(),
        code < 0 ? std::string("it did not run to its end") : fmt::format("exit code {}", code)));
  }
  return pdf;
}

}  // namespace olrank
