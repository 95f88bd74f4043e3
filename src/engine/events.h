/* What is told to the outside: a queue of events, each of which becomes a job. Kinds that nobody
 * wants cost one test. */
#ifndef TP_EVENTS_H
#define TP_EVENTS_H

#include "troupe.h"

typedef struct tp_events {
  tp_event *ring;
  uint32_t head, count, capacity;
  uint32_t wanted; /* a set of 1u << kind */
  size_t lost;     /* for want of memory */
  uint32_t in_row; /* that became jobs with nothing else in between */
  bool in_hand;    /* one is a job now */
} tp_events;

/* Whether somebody wants events of that kind: others need not be made. */
static inline bool tp_events_wanted(const tp_events *q, tp_event_kind kind) {
  return (q->wanted & (1u << kind)) != 0;
}

/* Queues a copy of `e`; what it points to is borrowed. */
void tp_events_publish(tp_system *s, const tp_event *e);

/* Makes a job of the oldest event; the queue must not be empty. */
void tp_events_next(tp_system *s, tp_job *job);

/* Releases what an event points to. */
void tp_event_release(tp_system *s, tp_event *e);

void tp_events_fini(tp_system *s);

#endif
