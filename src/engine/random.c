#include "random.h"

#include "hash.h"
#include "system.h"

static uint64_t rotate_left(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static uint64_t next(tp_rng *r) {
  uint64_t *s = r->state;
  uint64_t result = rotate_left(s[1] * 5, 7) * 9;
  uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotate_left(s[3], 45);
  return result;
}

void tp_rng_seed(tp_rng *r, uint64_t seed) {
  for (int i = 0; i < 4; i++) {
    seed += TP_HASH_STEP;
    r->state[i] = tp_hash_mix(seed);
  }
}

uint64_t tp_rng_below(tp_rng *r, uint64_t n) {
  uint64_t reject = (UINT64_MAX - n + 1) % n; /* 2^64 mod n: the uneven rest */
  uint64_t x;
  do x = next(r);
  while (x < reject);
  return x % n;
}

uint64_t tp_random(tp_system *s, uint64_t n) { return tp_rng_below(&s->rng, n); }
