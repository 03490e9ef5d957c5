#pragma once

namespace olrank::emulation {

/// What the library does with the factors of a product in TF32: it rounds them to nearest or cuts them off,
/// by the kind of card, or multiplies in float32, by the shape.
enum class Tf32 { kRounds, kTruncates, kIgnores };
/// kRounds at first.
void set_tf32(Tf32 mode);
Tf32 tf32();

}  // namespace olrank::emulation
