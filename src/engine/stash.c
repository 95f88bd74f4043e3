#include "stash.h"

#include "mailbox.h"
#include "system.h"
#include "value.h"

int tp_become(tp_ref *actor, tp_value receive) {
  tp_actor *a = tp_actor_of(actor);
  if (a->extra == NULL && receive.type == TP_NIL) return TP_OK;
  tp_extra *x = tp_actor_extra(a);
  if (x == NULL) {
    tp_value_release(actor->system, receive);
    return TP_ENOMEM;
  }
  tp_value_release(actor->system, x->receive);
  x->receive = receive;
  tp_actor_adapt(a);
  return TP_OK;
}

int tp_stash(tp_ref *actor) {
  tp_actor *a = tp_actor_of(actor);
  tp_system *s = actor->system;
  if (a->job == NULL || a->job->kind != TP_JOB_RECEIVE) return TP_EIDLE;
  if (a->job->stashed) return TP_EEXIST;
  tp_extra *x = tp_actor_extra(a);
  if (x == NULL) return TP_ENOMEM;
  if (x->stash.count >= tp_behavior_look(a->behavior)->stash_capacity) return TP_EFULL;
  tp_envelope e = a->job->envelope;
  if (tp_ring_push(&s->rings, &x->stash, e) != TP_OK) return TP_ENOMEM;
  tp_value_retain(s, e.message);
  if (e.sender != NULL) tp_ref_retain(e.sender);
  tp_mail_hold(&e);
  a->job->stashed = true;
  return TP_OK;
}

int tp_unstash_all(tp_ref *actor) {
  tp_actor *a = tp_actor_of(actor);
  if (a->extra == NULL) return TP_OK;
  tp_ring *stash = &a->extra->stash;
  uint32_t n = stash->count;
  if (tp_mail_reserve(a, n) != TP_OK) return TP_ENOMEM;
  for (uint32_t i = n; i > 0; i--) tp_mail_put_back(a, *tp_ring_at(stash, i - 1));
  while (stash->count > 0) (void)tp_ring_pop(&actor->system->rings, stash);
  tp_schedule_run(actor->system, &a->run); /* it may be somebody else who puts it back */
  return TP_OK;
}

void tp_stash_lost(tp_actor *a, const char *reason) {
  if (a->extra == NULL) return;
  while (a->extra->stash.count > 0) {
    tp_envelope e = tp_ring_pop(&a->ref.system->rings, &a->extra->stash);
    tp_mail_lost(a, &e, reason);
  }
}
