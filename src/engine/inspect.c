/* Looking at actors without disturbing them (INS-1). */
#include "idle.h"
#include "mailbox.h"
#include "system.h"

static tp_actor_condition state_of(const tp_actor *a) {
  switch ((tp_phase)a->phase) {
    case TP_PHASE_STARTING: return TP_ACTOR_STARTING;
    case TP_PHASE_RUNNING:
      if (a->suspended) return TP_ACTOR_SUSPENDED;
      return a->waits_for != NULL ? TP_ACTOR_WAITING : TP_ACTOR_RUNNING;
    case TP_PHASE_FAILED: return TP_ACTOR_SUSPENDED;
    case TP_PHASE_PRE_RESTART:
    case TP_PHASE_RESTARTING:
    case TP_PHASE_POST_RESTART: return TP_ACTOR_RESTARTING;
    case TP_PHASE_STOPPING:
    case TP_PHASE_POST_STOP: return TP_ACTOR_STOPPING;
    case TP_PHASE_STOPPED: break;
  }
  return TP_ACTOR_STOPPED;
}

static size_t length_of(const tp_link *head) {
  size_t n = 0;
  for (const tp_link *l = head->next; l != head; l = l->next) n++;
  return n;
}

static void look_at_extra(tp_system *s, const tp_extra *x, tp_actor_info *out) {
  out->restarts = x->restarted;
  out->stashed = x->stash.count;
  out->timers = tp_ticks_count(s, x->ticks);
  out->watches = length_of(&x->watches);
  out->watchers = length_of(&x->watchers);
  out->dropped = x->dropped;
  out->became = x->receive;
  out->failure = x->last_failure;
  out->failed_at = x->failed_at;
  out->failures = x->failures;
  if (x->idle != NULL) out->receive_timeout = x->idle->timeout;
}

void tp_actor_look_at(const tp_ref *actor, tp_actor_info *out) {
  const tp_actor *a = tp_actor_look(actor);
  *out = (tp_actor_info){
      .state = state_of(a),
      .behavior = a->behavior,
      .queued = tp_mail_count(a),
      .children = a->family == NULL ? 0 : a->family->count,
      .receive_timeout = TP_NEVER,
  };
  if (a->extra != NULL) look_at_extra(a->ref.system, a->extra, out);
}

tp_ref *tp_next_actor(tp_system *s, tp_ref *after) {
  if (after == NULL) return &s->root->ref;
  tp_actor *next = tp_actor_walk(s->root, tp_actor_of(after));
  return next == NULL ? NULL : &next->ref;
}
