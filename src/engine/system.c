#include "system.h"

#include <assert.h>
#include <string.h>

#include "alloc.h"
#include "fault.h"
#include "gather.h"
#include "idle.h"
#include "lifecycle.h"
#include "mailbox.h"
#include "names.h"
#include "resolve.h"
#include "router.h"
#include "slot.h"
#include "stream.h"
#include "tick.h"
#include "value.h"
#include "watch.h"

/* How long hooks that wait may hold up the end, once draining is over (SYS-5). */
#define STOP_TIMEOUT (2000 * TP_MILLISECOND)

/* ---- Begin ------------------------------------------------------------------------------ */

static int make_guardians(tp_system *s) {
  int status = tp_actor_new(s, NULL, NULL, NULL, 0, &s->root);
  if (status == TP_OK) status = tp_actor_new(s, s->root, NULL, "user", 4, &s->user);
  if (status == TP_OK) status = tp_actor_new(s, s->root, NULL, "system", 6, &s->system);
  if (status != TP_OK) return status;
  s->root->phase = s->user->phase = s->system->phase = TP_PHASE_RUNNING;
  return TP_OK;
}

int tp_system_new(const tp_host *host, const tp_system_options *options, tp_system **out) {
  tp_system *s = host->allocate(host->allocator, NULL, 0, sizeof *s);
  if (s == NULL) return TP_ENOMEM;
  size_t name_size = strlen(options->name) + 1;
  *s = (tp_system){.host = *host, .now = options->now, .holders = 1};
  s->bytes = sizeof *s;
  s->rings.system = s;
  s->throughput = options->throughput;
  s->drain_timeout = options->drain_timeout;
  s->escalate_ends = options->escalate_ends;
  s->shuffles = options->shuffle;
  s->coarse = options->coarse;
  tp_rng_seed(&s->rng, options->seed);
  tp_list_init(&s->unranked);
  tp_list_init(&s->open_slots);
  tp_list_init(&s->streams);
  tp_list_init(&s->gathers);
  tp_list_init(&s->resolutions);
  tp_list_init(&s->owed);
  s->name = tp_alloc(s, name_size);
  s->out_of_memory = tp_alloc(s, sizeof *s->out_of_memory);
  s->timers = tp_timers_new(s);
  if (s->name != NULL) memcpy(s->name, options->name, name_size);
  if (options->metrics) s->metrics = tp_alloc(s, sizeof *s->metrics);
  if (s->name == NULL || s->out_of_memory == NULL || s->timers == NULL) goto fail;
  if (options->metrics && s->metrics == NULL) goto fail;
  *s->out_of_memory = (tp_fault){.count = 1, .code = "out-of-memory"};
  if (make_guardians(s) != TP_OK) goto fail;
  *out = s;
  return TP_OK;
fail:
  tp_system_free(s);
  return TP_ENOMEM;
}

/* ---- The orderly end -------------------------------------------------------------------- */

static void stop_user(tp_system *s) {
  s->phase = TP_SYSTEM_STOPPING_USER;
  tp_timer_disarm(s, &s->deadline);
  tp_ticks_cancel_own(s);
  for (tp_actor *a = tp_actor_walk(s->user, s->user); a != NULL; a = tp_actor_walk(s->user, a)) {
    if (a->phase >= TP_PHASE_STOPPING) continue;
    a->stop = TP_STOP_NOW; /* all at once: none handles more mail until its parent's turn comes */
    tp_schedule_run(s, &a->run);
  }
  tp_stop_now(&s->user->ref);
  tp_timer_arm(s, &s->deadline, TP_TIMER_SYSTEM, tp_time_after(s->now, STOP_TIMEOUT));
}

void tp_terminate(tp_system *s) {
  if (s->phase != TP_SYSTEM_RUNNING) return;
  s->phase = TP_SYSTEM_DRAINING;
  if (s->drain_timeout <= 0) {
    stop_user(s);
  } else {
    tp_timer_arm(s, &s->deadline, TP_TIMER_SYSTEM, tp_time_after(s->now, s->drain_timeout));
  }
}

