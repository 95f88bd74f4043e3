#include "idle.h"

#include "alloc.h"
#include "mailbox.h"
#include "system.h"

void tp_idle_start(tp_actor *a) {
  if (!tp_has_idle(a) || a->job != NULL) return;
  tp_idle *i = a->extra->idle;
  if (i->queued || tp_timer_is_armed(&i->timer)) return;
  tp_time due = tp_time_after(a->ref.system->now, i->timeout);
  tp_timer_arm(a->ref.system, &i->timer, TP_TIMER_IDLE, due);
}

void tp_idle_stop(tp_actor *a) {
  if (!tp_has_idle(a)) return;
  a->extra->idle->queued = false;
  tp_timer_disarm(a->ref.system, &a->extra->idle->timer);
}

void tp_idle_off(tp_actor *a) {
  tp_idle_stop(a);
  if (tp_has_idle(a)) a->extra->idle->timeout = TP_NEVER;
}

void tp_idle_free(tp_actor *a) {
  if (!tp_has_idle(a)) return;
  tp_idle_off(a);
  tp_free(a->ref.system, a->extra->idle, sizeof *a->extra->idle);
  a->extra->idle = NULL;
  tp_actor_adapt(a);
}

/* With user mail waiting the actor is busy, not idle: the clock starts when that is handled. */
void tp_idle_fire(tp_timer *t) {
  tp_idle *i = TP_CONTAINER(t, tp_idle, timer);
  tp_system *s = i->owner->ref.system;
  if (i->owner->bounded > 0) return;
  tp_value mark = {.type = TP_IDLE, .as.integer = ++i->number};
  i->queued = tp_mail_push(i->owner, (tp_envelope){.message = mark}) == TP_OK;
  if (!i->queued) { /* a little later, rather than never */
    tp_timer_arm(s, t, TP_TIMER_IDLE, s->now + TP_MILLISECOND);
  }
}

bool tp_idle_take(tp_actor *a, int64_t number) {
  tp_idle *i = a->extra->idle;
  if (!i->queued || i->number != number) return false;
  i->queued = false;
  return true;
}

int tp_set_receive_timeout(tp_ref *actor, tp_time timeout) {
  tp_actor *a = tp_actor_of(actor);
  if (a->phase >= TP_PHASE_STOPPING) return TP_ESTOPPED;
  tp_extra *x = tp_actor_extra(a);
  if (x == NULL) return TP_ENOMEM;
  if (x->idle == NULL) {
    x->idle = tp_alloc(actor->system, sizeof *x->idle);
    if (x->idle == NULL) return TP_ENOMEM;
    x->idle->owner = a;
    tp_actor_adapt(a);
  }
  tp_idle_stop(a);
  x->idle->timeout = timeout;
  tp_idle_start(a);
  return TP_OK;
}
