#include "lifecycle.h"

#include <assert.h>

#include "events.h"
#include "fault.h"
#include "idle.h"
#include "mailbox.h"
#include "metrics.h"
#include "pool.h"
#include "resolve.h"
#include "router.h"
#include "stash.h"
#include "supervision.h"
#include "system.h"
#include "tick.h"
#include "value.h"
#include "watch.h"

/* ---- Jobs of an actor ------------------------------------------------------------------ */

static tp_turn make_job(tp_actor *a, tp_job *job, tp_job_kind kind) {
  job->kind = kind;
  job->system = a->ref.system;
  job->actor = &a->ref;
  job->behavior = a->behavior;
  job->tick = 0;
  job->stashed = false;
  a->job = job;
  return TP_TURN_JOB;
}

/* A message for what the actor is now. */
static tp_turn make_receive(tp_actor *a, tp_job *job) {
  bool became = a->extra != NULL && a->extra->receive.type != TP_NIL;
  job->code = became ? a->extra->receive : tp_behavior_look(a->behavior)->receive;
  return make_job(a, job, TP_JOB_RECEIVE);
}

static tp_turn make_hook(tp_actor *a, tp_job *job, tp_job_kind kind) {
  job->envelope = (tp_envelope){0};
  job->reason = tp_nil();
  return make_job(a, job, kind);
}

static bool has_hook(const tp_actor *a, uint32_t hooks) {
  return a->behavior != NULL && (tp_behavior_look(a->behavior)->hooks & hooks) != 0;
}

static void publish(tp_actor *a, tp_event_kind kind, tp_value value) {
  if (!tp_events_wanted(&a->ref.system->events, kind)) return;
  tp_events_publish(a->ref.system, &(tp_event){.kind = kind, .subject = &a->ref, .value = value});
}

/* ---- Starting -------------------------------------------------------------------------- */

static void started(tp_actor *a) {
  a->phase = TP_PHASE_RUNNING;
  a->started = true;
  tp_idle_start(a);
  if (!a->guardian) publish(a, TP_EVENT_STARTED, tp_nil());
}

static tp_turn start(tp_actor *a, tp_job *job) {
  if (has_hook(a, TP_HOOK_PRE_START)) return make_hook(a, job, TP_JOB_PRE_START);
  if (a->router != NULL && tp_router_fill(a) != TP_OK) {
    tp_value reason = tp_fault_value(a->ref.system, "out-of-memory", NULL);
    tp_supervise(a, reason, tp_nil(), (tp_envelope){0});
    return TP_TURN_USED;
  }
  started(a);
  return TP_TURN_USED;
}

/* ---- Messages -------------------------------------------------------------------------- */

static tp_turn take_signal(tp_actor *a, tp_envelope *e) {
  if (e->message.as.integer == TP_POISON_PILL) {
    tp_mail_lost(a, e, "stopped");
    tp_actor_begin_stop(a, true);
  } else {
    tp_mail_handled(a->ref.system, e);
    tp_supervise(a, tp_fault_value(a->ref.system, "killed", &a->ref), tp_nil(), (tp_envelope){0});
  }
  return TP_TURN_USED;
}

/* What is taken up here makes a job, or is a signal (TP_TURN_USED), or nothing comes of it
 * (TP_TURN_IDLE). */

static tp_turn take_tick(tp_actor *a, tp_job *job, tp_envelope *e) {
  tp_system *s = a->ref.system;
  tp_envelope taken = {0};
  if (!tp_tick_take(s, e->message.as.tick, &taken.message)) return TP_TURN_IDLE;
  if (tp_value_is_signal(taken.message)) {
    tp_tick_handled(s, e->message.as.tick);
    return take_signal(a, &taken);
  }
  job->envelope = taken;
  make_receive(a, job);
  job->tick = e->message.as.tick;
  return TP_TURN_JOB;
}

static tp_turn take_notice(tp_actor *a, tp_job *job, tp_envelope *e) {
  tp_envelope taken = {0};
  bool counts = tp_notice_take(e->message.as.notice, &taken.message);
  tp_notice_release(e->message.as.notice); /* the queue's count */
  if (!counts) return TP_TURN_IDLE;
  if (tp_value_is_signal(taken.message)) return take_signal(a, &taken);
  job->envelope = taken;
  return make_receive(a, job);
}

