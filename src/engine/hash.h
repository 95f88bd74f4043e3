/* Hashes, for consistent hashing above all. Where a key belongs may not change from one version to the
 * next, so neither may these. */
#ifndef TP_HASH_H
#define TP_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a with 64 bits (Fowler, Noll and Vo). */
uint64_t tp_hash(const void *bytes, size_t length);

/* Spreads a change of any bit over all 64: the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast
 * splittable pseudorandom number generators", 2014), which is MurmurHash3's with other constants. */
uint64_t tp_hash_mix(uint64_t x);

/* How well key and node go together: the nth number of a SplitMix64 that begins at `key`, where n is
 * the number of the node. */
uint64_t tp_hash_score(uint64_t key, uint64_t node);

/* What SplitMix64 adds for each number. */
#define TP_HASH_STEP 0x9e3779b97f4a7c15u

#endif
