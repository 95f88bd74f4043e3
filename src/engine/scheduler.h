/* The ready queue, and whose turn it is.
 *
 * What can run stands in one queue, first come, first served. An actor whose turn has come keeps it
 * for `throughput` messages, then goes to the back (DISP-1). Functions of timers that are due stand
 * in a queue of their own and wait for no actor's turn (DISP-2). Decisions about failures come
 * before everything else, so that nothing happens between a failure and its answer; then ranks, which
 * actors with priorities wait for; then events.
 *
 * A system that shuffles is for tests (TK-3): whose turn comes next is drawn from the queue, and
 * how long it lasts from 1 to `throughput`. Nothing else changes. */
#ifndef TP_SCHEDULER_H
#define TP_SCHEDULER_H

#include "troupe.h"

struct tp_actor;

typedef enum tp_run_kind {
  TP_RUN_ACTOR,
  TP_RUN_SLOT, /* a settled slot that somebody outside any actor waits for */
} tp_run_kind;

/* What stands in the ready queue; embedded in its owner. */
typedef struct tp_runnable {
  struct tp_runnable *next;
  uint8_t kind; /* tp_run_kind */
  bool queued;  /* in the queue, or having its turn */
} tp_runnable;

typedef struct tp_ready_queue {
  tp_runnable *first, *last;
} tp_ready_queue;

/* Puts `r` at the end of `q`, unless it is queued already. */
static inline void tp_ready_push(tp_ready_queue *q, tp_runnable *r) {
  if (r->queued) return;
  r->queued = true;
  r->next = NULL;
  if (q->last != NULL) {
    q->last->next = r;
  } else {
    q->first = r;
  }
  q->last = r;
}

/* The same, in the queue of its kind. */
void tp_schedule_run(tp_system *s, tp_runnable *r);

/* Lets all children of `parent` wait for their turn anew, in the order they were spawned, behind what
 * is ready now. O(ready + children). */
void tp_schedule_children(struct tp_actor *parent);

/* Takes `r` out, wherever it stands. O(n): for what is given up, not for what runs. */
void tp_unschedule_run(tp_system *s, tp_runnable *r);

#endif
