// Runs commands of olrank for the tests in Python (tests/apps/command_line.py): a child of this process has
// LibTorch loaded, which takes each start of the program .35 s of processor time. A line of the input is a
// command as JSON, a line of the output its exit code, or its signal below zero.

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/program.h"

namespace {

void put_in_place(const std::string& file, int flags, int descriptor) {
  const int opened = open(file.c_str(), flags);
  if (opened < 0 || dup2(opened, descriptor) < 0) std::abort();
  close(opened);
}

int run(const nlohmann::json& command) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  put_in_place("/dev/null", O_RDONLY, STDIN_FILENO);
  put_in_place(command.at("output"), O_WRONLY | O_APPEND, STDOUT_FILENO);
  put_in_place(command.at("errors"), O_WRONLY | O_APPEND, STDERR_FILENO);
  if (chdir(command.at("folder").get<std::string>().c_str()) != 0) std::abort();
  clearenv();
  for (const auto& [name, value] : command.at("environment").items()) {
    setenv(name.c_str(), value.get<std::string>().c_str(), 1);
  }
  auto words = command.at("arguments").get<std::vector<std::string>>();
  words.insert(words.begin(), "olrank");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return olrank::run_program(static_cast<int>(words.size()), arguments.data());
}

}  // namespace

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (std::string line; std::getline(std::cin, line);) {
    const auto command = nlohmann::json::parse(line);
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      const int code = run(command);
      std::fflush(nullptr);
      std::_Exit(code);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) return 1;
    std::cout << (WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status)) << std::endl;
  }
  return 0;
}
