/* The one source of randomness: xoshiro256** (Blackman and Vigna, 2018), seeded by SplitMix64. */
#ifndef TP_RANDOM_H
#define TP_RANDOM_H

#include <stdint.h>

typedef struct tp_rng {
  uint64_t state[4];
} tp_rng;

void tp_rng_seed(tp_rng *r, uint64_t seed);

/* Uniform in [0, n), without bias; n at least 1. */
uint64_t tp_rng_below(tp_rng *r, uint64_t n);

#endif
