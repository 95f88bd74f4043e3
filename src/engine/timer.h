/* All deadlines of a system: a 4-ary heap ordered by due time, then by the order of arming
 * (TMR-5). Each deadline knows its place, so that cancelling one is O(log n), and next to nothing
 * when it is among the latest, as the deadlines of asks are (4-ary heaps: D. B. Johnson, 1975).
 *
 * The heap owns nothing: a timer is embedded in what it belongs to. */
#ifndef TP_TIMER_H
#define TP_TIMER_H

#include "troupe.h"

typedef enum tp_timer_kind {
  TP_TIMER_SLOT,        /* a reply slot's deadline */
  TP_TIMER_GATHER,      /* a gather's deadline */
  TP_TIMER_GATHER_NEXT, /* the time to ask one more */
  TP_TIMER_TICK,        /* a timer of an actor or of the system */
  TP_TIMER_IDLE,        /* a receive timeout */
  TP_TIMER_SYSTEM,      /* the next step of terminating */
} tp_timer_kind;

typedef struct tp_timer {
  uint32_t place; /* in the heap, from 1; 0 when not armed */
  uint8_t kind;   /* tp_timer_kind */
} tp_timer;

typedef struct tp_deadline {
  tp_time due;
  uint64_t order;
  tp_timer *timer;
} tp_deadline;

typedef struct tp_timers {
  tp_deadline *heap; /* heap[0] is the next one */
  uint32_t count, capacity;
  uint64_t armed; /* ever, for the order */
} tp_timers;

/* Arms `t`, which is not armed; TP_NEVER arms nothing. TP_ENOMEM. */
int tp_timer_arm(tp_system *s, tp_timer *t, tp_timer_kind kind, tp_time due);

/* Does nothing when `t` is not armed. */
void tp_timer_disarm(tp_system *s, tp_timer *t);

/* Takes the next deadline that is due at `now` off the heap; NULL when none is. */
tp_timer *tp_timers_pop(tp_system *s, tp_time now, tp_time *due);

void tp_timers_fini(tp_system *s);

/* `base` plus `delay`, at most TP_NEVER. */
static inline tp_time tp_time_after(tp_time base, tp_time delay) {
  return delay > TP_NEVER - base ? TP_NEVER : base + delay;
}

#endif