static void deadline_passed(tp_system *s) {
  if (s->phase == TP_SYSTEM_DRAINING) {
    stop_user(s);
  } else {
    tp_actor_force(s->root);
    tp_timer_arm(s, &s->deadline, TP_TIMER_SYSTEM, tp_time_after(s->now, STOP_TIMEOUT));
  }
}

static bool handler_waits(const tp_system *s) {
  for (const tp_actor *a = s->user; a != NULL; a = tp_actor_walk(s->user, a)) {
    if (a->job != NULL) return true;
  }
  return false;
}

bool tp_system_drained(const tp_system *s) {
  return s->phase == TP_SYSTEM_DRAINING && !(s->waits > 0 && handler_waits(s));
}

bool tp_system_at_rest(tp_system *s) {
  if (!tp_system_drained(s)) return false;
  stop_user(s);
  return true;
}

void tp_system_guardian_gone(tp_system *s, const tp_actor *guardian) {
  if (guardian == s->user) {
    s->phase = TP_SYSTEM_STOPPING;
    tp_streams_terminate(s);
    tp_slots_terminate(s);
    tp_stop_now(&s->system->ref);
  } else if (guardian == s->system) {
    tp_stop_now(&s->root->ref);
  } else {
    s->phase = TP_SYSTEM_TERMINATED;
    tp_timer_disarm(s, &s->deadline);
  }
}

bool tp_terminating(const tp_system *s) { return s->phase != TP_SYSTEM_RUNNING; }

bool tp_waits_ended(const tp_system *s) { return s->phase >= TP_SYSTEM_STOPPING; }

bool tp_terminated(const tp_system *s) { return s->phase == TP_SYSTEM_TERMINATED; }

/* ---- The end at once -------------------------------------------------------------------- */

static void keep(void *context, uint64_t host) {
  (void)context;
  (void)host;
}

static void forget_job(tp_actor *a) {
  tp_job *job = a->job;
  a->job = NULL;
  if (a->waits_for != NULL) {
    a->waits_for->waiter = NULL;
    tp_ref_release(&a->waits_for->ref);
    a->waits_for = NULL;
  }
  if (job == NULL ||
      (job->kind != TP_JOB_RECEIVE && job->kind != TP_JOB_ROUTE && job->kind != TP_JOB_HASH)) {
    return;
  }
  tp_envelope_release(a->ref.system, &job->envelope);
}

static void release_all(tp_system *s, tp_ring *r) {
  while (r->count > 0) {
    tp_envelope e = tp_ring_pop(&s->rings, r);
    tp_envelope_release(s, &e);
  }
}

/* Takes a leaf of the tree apart, whatever it was doing. */
static void tear_down(tp_actor *a) {
  tp_system *s = a->ref.system;
  a->phase = TP_PHASE_STOPPED;
  a->closed = true;
  forget_job(a);
  if (a->extra != NULL) tp_ticks_cancel(s, &a->extra->ticks);
  tp_watches_end(a);
  if (a->router != NULL) tp_router_free(a);
  tp_mail_drain(a, NULL);
  if (a->extra != NULL) release_all(s, &a->extra->stash);
  tp_ref_retain(&a->ref);
  tp_actor_leave(a);
  tp_actor_strip(a);
  tp_ref_release(&a->ref);
}

static void tear_down_tree(tp_system *s) {
  tp_actor *a = s->root;
  while (a != NULL && a->phase != TP_PHASE_STOPPED) {
    tp_actor *child = tp_actor_first_child(a);
    if (child == NULL) {
      tp_actor *parent = a->parent;
      tear_down(a);
      a = parent;
    } else {
      a = child;
    }
  }
}

static void forget_slots(tp_system *s) {
  while (!tp_list_empty(&s->open_slots)) {
    tp_slot *slot = TP_CONTAINER(s->open_slots.next, tp_slot, open);
    tp_list_remove(&slot->open);
    tp_timer_disarm(s, &slot->timer);
    slot->settled = true;
    if (slot->target != NULL) s->asks--;
    tp_slot_forget(&slot->ref);
  }
}

