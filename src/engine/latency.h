/* A histogram of latencies, for percentiles that follow what happens now.
 *
 * Buckets grow with what they hold: sixteen for each power of two, so that a percentile is at most a
 * sixteenth off (as in HdrHistogram, G. Tene). When many have been added, all counts are halved: what is
 * old weighs less and less. */
#ifndef TP_LATENCY_H
#define TP_LATENCY_H

#include "troupe.h"

enum { TP_LATENCY_EXACT = 16, TP_LATENCY_BUCKETS = 60 * TP_LATENCY_EXACT };

typedef struct tp_latency {
  uint32_t full;  /* how many are kept before what is old weighs half; at least 2 */
  uint32_t count; /* of those that still weigh */
  uint32_t buckets[TP_LATENCY_BUCKETS];
} tp_latency;

/* All zero but `full` is an empty one. `latency` in nanoseconds, at least 0. */
void tp_latency_add(tp_latency *l, tp_time latency);

/* A latency that the share `percentile` (above 0, at most 1) of those added does not exceed; the
 * histogram must not be empty. */
tp_time tp_latency_at(const tp_latency *l, double percentile);

#endif
