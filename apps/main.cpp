#include <cstdio>
#include <cstdlib>

#include "apps/program.h"

int main(int argc, char** argv) {
  const int code = olrank::run_program(argc, argv);
#if defined(OLRANK_ENDS_AT_ONCE)
  // Taking LibTorch's tables apart takes 0.1 s, a third of a short command.
  std::fflush(nullptr);
  std::_Exit(code);
#endif
  return code;
}
