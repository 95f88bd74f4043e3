/* Receive timeout: an actor is told when it has had no user mail for a while (TMR-7; Erlang's
 * `receive ... after`, Akka's setReceiveTimeout).
 *
 * The time counts from the end of the last user message; handling one stops the clock. What is
 * queued when it has run out is a mark with a number: a user message that is handled first, or
 * another setting, makes it stale, and it is passed over. */
#ifndef TP_IDLE_H
#define TP_IDLE_H

#include "actor.h"

struct tp_idle {
  tp_actor *owner;
  tp_timer timer;
  tp_time timeout; /* TP_NEVER: off */
  int64_t number;  /* of the mark that is queued */
  bool queued;     /* and not stale */
};

/* The time has run out. */
void tp_idle_fire(tp_timer *t);

/* The mark `number` is taken up: whether it counts. */
bool tp_idle_take(tp_actor *a, int64_t number);

/* The clock starts, unless it runs, or its mark is queued, or the actor is busy. */
void tp_idle_start(tp_actor *a);

/* The clock stops; a mark that is queued is stale. */
void tp_idle_stop(tp_actor *a);

/* It is off, until it is set again. */
void tp_idle_off(tp_actor *a);

void tp_idle_free(tp_actor *a);

static inline bool tp_has_idle(const tp_actor *a) {
  return a->extra != NULL && a->extra->idle != NULL;
}

#endif