static tp_turn take_idle(tp_actor *a, tp_job *job, const tp_envelope *e) {
  if (!tp_idle_take(a, e->message.as.integer)) return TP_TURN_IDLE;
  job->envelope = (tp_envelope){.message = {.type = TP_RECEIVE_TIMEOUT}};
  return make_receive(a, job);
}

/* What a message (taken) comes to, as above. Guardians ignore it (SYS-2). */
static tp_turn handle(tp_actor *a, tp_job *job, tp_envelope e) {
  if (a->guardian) {
    tp_mail_handled(a->ref.system, &e);
    return TP_TURN_IDLE;
  }
  if (tp_slot_is_cancelled(e.sender)) {
    tp_mail_handled(a->ref.system, &e);
    return TP_TURN_IDLE;
  }
  if (tp_value_is_signal(e.message)) return take_signal(a, &e);
  if (a->router != NULL) {
    return tp_router_route(a, job, &e) ? make_job(a, job, job->kind) : TP_TURN_IDLE;
  }
  if (e.message.type == TP_TICK) return take_tick(a, job, &e);
  if (e.message.type == TP_NOTICE) return take_notice(a, job, &e);
  if (e.message.type == TP_IDLE) return take_idle(a, job, &e);
  if (tp_has_idle(a) && tp_mail_counts(e.message)) tp_idle_stop(a);
  job->envelope = e;
  return make_receive(a, job);
}

/* As receive below, of an actor that is neither `unusual` nor busy, and does so at a fraction of the cost:
 * it is what most messages need. TP_TURN_USED: it takes more than that. */
static tp_turn receive_plainly(tp_actor *a, tp_job *job) {
  tp_system *s = a->ref.system;
  const tp_envelope *next = tp_ring_at(&a->mailbox, 0);
  if (!tp_mail_is_plain(next->message) || tp_slot_is_cancelled(next->sender)) return TP_TURN_USED;
  s->turn_left--;
  job->envelope = tp_ring_pop(&s->rings, &a->mailbox);
  s->queued--;
  a->bounded--;
  job->code = tp_behavior_look(a->behavior)->receive;
  return make_job(a, job, TP_JOB_RECEIVE);
}

static bool has_mail(const tp_actor *a) {
  return a->ranks ? tp_priority_ready(a) : a->mailbox.count > 0;
}

static tp_turn receive(tp_actor *a, tp_job *job) {
  tp_system *s = a->ref.system;
  while (has_mail(a)) {
    if (s->turn_left == 0) return TP_TURN_USED;
    s->turn_left--;
    tp_turn turn = handle(a, job, tp_mail_pop(a));
    if (turn != TP_TURN_IDLE) return turn;
  }
  return TP_TURN_IDLE;
}

void tp_actor_received(tp_actor *a, tp_job *job) {
  a->job = NULL;
  if (a->stop == TP_STOP_NONE) {
    tp_mail_handled(a->ref.system, &job->envelope);
  } else {
    tp_mail_cut_short(a, &job->envelope, tp_mail_end_reason(a->ref.system));
  }
  tp_idle_start(a);
  if (job->tick != 0) tp_tick_handled(a->ref.system, job->tick);
}

/* ---- Restarting ------------------------------------------------------------------------ */

static void end_timers(tp_actor *a) {
  if (a->extra != NULL) tp_ticks_cancel(a->ref.system, &a->extra->ticks);
  tp_idle_off(a);
}

/* Each child stops its own children when its turn comes, so a deep tree needs no deep stack. */
static void stop_children(tp_actor *a) {
  if (a->children_told) return;
  a->children_told = true;
  tp_actor *next;
  for (tp_actor *c = tp_actor_first_child(a); c != NULL; c = next) {
    next = tp_actor_sibling(a, c->siblings.next);
    if (!a->drains || tp_stop(&c->ref) != TP_OK) tp_stop_now(&c->ref);
  }
}

