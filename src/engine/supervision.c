#include "supervision.h"

#include "alloc.h"
#include "events.h"
#include "idle.h"
#include "lifecycle.h"
#include "mailbox.h"
#include "priority.h"
#include "router.h"
#include "system.h"
#include "value.h"

/* Restart, at most 10 times in 60 seconds (SUP-1). */
static const tp_supervision default_strategy = {
    .given = true,
    .directive = TP_DIRECTIVE_RESTART,
    .max_restarts = 10,
    .within = 60000 * TP_MILLISECOND,
};

static const tp_supervision *strategy_of(const tp_actor *a) {
  const tp_supervision *own = &tp_behavior_look(a->behavior)->own;
  if (own->given) return own;
  if (a->parent->behavior != NULL) {
    const tp_supervision *parents = &tp_behavior_look(a->parent->behavior)->children;
    if (parents->given) return parents;
  }
  return &default_strategy;
}

/* ---- The failure ------------------------------------------------------------------------ */

void tp_forget_failure(tp_actor *a) {
  tp_system *s = a->ref.system;
  tp_extra *x = a->extra;
  tp_value_release(s, x->reason);
  tp_value_release(s, x->trace);
  tp_mail_handled(s, &x->failed);
  x->reason = x->trace = tp_nil();
}

void tp_let_go_of_asker(tp_actor *a, bool stops) {
  tp_ref *asker = a->extra->failed.sender;
  a->extra->failed.sender = NULL;
  if (asker == NULL) return;
  if (asker->kind == TP_REF_SLOT && stops) {
    bool ending = tp_system_stopping(a->ref.system);
    const char *code = ending ? "system-terminated" : "actor-stopped";
    (void)tp_slot_request_lost(tp_slot_of(asker), &a->ref, code);
  } else if (asker->kind == TP_REF_SLOT) {
    tp_slot_request_handled(tp_slot_of(asker));
  }
  tp_ref_release(asker);
}

static void suspend_children(tp_actor *a) {
  a->frozen = true;
  tp_actor *c = tp_actor_walk(a, a);
  while (c != NULL) { /* what is below one that is frozen is suspended already */
    c->suspended = true;
    c = c->frozen ? tp_actor_walk_past(a, c) : tp_actor_walk(a, c);
  }
}

/* The incarnation goes on; it has started when no hook of its waits. If one does it is still the
 * failure's, which a restart is told with. */
static void carry_on(tp_actor *a) {
  a->phase = TP_PHASE_RUNNING;
  a->frozen = false;
  a->started = a->job == NULL || a->job->kind == TP_JOB_RECEIVE;
  if (a->started) tp_forget_failure(a);
  tp_idle_start(a);
}

/* What failed there and escalated to whom is resumed, is resumed too; what is frozen for a reason of its
 * own stays so, with what is below it. */
void tp_resume_children(tp_actor *a) {
  for (tp_actor *c = tp_actor_walk(a, a); c != NULL; c = tp_actor_walk(a, c)) {
    if (c->phase == TP_PHASE_FAILED && !c->parent->frozen) carry_on(c);
    c->suspended = c->parent->suspended || c->parent->frozen;
    tp_schedule_run(c->ref.system, &c->run);
  }
}

static void publish_failure(tp_actor *a, tp_directive directive, const char *why) {
  tp_events_publish(a->ref.system, &(tp_event){.kind = TP_EVENT_FAILED,
                                               .subject = &a->ref,
                                               .value = a->extra->reason,
                                               .trace = a->extra->trace,
                                               .directive = directive,
                                               .code = why});
}

/* Takes down the failure of `a`, which is suspended with all below it. False when there is no
 * memory for that: then the actor is stopped. Takes reason, trace and message. */
static bool note_failure(tp_actor *a, tp_value reason, tp_value trace, tp_envelope message) {
  tp_system *s = a->ref.system;
  tp_extra *x = tp_actor_extra(a);
  if (x == NULL) {
    tp_value_release(s, reason);
    tp_value_release(s, trace);
    tp_mail_handled(s, &message);
    tp_actor_begin_stop(a, false);
    return false;
  }
  tp_forget_failure(a);
  x->reason = reason;
  x->trace = trace;
  x->failed = message;
  a->phase = TP_PHASE_FAILED;
  suspend_children(a);
  return true;
}

