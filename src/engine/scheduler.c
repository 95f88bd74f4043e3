#include "scheduler.h"

#include <math.h>

#include "events.h"
#include "lifecycle.h"
#include "priority.h"
#include "supervision.h"
#include "system.h"
#include "tick.h"

/* A subscriber that makes an event for each that it gets must not keep actors from their turns, nor
 * must a priority function that tells a message for each that it ranks. */
enum { EVENTS_IN_A_ROW = 1024, RANKS_IN_A_ROW = 1024 };

/* Routers that send to each other for ever make no job, and must not keep the clock from going on. */
enum { QUIET_TURNS = 32 };

/* ---- The ready queue -------------------------------------------------------------------- */

void tp_schedule_run(tp_system *s, tp_runnable *r) { tp_ready_push(&s->ready, r); }

static tp_runnable *take_first(tp_ready_queue *q) {
  tp_runnable *r = q->first;
  q->first = r->next;
  if (q->first == NULL) q->last = NULL;
  return r;
}

/* Takes out `r`, which stands behind `previous`, or first. */
static void take_out(tp_ready_queue *q, tp_runnable *previous, tp_runnable *r) {
  if (previous != NULL) {
    previous->next = r->next;
  } else {
    q->first = r->next;
  }
  if (q->last == r) q->last = previous;
}

/* The actor that is about to restart, or NULL. */
static const tp_actor *restarting(tp_runnable *r) {
  if (r->kind != TP_RUN_ACTOR) return NULL;
  const tp_actor *a = TP_CONTAINER(r, tp_actor, run);
  return a->phase == TP_PHASE_PRE_RESTART ? a : NULL;
}

/* Whether `r` restarts with `drawn`, in which case the first in the queue goes first (SUP-5). */
static bool restarts_with(tp_runnable *r, const tp_actor *drawn) {
  const tp_actor *a = restarting(r);
  return a != NULL && a->parent == drawn->parent;
}

/* Any of them, each as likely as the others. */
static tp_runnable *take_any(tp_system *s, tp_ready_queue *q) {
  uint64_t count = 0;
  for (const tp_runnable *at = q->first; at != NULL; at = at->next) count++;
  tp_runnable *previous = NULL, *r = q->first;
  for (uint64_t skip = tp_random(s, count); skip > 0; skip--) {
    previous = r;
    r = r->next;
  }
  const tp_actor *drawn = restarting(r);
  if (drawn != NULL) {
    for (previous = NULL, r = q->first; !restarts_with(r, drawn); r = r->next) previous = r;
  }
  take_out(q, previous, r);
  return r;
}

void tp_unschedule_run(tp_system *s, tp_runnable *r) {
  if (!r->queued) return;
  tp_ready_queue *q = &s->ready;
  tp_runnable *previous = NULL;
  for (tp_runnable *at = q->first; at != NULL; previous = at, at = at->next) {
    if (at != r) continue;
    take_out(q, previous, r);
    r->queued = false;
    return;
  }
}

/* ---- What runs outside any actor -------------------------------------------------------- */

static bool resume_slot(tp_system *s, tp_runnable *r, tp_job *job) {
  tp_slot *slot = TP_CONTAINER(r, tp_slot, run);
  r->queued = false;
  job->kind = TP_JOB_RESUME;
  job->token = slot->token;
  slot->notify = false;
  slot->job = NULL;
  s->waits--;
  tp_ref_release(&slot->ref);
  return true;
}

/* Runs the function of a timer that is due; false when it was cancelled meanwhile. */
static bool run_tick(tp_system *s, tp_job *job) {
  if (!tp_tick_take_due(s, &job->tick, &job->code)) return false;
  job->kind = TP_JOB_TIMER;
  return true;
}

/* ---- Turns ------------------------------------------------------------------------------ */

static uint32_t share_of(const tp_system *s, const tp_actor *a) {
  return a->behavior == NULL ? s->throughput : tp_behavior_look(a->behavior)->throughput;
}

static void begin_turn(tp_system *s, tp_actor *a) {
  tp_ref_retain(&a->ref);
  s->turn = a;
  s->turn_left = share_of(s, a);
}

static void end_turn(tp_system *s, tp_turn turn) {
  tp_actor *a = s->turn;
  if (a == NULL) return; /* it waits for its turn anew */
  s->turn = NULL;
  a->run.queued = false;
  if (turn == TP_TURN_USED) tp_schedule_run(s, &a->run);
  tp_ref_release(&a->ref);
}