static void forget_ready(tp_ready_queue *q) {
  tp_runnable *r = q->first, *next;
  *q = (tp_ready_queue){0};
  for (; r != NULL; r = next) {
    next = r->next;
    r->queued = false;
    if (r->kind == TP_RUN_SLOT) tp_slot_forget(&TP_CONTAINER(r, tp_slot, run)->ref);
  }
}

static void drop_guardian(tp_actor *a) {
  if (a != NULL) tp_ref_release(&a->ref);
}

void tp_system_free(tp_system *s) {
  s->host.retain = s->host.release = keep; /* the host takes its values back by itself */
  s->phase = TP_SYSTEM_TERMINATED;
  s->decisions = NULL;
  if (s->turn != NULL) tp_ref_release(&s->turn->ref);
  s->turn = NULL;
  tp_events_fini(s);
  forget_ready(&s->ready);
  tp_resolve_fini(s);
  tp_streams_forget(s);
  tear_down_tree(s);
  tp_ticks_free(s);
  forget_slots(s);
  tp_timer_disarm(s, &s->deadline);
  s->freed = true;
  drop_guardian(s->system);
  drop_guardian(s->user);
  drop_guardian(s->root);
  tp_timers_free(s, s->timers);
  s->timers = NULL;
  tp_names_fini(s);
  tp_watches_fini(s);
  tp_ring_pool_fini(&s->rings);
  tp_alloc_keep_none(s);
  tp_system_drop(s);
}

void tp_system_drop(tp_system *s) {
  if (--s->holders > 0) return;
  tp_ring_pool_fini(&s->rings);
  tp_events_fini(s);
  tp_free(s, s->metrics, sizeof *s->metrics);
  tp_free(s, s->out_of_memory, sizeof *s->out_of_memory);
  tp_free(s, s->name, s->name == NULL ? 0 : strlen(s->name) + 1);
  assert(s->bytes == sizeof *s);
  s->host.allocate(s->host.allocator, s, sizeof *s, 0);
}

/* ---- Time ------------------------------------------------------------------------------- */

static void deadline_of(tp_system *s, tp_timer *t) {
  switch ((tp_timer_kind)t->kind) {
    case TP_TIMER_SLOT: tp_slot_expire(TP_CONTAINER(t, tp_slot, timer)); break;
    case TP_TIMER_GATHER: tp_gather_expire(t); break;
    case TP_TIMER_GATHER_NEXT: tp_gather_ask_next(t); break;
    case TP_TIMER_TICK: tp_tick_fire(s, t); break;
    case TP_TIMER_IDLE: tp_idle_fire(t); break;
    case TP_TIMER_SYSTEM: deadline_passed(s); break;
  }
}

void tp_set_now(tp_system *s, tp_time now) {
  if (now > s->now) s->now = now;
  tp_timers_date(s);
}

void tp_advance(tp_system *s, tp_time now) {
  tp_set_now(s, now);
  tp_watches_retry(s);
  for (tp_timer *t; (t = tp_timers_pop(s, s->now)) != NULL;) deadline_of(s, t);
}

tp_time tp_now(const tp_system *s) { return s->now; }

/* ---- Looking inside --------------------------------------------------------------------- */

const char *tp_system_name(const tp_system *s) { return s->name; }

tp_ref *tp_root(tp_system *s) { return &s->root->ref; }

tp_ref *tp_user_guardian(tp_system *s) { return &s->user->ref; }

void tp_system_stats(const tp_system *s, tp_stats *out) {
  *out = (tp_stats){.actors = s->actors,
                    .queued = s->queued,
                    .asks = s->asks,
                    .scatters = s->scatters,
                    .timers = tp_timers_count(s),
                    .waits = s->waits,
                    .lost = s->events.lost,
                    .bytes = s->bytes - s->kept.bytes};
  memcpy(out->dropped, s->dropped, sizeof out->dropped);
}