/* As if `a` had failed as `cause` did, with nothing in hand. */
static bool share_failure(tp_actor *a, const tp_actor *cause) {
  tp_system *s = a->ref.system;
  tp_value_retain(s, cause->extra->reason);
  tp_value_retain(s, cause->extra->trace);
  return note_failure(a, cause->extra->reason, cause->extra->trace, (tp_envelope){0});
}

/* ---- All for one ------------------------------------------------------------------------ */

/* The next sibling of `a` that shares its fate; NULL after the last. One that stops, or is to
 * stop, is left alone. */
static tp_actor *next_of_fate(const tp_actor *a, tp_link *after) {
  tp_actor *c = tp_actor_sibling(a->parent, after->next);
  while (c != NULL && (c == a || c->closed || c->stop != TP_STOP_NONE)) {
    c = tp_actor_sibling(a->parent, c->siblings.next);
  }
  return c;
}

/* An incarnation that has not begun yet is new already. */
static bool has_begun(const tp_actor *a) {
  if (a->phase == TP_PHASE_STARTING || a->phase == TP_PHASE_POST_RESTART) return a->job != NULL;
  return a->phase == TP_PHASE_RUNNING || a->phase == TP_PHASE_FAILED;
}

static void restart_siblings(tp_actor *a) {
  tp_actor *c = next_of_fate(a, &a->parent->family->children);
  for (; c != NULL; c = next_of_fate(a, &c->siblings)) {
    if (!has_begun(c)) continue;
    if (c->phase == TP_PHASE_FAILED || share_failure(c, a)) tp_actor_restart(c);
  }
  tp_schedule_children(a->parent);
}

/* None has stopped before its turn comes, so the list stays as it is. */
static void stop_siblings(tp_actor *a) {
  tp_actor *c = next_of_fate(a, &a->parent->family->children);
  for (; c != NULL; c = next_of_fate(a, &c->siblings)) tp_stop_now(&c->ref);
}

/* ---- Directives ------------------------------------------------------------------------- */

static void resume(tp_actor *a) {
  publish_failure(a, TP_DIRECTIVE_RESUME, NULL);
  carry_on(a);
  tp_resume_children(a);
  tp_schedule_run(a->ref.system, &a->run);
}

static void stop(tp_actor *a, const char *why) {
  bool all = strategy_of(a)->all_for_one && a->stop == TP_STOP_NONE;
  publish_failure(a, TP_DIRECTIVE_STOP, why);
  tp_actor_begin_stop(a, false);
  if (all) stop_siblings(a);
}

static void restart(tp_actor *a) {
  const tp_supervision *strategy = strategy_of(a);
  if (!tp_window_grant(a->ref.system, &a->extra->restarts, strategy->max_restarts,
                       strategy->within)) {
    stop(a, "restart-limit");
    return;
  }
  publish_failure(a, TP_DIRECTIVE_RESTART, NULL);
  tp_actor_restart(a);
  if (strategy->all_for_one) restart_siblings(a);
}

static bool may_fail(const tp_actor *a) {
  return a->phase == TP_PHASE_RUNNING || a->phase == TP_PHASE_STARTING ||
         a->phase == TP_PHASE_POST_RESTART;
}

/* The parent fails with the same cause; gives it if so. Past the top of the user's tree, or where
 * the parent is busy ending itself, the actor alone is stopped (SUP-10). */
static tp_actor *escalate(tp_actor *a) {
  tp_actor *parent = a->parent;
  publish_failure(a, TP_DIRECTIVE_ESCALATE, parent->guardian ? "top-level" : NULL);
  if (parent->guardian || !may_fail(parent)) {
    tp_actor_begin_stop(a, false);
    if (parent->guardian && a->ref.system->escalate_ends) tp_terminate(a->ref.system);
    return NULL;
  }
  return share_failure(parent, a) ? parent : NULL;
}

static void ask_decider(tp_actor *a) {
  a->extra->next_decision = a->ref.system->decisions;
  a->ref.system->decisions = a;
}

static void decide(tp_actor *a);

static void apply(tp_actor *a, tp_directive directive, const char *why) {
  switch (directive) {
    case TP_DIRECTIVE_RESUME: resume(a); break;
    case TP_DIRECTIVE_RESTART: restart(a); break;
    case TP_DIRECTIVE_STOP: stop(a, why); break;
    case TP_DIRECTIVE_ESCALATE:
      a = escalate(a);
      if (a != NULL) decide(a);
      break;
  }
}