static bool is_child(tp_runnable *r, const tp_actor *parent) {
  return r->kind == TP_RUN_ACTOR && TP_CONTAINER(r, tp_actor, run)->parent == parent;
}

static void unschedule_children(tp_system *s, const tp_actor *parent) {
  tp_runnable *r = s->ready.first, *next;
  s->ready = (tp_ready_queue){0};
  for (; r != NULL; r = next) {
    next = r->next;
    r->queued = false;
    if (!is_child(r, parent)) tp_schedule_run(s, r);
  }
}

void tp_schedule_children(tp_actor *parent) {
  tp_system *s = parent->ref.system;
  if (s->turn != NULL && s->turn->parent == parent) end_turn(s, TP_TURN_IDLE);
  unschedule_children(s, parent);
  for (tp_actor *c = tp_actor_first_child(parent); c != NULL;
       c = tp_actor_sibling(parent, c->siblings.next)) {
    tp_schedule_run(s, &c->run);
  }
}

static bool give_turn(tp_system *s, tp_runnable *r, tp_job *job) {
  if (r->kind == TP_RUN_SLOT) return resume_slot(s, r, job);
  begin_turn(s, TP_CONTAINER(r, tp_actor, run));
  return false;
}

static bool draw_turn(tp_system *s, tp_job *job) {
  if (give_turn(s, take_any(s, &s->ready), job)) return true;
  s->turn_left = 1 + (uint32_t)tp_random(s, s->turn_left);
  return false;
}

/* Gives the next in the ready queue its turn; true when that is a job at once. */
static bool take_turn(tp_system *s, tp_job *job) {
  if (s->shuffles) return draw_turn(s, job);
  return give_turn(s, take_first(&s->ready), job);
}

static bool work_waits(const tp_system *s) {
  return s->tickers.first_due != NULL || s->turn != NULL || s->ready.first != NULL;
}

/* What comes before everybody's turn: decisions, ranks, events. */
static bool comes_first(const tp_system *s) {
  return s->decisions != NULL || !tp_list_empty(&s->unranked) || s->events.count > 0;
}

static bool first_next(tp_system *s, tp_job *job) {
  if (s->decisions != NULL && tp_decision_next(s, job)) return true;
  if (!tp_list_empty(&s->unranked) && (s->ranks_in_row < RANKS_IN_A_ROW || !work_waits(s))) {
    s->ranks_in_row++;
    if (tp_priority_next(s, job)) return true;
  }
  if (s->events.count == 0) return false;
  if (s->events.in_row >= EVENTS_IN_A_ROW && work_waits(s)) return false;
  s->events.in_row++;
  tp_events_next(s, job);
  return true;
}

bool tp_next(tp_system *s, tp_job *job) {
  job->system = s;
  for (uint32_t quiet = 0; quiet < QUIET_TURNS;) {
    job->actor = NULL;
    if (comes_first(s) && first_next(s, job)) return true;
    s->ranks_in_row = s->events.in_row = 0;
    if (s->tickers.first_due != NULL) {
      if (run_tick(s, job)) return true;
    } else if (s->turn == NULL && s->ready.first == NULL) {
      if (!tp_system_at_rest(s)) return false;
    } else {
      if (s->turn == NULL && take_turn(s, job)) return true;
      tp_turn turn = tp_actor_next(s->turn, job);
      if (turn == TP_TURN_JOB) return true;
      end_turn(s, turn);
      quiet++;
    }
  }
  return false;
}

bool tp_ready(const tp_system *s) {
  return s->decisions != NULL || !tp_list_empty(&s->unranked) || s->events.count > 0 ||
         s->tickers.first_due != NULL || s->turn != NULL || s->ready.first != NULL ||
         tp_system_drained(s);
}

void tp_done(tp_job *job) {
  if (job->kind == TP_JOB_RECEIVE) {
    tp_actor_received(tp_actor_of(job->actor), job);
    return;
  }
  tp_system *s = job->system;
  switch (job->kind) {
    case TP_JOB_EVENT:
      s->events.in_hand = false;
      tp_event_release(s, &job->event);
      break;
    case TP_JOB_TIMER: tp_value_release(s, job->code); break;
    case TP_JOB_RESUME: break;
    case TP_JOB_DECIDE: tp_decided(job, TP_DIRECTIVE_STOP); break;
    case TP_JOB_RANK: tp_ranked(job, INFINITY); break;
    default: tp_actor_done(tp_actor_of(job->actor), job); break;
  }
}