void tp_actor_restart(tp_actor *a) {
  tp_let_go_of_asker(a, false);
  a->phase = TP_PHASE_PRE_RESTART;
  a->abandon = a->job != NULL;
  a->children_told = false;
  end_timers(a);
  tp_stash_lost(a, "restarted");
  tp_schedule_run(a->ref.system, &a->run);
}

/* A restart uses up a share of the turn as a message does, so that failing to start again and again
 * keeps nobody from theirs. */
static tp_turn pre_restart(tp_actor *a, tp_job *job) {
  a->ref.system->turn_left--;
  if (a->started && has_hook(a, TP_HOOK_PRE_RESTART | TP_HOOK_POST_STOP)) {
    a->started = false; /* it has said goodbye: a stop that comes now runs no post_stop */
    make_hook(a, job, TP_JOB_PRE_RESTART);
    job->reason = a->extra->reason;
    job->envelope.message = a->extra->failed.message;
    return TP_TURN_JOB;
  }
  a->phase = TP_PHASE_RESTARTING;
  return TP_TURN_USED;
}

static bool keeps_children(const tp_actor *a) {
  return a->behavior != NULL && tp_behavior_look(a->behavior)->keep_children;
}

static tp_turn restart_children(tp_actor *a) {
  if (!keeps_children(a)) {
    if (a->router != NULL) tp_router_close(a);
    stop_children(a);
    if (!tp_actor_childless(a)) return TP_TURN_IDLE;
  }
  a->frozen = false;
  tp_resume_children(a);
  end_timers(a); /* those that pre_restart has started */
  tp_actor_set_state(&a->ref, tp_nil());
  (void)tp_become(&a->ref, tp_nil()); /* which takes no memory */
  a->started = false;
  a->phase = TP_PHASE_POST_RESTART;
  return TP_TURN_USED;
}

static void restarted(tp_actor *a) {
  a->phase = TP_PHASE_RUNNING;
  a->started = true;
  a->extra->restarted++;
  tp_count(a->ref.system, TP_COUNT_RESTARTED);
  tp_idle_start(a);
  publish(a, TP_EVENT_RESTARTED, a->extra->reason);
  tp_forget_failure(a);
}

static tp_turn post_restart(tp_actor *a, tp_job *job) {
  if (has_hook(a, TP_HOOK_POST_RESTART | TP_HOOK_PRE_START)) {
    make_hook(a, job, TP_JOB_POST_RESTART);
    job->reason = a->extra->reason;
    return TP_TURN_JOB;
  }
  if (a->router != NULL && tp_router_fill(a) != TP_OK) {
    tp_actor_begin_stop(a, false);
    return TP_TURN_USED;
  }
  restarted(a);
  return TP_TURN_USED;
}

/* ---- Stopping -------------------------------------------------------------------------- */

void tp_actor_close(tp_actor *a) {
  if (a->closed) return;
  a->closed = a->choosy = true;
  a->ref.system->closed++;
  if (a->parent != NULL && a->parent->router != NULL) tp_pool_routee_closed(a->parent, a);
}

/* RTR-13, SG-8, BOS-1 */
static bool drains_children(const tp_actor *a) {
  if (a->router != NULL) return !tp_router_gathers(a);
  return a->behavior != NULL && tp_behavior_look(a->behavior)->drain_children;
}

void tp_actor_begin_stop(tp_actor *a, bool drain) {
  assert(a->phase < TP_PHASE_STOPPING);
  tp_actor_close(a);
  if (a->phase == TP_PHASE_FAILED) tp_let_go_of_asker(a, true);
  a->phase = TP_PHASE_STOPPING;
  a->stop = TP_STOP_NONE;
  a->abandon = a->job != NULL;
  end_timers(a);
  a->children_told = false;
  a->drains = drain && drains_children(a);
  if (a->router != NULL) tp_router_close(a);
  tp_schedule_run(a->ref.system, &a->run);
}

