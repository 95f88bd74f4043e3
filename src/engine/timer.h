/* All deadlines of a system, in a hierarchical timing wheel (Varghese and Lauck 1987), exact to the
 * nanosecond: by due time, then in the order of arming (TMR-5).
 *
 * Arming and disarming are O(1) and allocate nothing, whatever else is armed. A timer that comes to
 * be due has been moved from wheel to finer wheel a few times on its way, at most WHEELS. To know
 * which deadline is the next is O(1) too, but for one look at those due at about that time when the
 * next one before it has been disarmed or has passed.
 *
 * A host may read its clock now and then only. What is armed coarsely then counts from the next time that
 * it tells, so that it never comes early, and stands in no wheel until that: most asks are answered
 * sooner.
 *
 * The wheels own nothing: a timer is embedded in what it belongs to. */
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

/* Zeroed before its first use. */
typedef struct tp_timer {
  tp_time due;
  struct tp_timer *next, *prev; /* of those in its place, in a ring; NULL when not armed */
  uint8_t kind;                 /* tp_timer_kind */
  bool undated;                 /* `due` is a delay still */
  uint8_t spare[3];             /* for what it belongs to: there is room */
} tp_timer;

typedef struct tp_timers tp_timers;

/* NULL when memory is out. */
tp_timers *tp_timers_new(tp_system *s);

void tp_timers_free(tp_system *s, tp_timers *w);

static inline bool tp_timer_is_armed(const tp_timer *t) { return t->next != NULL; }

/* Arms `t`, which is not armed, for a time that is not past; TP_NEVER arms nothing. */
void tp_timer_arm(tp_system *s, tp_timer *t, tp_timer_kind kind, tp_time due);

/* The same for a delay, from now, or from the next time that the host tells. */
void tp_timer_arm_coarsely(tp_system *s, tp_timer *t, tp_timer_kind kind, tp_time delay);

/* The host has told the time. */
void tp_timers_date(tp_system *s);

/* Does nothing when `t` is not armed. */
void tp_timer_disarm(tp_system *s, tp_timer *t);

/* Disarms the next one that is due at `now`, and gives it; NULL when none is. */
tp_timer *tp_timers_pop(tp_system *s, tp_time now);

/* How many are armed. */
size_t tp_timers_count(const tp_system *s);

/* `base` plus `delay`, at most TP_NEVER. */
static inline tp_time tp_time_after(tp_time base, tp_time delay) {
  return delay > TP_NEVER - base ? TP_NEVER : base + delay;
}

#endif
