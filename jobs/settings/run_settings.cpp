#include "jobs/settings/run_settings.h"

namespace olrank {

const Schema& RunSettings::schema() {
  using S = RunSettings;
  static const Schema schema =
      SchemaBuilder<S>("run", "Where and how an experiment runs.")
          .field("device", &S::device,
                 "`auto`, `cpu`, `cuda`, `cuda:N`, or GPUs that share the trials: `cuda:all`, `cuda:0-3`, "
                 "`cuda:1,3`; `auto` means the CPU until GPU performance has been measured")
          .flag("device")
          .field("threads", &S::threads, "CPU threads shared by all trials; 0 uses every core")
          .at_least(0)
          .at_most(4096)
          .flag("threads")
          .field("jobs", &S::jobs, "trials to run in parallel; at least one on each GPU")
          .at_least(1)
          .at_most(4096)
          .flag("jobs")
          .field("same_bits_on", &S::same_bits_on,
                 "`any-cpu` gives the same bits on every x86-64 CPU, at less than half the speed")
          .flag("same-bits-on")
          .field("checkpoint_every", &S::checkpoint_every, "rounds between checkpoints")
          .unit("rounds")
          .at_least(1)
          .field("keep_checkpoints", &S::keep_checkpoints,
                 "checkpoints that a trial keeps; a damaged one is passed over for the one before it")
          .at_least(1)
          .at_most(9)
          .field("out", &S::out, "output folder of the experiment")
          .flag("out")
          .build();
  return schema;
}

}  // namespace olrank
