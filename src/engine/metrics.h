/* Counts of what a system does, for whoever keeps an eye on it (MET-2).
 *
 * They are memory of their own, which a system has only when it is asked to count: without them a
 * count costs one test. What can be read off a system at any time, such as its queued messages, is
 * not counted again. */
#ifndef TP_METRICS_H
#define TP_METRICS_H

#include "system.h"

/* Counts one more, if the system counts. */
static inline void tp_count(tp_system *s, tp_counter c) {
  if (s->metrics != NULL) s->metrics->counters[c]++;
}

/* A router has taken up a message. */
static inline void tp_count_routed(tp_system *s, tp_routing routing) {
  if (s->metrics != NULL) s->metrics->routed[routing]++;
}

/* A message has become a dead letter; `reason` is one of tp_dead_letter_reasons. Another one is a mistake
 * of the engine, which an assertion catches; without assertions it is not counted. */
void tp_count_dead_letter(tp_system *s, const char *reason);

/* A scatter has ended `latency` after it began. */
void tp_metrics_gathered(tp_system *s, tp_time latency);

#endif