/* Escalation is a loop here, so that a deep tree needs no deep stack. */
static void decide(tp_actor *a) {
  while (a != NULL) {
    const tp_supervision *strategy = strategy_of(a);
    if (a->stop != TP_STOP_NONE) {
      stop(a, "stopping"); /* a stop wins (LIFE-6) */
    } else if (strategy->decider.type != TP_NIL) {
      ask_decider(a);
    } else if (strategy->directive == TP_DIRECTIVE_ESCALATE) {
      a = escalate(a);
      continue;
    } else {
      apply(a, strategy->directive, NULL);
    }
    return;
  }
}

/* Remembers the failure for whoever looks at the actor (INS-1). */
static void remember_failure(tp_actor *a) {
  tp_system *s = a->ref.system;
  tp_extra *x = a->extra;
  tp_value_retain(s, x->reason);
  tp_value_release(s, x->last_failure);
  x->last_failure = x->reason;
  x->failed_at = s->now;
  x->failures++;
}

void tp_supervise(tp_actor *a, tp_value reason, tp_value trace, tp_envelope message) {
  if (!note_failure(a, reason, trace, message)) return;
  remember_failure(a);
  decide(a);
}

/* ---- Deciders --------------------------------------------------------------------------- */

bool tp_decision_next(tp_system *s, tp_job *job) {
  while (s->decisions != NULL) {
    tp_actor *a = s->decisions;
    s->decisions = a->extra->next_decision;
    if (a->phase != TP_PHASE_FAILED) continue; /* stopped meanwhile */
    job->kind = TP_JOB_DECIDE;
    job->actor = &a->ref;
    job->behavior = a->behavior;
    job->code = strategy_of(a)->decider;
    job->reason = a->extra->reason;
    return true;
  }
  return false;
}

void tp_decided(tp_job *job, tp_directive directive) {
  tp_actor *a = tp_actor_of(job->actor);
  if (a->phase == TP_PHASE_FAILED) apply(a, directive, NULL);
}

/* A decider that raises stops the child (SUP-7). */
static void decider_failed(tp_job *job, tp_value reason, tp_value trace) {
  tp_actor *a = tp_actor_of(job->actor);
  tp_events_publish(job->system, &(tp_event){.kind = TP_EVENT_HOOK_FAILED,
                                             .code = "decider",
                                             .subject = job->actor,
                                             .value = reason,
                                             .trace = trace});
  tp_value_release(job->system, reason);
  tp_value_release(job->system, trace);
  if (a->phase == TP_PHASE_FAILED) apply(a, TP_DIRECTIVE_STOP, "decider");
}

/* ---- Jobs that failed ------------------------------------------------------------------- */

/* Reports what cannot be supervised and goes on as if the job had ended well. */
static void report(tp_job *job, const char *code, tp_value reason, tp_value trace) {
  tp_events_publish(job->system, &(tp_event){.kind = TP_EVENT_HOOK_FAILED,
                                             .code = code,
                                             .subject = job->actor,
                                             .value = reason,
                                             .trace = trace});
  tp_value_release(job->system, reason);
  tp_value_release(job->system, trace);
  tp_done(job);
}

static void handler_failed(tp_job *job, tp_value reason, tp_value trace) {
  tp_envelope message = tp_actor_give_up(tp_actor_of(job->actor), job);
  tp_supervise(tp_actor_of(job->actor), reason, trace, message);
}

void tp_fail(tp_job *job, tp_value reason, tp_value trace) {
  switch (job->kind) {
    case TP_JOB_RECEIVE:
    case TP_JOB_PRE_START:
    case TP_JOB_POST_RESTART: handler_failed(job, reason, trace); break;
    case TP_JOB_DECIDE: decider_failed(job, reason, trace); break;
    case TP_JOB_PRE_RESTART: report(job, "pre_restart", reason, trace); break;
    case TP_JOB_POST_STOP: report(job, "post_stop", reason, trace); break;
    case TP_JOB_ROUTE:
    case TP_JOB_HASH: tp_router_strategy_failed(job, reason, trace); break;
    case TP_JOB_RANK: tp_priority_failed(job, reason, trace); break;
    case TP_JOB_TIMER: report(job, "timer", reason, trace); break;
    case TP_JOB_CLOSE: report(job, "close", reason, trace); break;
    default: /* an event: reporting it would be one more */
      tp_value_release(job->system, reason);
      tp_value_release(job->system, trace);
      tp_done(job);
      break;
  }
}
