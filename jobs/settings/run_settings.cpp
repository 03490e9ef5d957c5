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
          .between(0, 4096)
          .flag("threads")
          .field("jobs", &S::jobs, "trials to run in parallel; at least one on each GPU")
          .between(1, 4096)
          .flag("jobs")
          .field("same_bits_on", &S::same_bits_on,
                 "`any-cpu` gives the same bits on every x86-64 CPU, at less than half the speed")
          .flag("same-bits-on")
          .field("checkpoint_every", &S::checkpoint_every, "rounds between checkpoints")
          .unit("rounds")
          .at_least(1)
          .field("keep_checkpoints", &S::keep_checkpoints,
                 "checkpoints that a trial keeps; a damaged one is passed over for the one before it")
          .between(1, 9)
          .field("out", &S::out, "output folder of the experiment")
          .flag("out")
          .build();
  return schema;
}

const Schema& SearchSettings::schema() {
  using S = SearchSettings;
  static const Schema schema =
      SchemaBuilder<S>("search",
                       "How `olrank tune` takes points from a `[sweep]`; other commands refuse this table.")
          .field("draws", &S::draws,
                 "points drawn at random for each ranker, where ranges may be swept; 0 tries every "
                 "combination")
          .between(0, 100000)
          .flag("draws")
          .field("seed", &S::seed, "random seed of the draws; more draws keep the first ones")
          .at_least(0)
          .build();
  return schema;
}

const Schema& StudySettings::schema() {
  using S = StudySettings;
  static const Schema schema =
      SchemaBuilder<S>(
          "study", "The comparison that `olrank bench covariance` makes; other commands refuse this table.")
          .field("structures", &S::structures,
                 "covariances, `inducing-N` with N as the budget, and `ensemble-N`; each is compared with "
                 "`full`")
          .flag("structures")
          .field("widths", &S::widths, "network widths")
          .symbol("m")
          .at_least(1)
          .flag("widths")
          .field("depths", &S::depths, "network depths, in layers of weights")
          .at_least(2)
          .flag("depths")
          .field("noise_variances", &S::noise_variances, "ensemble noise variances; all combinations run")
          .symbol("ν²")
          .at_least(0)
          .flag("noise-variances")
          .field("alpha", &S::alpha,
                 "`given` uses the ranker's own α for every structure; `matched` chooses α so that each "
                 "structure is wrong as often as `full`; also `--alpha matched`")
          .field("calibration_rounds", &S::calibration_rounds,
                 "rounds per value of α, on queries of the validation set")
          .unit("rounds")
          .at_least(1)
          .field(
              "exact_widths", &S::exact_widths,
              "also maintain the full covariance in every trial, and compare widths and decisions with it")
          .field("exact_training", &S::exact_training,
                 "`full` trains on its whole history in every round that brings pairs, whatever `retrain` "
                 "says; the others follow `retrain`")
          .build();
  return schema;
}

}  // namespace olrank
