#include "apps/command.h"

#include <unistd.h>

#include "core/runtime/terminal.h"

namespace olrank {

int OutputFlags::columns() const {
  return wide ? 0 : terminal_columns(STDOUT_FILENO);
}

}  // namespace olrank
