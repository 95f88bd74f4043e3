#include "latency.h"

#include <math.h>

/* Below 16 a bucket for each; then the four bits after the first that is set choose among sixteen. */
static uint32_t bucket_of(uint64_t latency) {
  uint32_t shift = 0;
  while (latency >> shift >= 2 * TP_LATENCY_EXACT) shift++;
  return shift * TP_LATENCY_EXACT + (uint32_t)(latency >> shift);
}

/* The shortest that belongs there, and how many there are. */
static uint64_t begin_of(uint32_t bucket, uint64_t *width) {
  uint32_t shift = bucket < 2 * TP_LATENCY_EXACT ? 0 : bucket / TP_LATENCY_EXACT - 1;
  *width = (uint64_t)1 << shift;
  if (shift == 0) return bucket;
  return (uint64_t)(bucket % TP_LATENCY_EXACT + TP_LATENCY_EXACT) << shift;
}

/* The odd one of a bucket goes on to the next, or the tail, where they are few, would be lost. */
static void halve(tp_latency *l) {
  uint32_t odd = 0;
  l->count = 0;
  for (uint32_t i = 0; i < TP_LATENCY_BUCKETS; i++) {
    uint32_t kept = l->buckets[i] + odd;
    odd = kept % 2;
    l->buckets[i] = kept / 2;
    l->count += l->buckets[i];
  }
}

void tp_latency_add(tp_latency *l, tp_time latency) {
  l->buckets[bucket_of((uint64_t)latency)]++;
  l->count++;
  if (l->count >= l->full) halve(l);
}

/* Those of a bucket are taken to be spread evenly over it. */
tp_time tp_latency_at(const tp_latency *l, double percentile) {
  uint64_t width;
  uint32_t rank = (uint32_t)ceil(percentile * l->count), bucket = 0;
  while (l->buckets[bucket] < rank) rank -= l->buckets[bucket++];
  uint64_t begin = begin_of(bucket, &width);
  if (rank == l->buckets[bucket]) return (tp_time)(begin + width - 1);
  return (tp_time)(begin + (uint64_t)((double)width * rank / l->buckets[bucket]));
}