static void finish(tp_actor *a) {
  tp_system *s = a->ref.system;
  tp_actor *parent = a->parent;
  a->phase = TP_PHASE_STOPPED;
  a->drains = false;
  if (a->extra != NULL) tp_forget_failure(a);
  if (a->router != NULL) tp_router_free(a);
  tp_stash_lost(a, tp_mail_end_reason(s));
  tp_mail_drain(a, tp_mail_end_reason(s));
  if (!a->guardian) {
    tp_count(s, TP_COUNT_TERMINATED);
    publish(a, TP_EVENT_STOPPED, tp_nil());
  }
  tp_watchers_tell(a);
  tp_watches_end(a);
  tp_ref_retain(&a->ref);
  tp_actor_leave(a);
  if (parent != NULL) tp_actor_child_gone(parent, a);
  if (a->guardian) tp_system_guardian_gone(s, a);
  tp_actor_strip(a);
  tp_ref_release(&a->ref);
}

static tp_turn stop(tp_actor *a, tp_job *job) {
  stop_children(a);
  if (!tp_actor_childless(a)) return TP_TURN_IDLE;
  a->phase = TP_PHASE_POST_STOP;
  if (a->started && has_hook(a, TP_HOOK_POST_STOP)) return make_hook(a, job, TP_JOB_POST_STOP);
  finish(a);
  return TP_TURN_IDLE;
}

void tp_actor_child_gone(tp_actor *parent, tp_actor *child) {
  if (parent->router != NULL) tp_pool_routee_gone(parent, child);
  if (tp_actor_childless(parent) &&
      (parent->phase == TP_PHASE_RESTARTING || parent->phase == TP_PHASE_STOPPING)) {
    tp_schedule_run(parent->ref.system, &parent->run);
  }
}

void tp_actor_force(tp_actor *top) {
  for (tp_actor *a = top; a != NULL; a = tp_actor_walk(top, a)) {
    if (a->job == NULL || a->waits_for == NULL) continue;
    a->abandon = true;
    tp_schedule_run(a->ref.system, &a->run);
  }
}

int tp_stop(tp_ref *actor) {
  tp_actor *a = tp_actor_of(actor);
  if (actor->system->freed || a->closed) return TP_OK;
  if (a->phase >= TP_PHASE_PRE_RESTART) {
    tp_stop_now(actor); /* a stop wins over a restart (LIFE-6) */
    return TP_OK;
  }
  return tp_tell(actor, (tp_value){.type = TP_SIGNAL, .as.integer = TP_POISON_PILL}, NULL);
}

void tp_stop_now(tp_ref *actor) {
  tp_actor *a = tp_actor_of(actor);
  if (actor->system->freed) return;
  if (a->phase >= TP_PHASE_STOPPING) {
    if (!a->drains) return;
    a->drains = a->children_told = false; /* routees that were left to drain */
    tp_schedule_run(actor->system, &a->run);
  } else if (a->job != NULL && a->waits_for == NULL) {
    a->stop = TP_STOP_NOW;
  } else {
    tp_actor_begin_stop(a, false);
  }
}

void tp_stop_after(tp_ref *actor) {
  tp_actor *a = tp_actor_of(actor);
  if (actor->system->freed || a->phase >= TP_PHASE_STOPPING) return;
  if (a->job == NULL) {
    tp_stop_now(actor);
  } else if (a->stop == TP_STOP_NONE) {
    a->stop = TP_STOP_AFTER;
  }
}

bool tp_actor_cancelled(const tp_ref *actor) {
  const tp_job *job = tp_actor_look(actor)->job;
  return job != NULL && job->kind == TP_JOB_RECEIVE && tp_slot_is_cancelled(job->envelope.sender);
}

bool tp_actor_can_spawn(const tp_ref *actor) {
  const tp_actor *a = tp_actor_look(actor);
  return a->phase < TP_PHASE_STOPPING && a->phase != TP_PHASE_RESTARTING && a->stop == TP_STOP_NONE;
}

/* ---- Waiting --------------------------------------------------------------------------- */

static void stop_waiting(tp_actor *a) {
  tp_slot *slot = a->waits_for;
  tp_slot_handler_goes_on(a->job);
  a->waits_for = NULL;
  slot->waiter = NULL;
  a->ref.system->waits--;
  tp_ref_release(&slot->ref);
}

/* The job that waits is not to go on. Closing it is a job of its own. What it waits for is over, though
 * others may hold the slot: the request may be queued, or its sender kept (ASK-8). */
