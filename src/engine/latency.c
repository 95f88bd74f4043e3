#include "latency.h"

#include <math.h>

/* How many are added before what is old weighs half. */
enum { FULL = 1024 };

/* Below 16 a bucket for each; then the four bits after the first that is set choose among sixteen. */
static uint32_t bucket_of(uint64_t latency) {
  uint32_t shift = 0;
  while (latency >> shift >= 2 * TP_LATENCY_EXACT) shift++;
  return shift * TP_LATENCY_EXACT + (uint32_t)(latency >> shift);
}

/* The longest that belongs there. */
static tp_time end_of(uint32_t bucket) {
  if (bucket < 2 * TP_LATENCY_EXACT) return bucket;
  uint32_t shift = bucket / TP_LATENCY_EXACT - 1;
  uint64_t first = (uint64_t)(bucket % TP_LATENCY_EXACT + TP_LATENCY_EXACT) << shift;
  return (tp_time)(first + ((uint64_t)1 << shift) - 1);
}

static void halve(tp_latency *l) {
  l->count = 0;
  for (uint32_t i = 0; i < TP_LATENCY_BUCKETS; i++) {
    l->buckets[i] /= 2;
    l->count += l->buckets[i];
  }
}

void tp_latency_add(tp_latency *l, tp_time latency) {
  l->buckets[bucket_of((uint64_t)latency)]++;
  l->count++;
  if (l->count >= FULL) halve(l);
}

tp_time tp_latency_at(const tp_latency *l, double percentile) {
  uint32_t rank = (uint32_t)ceil(percentile * l->count), seen = 0, bucket = 0;
  while ((seen += l->buckets[bucket]) < rank) bucket++;
  return end_of(bucket);
}
