#pragma once

namespace olrank {

/// The command line of olrank: plays, measures, ranks and serves as its arguments say, and returns the exit
/// code. What goes wrong is on stderr.
int run_program(int argc, char** argv);

}  // namespace olrank