static tp_turn close_wait(tp_actor *a, tp_job *job) {
  tp_ref *slot = &a->waits_for->ref;
  job->kind = TP_JOB_CLOSE;
  job->system = a->ref.system;
  job->actor = &a->ref;
  job->behavior = a->behavior;
  job->token = a->waits_for->token;
  a->abandon = false;
  tp_ref_retain(slot);
  stop_waiting(a);
  tp_slot_fail(slot, "cancelled");
  tp_ref_release(slot);
  return TP_TURN_JOB;
}

static bool held_back(const tp_actor *a) {
  return a->phase == TP_PHASE_FAILED || (a->suspended && a->phase < TP_PHASE_FAILED);
}

static tp_turn go_on(tp_actor *a, tp_job *job) {
  if (a->waits_for == NULL) return TP_TURN_IDLE;
  if (a->stop == TP_STOP_NOW && a->phase < TP_PHASE_STOPPING) tp_actor_begin_stop(a, false);
  if (a->abandon) return close_wait(a, job);
  if (!a->waits_for->settled || held_back(a)) return TP_TURN_IDLE;
  job->kind = TP_JOB_RESUME;
  job->system = a->ref.system;
  job->actor = &a->ref;
  job->behavior = a->behavior;
  job->token = a->waits_for->token;
  stop_waiting(a);
  return TP_TURN_JOB;
}

void tp_wait(tp_job *job, tp_ref *ref, void *token) {
  tp_slot *slot = tp_slot_of(ref);
  if (job->actor == NULL) {
    slot->job = job;
    tp_slot_notify(ref, token);
    return;
  }
  tp_actor *a = tp_actor_of(job->actor);
  assert(a->job == job && a->waits_for == NULL && slot->waiter == NULL);
  tp_ref_retain(ref);
  slot->waiter = a;
  slot->token = token;
  a->waits_for = slot;
  a->ref.system->waits++;
  tp_slot_handler_waits(job);
  tp_schedule_run(a->ref.system, &a->run);
}

void tp_kill(tp_ref *actor) {
  tp_actor *a = tp_actor_of(actor);
  if (actor->system->freed || a->guardian || a->phase >= TP_PHASE_STOPPING) return;
  a->killed = true;
  tp_schedule_run(actor->system, &a->run);
}

/* Fails an actor that was killed, whether it waits or not. One that is suspended waits for its turn, one
 * that starts begins to; one that is ending, or whose incarnation is, is left alone. */
static bool fail_killed(tp_actor *a) {
  bool starts = a->phase == TP_PHASE_STARTING || a->phase == TP_PHASE_POST_RESTART;
  if ((a->job != NULL && a->waits_for == NULL) || held_back(a)) return false;
  if (starts && a->job == NULL) return false;
  a->killed = false;
  if (!starts && a->phase != TP_PHASE_RUNNING) return false;
  tp_supervise(a, tp_fault_value(a->ref.system, "killed", &a->ref), tp_nil(), (tp_envelope){0});
  return true;
}

/* ---- Turns ----------------------------------------------------------------------------- */

static bool share_is_used(const tp_actor *a) {
  return a->ref.system->turn_left == 0 &&
         (a->phase == TP_PHASE_RUNNING || a->phase == TP_PHASE_PRE_RESTART);
}

tp_turn tp_actor_next(tp_actor *a, tp_job *job) {
  if (a->unusual == 0 && a->job == NULL) {
    if (a->mailbox.count == 0) return TP_TURN_IDLE;
    if (a->ref.system->turn_left == 0) return TP_TURN_USED;
    if (receive_plainly(a, job) == TP_TURN_JOB) return TP_TURN_JOB;
  }
  while (a->ref.system->turn == a) { /* what is decided about it may end its turn */
    if (a->killed && fail_killed(a)) continue;
    if (a->job != NULL) return go_on(a, job);
    if (a->phase == TP_PHASE_PRE_RESTART && share_is_used(a)) return TP_TURN_USED;
    if (a->stop != TP_STOP_NONE && a->phase < TP_PHASE_STOPPING) tp_actor_begin_stop(a, false);
    tp_turn turn;
    switch ((tp_phase)a->phase) {
      case TP_PHASE_STARTING: turn = held_back(a) ? TP_TURN_IDLE : start(a, job); break;
      case TP_PHASE_RUNNING: turn = held_back(a) ? TP_TURN_IDLE : receive(a, job); break;
      case TP_PHASE_PRE_RESTART: turn = pre_restart(a, job); break;
      case TP_PHASE_RESTARTING: turn = restart_children(a); break;
      case TP_PHASE_POST_RESTART: turn = post_restart(a, job); break;
      case TP_PHASE_STOPPING: turn = stop(a, job); break;
      default: return TP_TURN_IDLE;
    }
    if (turn != TP_TURN_USED || share_is_used(a)) return turn;
  }
  return TP_TURN_IDLE;
}

