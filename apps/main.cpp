#include "apps/program.h"

int main(int argc, char** argv) {
  return olrank::run_program(argc, argv);
}
