#pragma once

namespace olrank {

/// The columns of the terminal behind a file descriptor. For anything else, such as a file or a pipe, the
/// environment's COLUMNS, and 0, no limit, without it.
int terminal_columns(int descriptor);

}  // namespace olrank