/* A job that waited was closed: its message is no longer in hand. */
static void abandoned(tp_actor *a, tp_job *job) {
  if (job->kind != TP_JOB_RECEIVE) return;
  if (a->phase >= TP_PHASE_STOPPING) {
    tp_mail_cut_short(a, &job->envelope, tp_mail_end_reason(a->ref.system));
  } else {
    tp_mail_handled(a->ref.system, &job->envelope);
  }
}

static void end_job(tp_actor *a, tp_job *job) {
  switch (job->kind) {
    case TP_JOB_RECEIVE:
    case TP_JOB_ROUTE:
    case TP_JOB_HASH: tp_actor_received(a, job); break;
    case TP_JOB_PRE_START: started(a); break;
    case TP_JOB_PRE_RESTART: a->phase = TP_PHASE_RESTARTING; break;
    case TP_JOB_POST_RESTART: restarted(a); break;
    case TP_JOB_POST_STOP: finish(a); break;
    default: break;
  }
}

void tp_actor_done(tp_actor *a, tp_job *job) {
  tp_job *ended = a->job;
  a->job = NULL;
  if (job->kind != TP_JOB_CLOSE) {
    end_job(a, job);
  } else if (ended->kind == TP_JOB_POST_STOP) {
    finish(a);
  } else if (ended->kind == TP_JOB_PRE_RESTART && a->phase == TP_PHASE_PRE_RESTART) {
    a->phase = TP_PHASE_RESTARTING;
  } else {
    abandoned(a, ended);
  }
}

tp_envelope tp_actor_give_up(tp_actor *a, tp_job *job) {
  a->job = NULL;
  if (job->kind != TP_JOB_RECEIVE) return (tp_envelope){0};
  tp_idle_start(a);
  if (job->tick != 0) tp_tick_handled(a->ref.system, job->tick);
  return job->envelope;
}

/* ---- Spawning -------------------------------------------------------------------------- */

int tp_actor_spawn(tp_actor *parent, tp_behavior *behavior, const char *name, size_t length,
                   tp_actor **out) {
  tp_system *s = parent->ref.system;
  tp_actor *a;
  if (tp_actor_new(s, parent, behavior, name, length, &a) != TP_OK) return TP_ENOMEM;
  const tp_behavior_spec *spec = tp_behavior_look(behavior);
  int status = spec->priority.type == TP_NIL ? TP_OK : tp_priority_new(a);
  if (status == TP_OK && spec->routing != TP_ROUTE_NONE) status = tp_router_new(a);
  if (status != TP_OK) {
    a->phase = TP_PHASE_STOPPED;
    tp_actor_leave(a);
    tp_actor_strip(a);
    tp_ref_release(&a->ref);
    return TP_ENOMEM;
  }
  tp_count(s, TP_COUNT_CREATED);
  s->spawned++;
  tp_schedule_run(s, &a->run);
  tp_resolve_spawned(s);
  *out = a;
  return TP_OK;
}

int tp_spawn(tp_ref *parent, tp_behavior *behavior, const char *name, size_t length, tp_ref **out) {
  tp_system *s = parent->system;
  if (s->freed || tp_terminating(s)) return TP_ETERMINATED;
  if (!tp_actor_can_spawn(parent)) return TP_ESTOPPED;
  if (name != NULL && tp_child(parent, name, length) != NULL) return TP_EEXIST;
  tp_actor *a;
  int status = tp_actor_spawn(tp_actor_of(parent), behavior, name, length, &a);
  if (status == TP_OK) *out = &a->ref;
  return status;
}
