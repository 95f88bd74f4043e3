#include "slot.h"

#include <assert.h>

#include "actor.h"
#include "alloc.h"
#include "fault.h"
#include "gather.h"
#include "mailbox.h"
#include "system.h"
#include "watch.h"

/* Field by field: clearing the whole first takes longer than all the rest of this. */
static tp_slot *new_slot(tp_system *s, tp_ref *target) {
  tp_slot *slot = tp_alloc_raw(s, sizeof *slot);
  if (slot == NULL) return NULL;
  tp_ref_init(&slot->ref, s, TP_REF_SLOT);
  slot->run = (tp_runnable){.kind = TP_RUN_SLOT};
  slot->timer = (tp_timer){0};
  tp_list_init(&slot->open);
  slot->target = target;
  slot->budget = 0;
  slot->outcome = (tp_outcome){0};
  slot->waiter = NULL;
  slot->job = NULL;
  slot->token = NULL;
  slot->gather = slot->asked = NULL;
  slot->next_cancelled = NULL;
  slot->handlers = NULL;
  slot->notice = NULL;
  slot->requests = 0;
  slot->shown = slot->settled = slot->expires_well = slot->notify = false;
  slot->cancels = slot->cancelled = slot->hedge = slot->passed_on = false;
  if (target != NULL) tp_ref_retain(target);
  return slot;
}

tp_slot *tp_slot_open(tp_system *s, tp_ref *target, tp_time timeout) {
  tp_slot *slot = new_slot(s, target);
  if (slot == NULL) return NULL;
  slot->budget = timeout;
  if (target != NULL) {
    tp_timer_arm_coarsely(s, &slot->timer, TP_TIMER_SLOT, timeout);
  } else {
    tp_timer_arm(s, &slot->timer, TP_TIMER_SLOT, tp_time_after(s->now, timeout));
  }
  tp_list_append(&s->open_slots, &slot->open);
  if (target != NULL) s->asks++;
  return slot;
}

tp_slot *tp_slot_open_leg(tp_system *s, tp_ref *target, tp_gather *gather) {
  tp_slot *slot = new_slot(s, target);
  if (slot != NULL) slot->gather = gather;
  return slot;
}

static void tell_waiter(tp_slot *slot) {
  if (slot->waiter != NULL) {
    tp_schedule_run(slot->ref.system, &slot->waiter->run);
  } else if (slot->notify) {
    tp_schedule_run(slot->ref.system, &slot->run);
  }
}

/* Settles an open slot; takes the value. */
static void settle(tp_slot *slot, tp_value value, bool failed, tp_ref *from) {
  tp_system *s = slot->ref.system;
  slot->settled = true;
  slot->outcome = (tp_outcome){failed, value, from};
  if (from != NULL) tp_ref_retain(from);
  if (slot->gather != NULL) {
    tp_gather_leg_settled(slot); /* may free the slot */
    return;
  }
  tp_timer_disarm(s, &slot->timer);
  tp_list_remove(&slot->open);
  if (slot->target != NULL) s->asks--;
  tell_waiter(slot);
  if (slot->notice == NULL) return;
  tp_watch_notice *notice = slot->notice;
  slot->notice = NULL;
  tp_watch_settled(notice); /* may free the slot */
}

static void fail(tp_slot *slot, const char *code, tp_ref *subject) {
  tp_fault *f = tp_fault_new(slot->ref.system, code, subject, 0);
  if (slot->ref.system->out_of_memory != f) f->budget = slot->budget;
  settle(slot, tp_fault_as_value(f), true, NULL);
}

void tp_slot_settle(tp_ref *ref, tp_value value, bool failed, tp_ref *from) {
  tp_slot *slot = tp_slot_of(ref);
  if (slot->settled) {
    tp_value_release(ref->system, value); /* late: dropped in silence (ASK-4, DL-4) */
    return;
  }
  settle(slot, value, failed || (value.flags & TP_IS_ERROR) != 0, from);
}

void tp_slot_fail(tp_ref *ref, const char *code) {
  tp_slot *slot = tp_slot_of(ref);
  if (!slot->settled) fail(slot, code, slot->target);
}

void tp_slot_clear(tp_ref *ref) {
  tp_outcome o = tp_slot_of(ref)->outcome;
  tp_slot_of(ref)->outcome = (tp_outcome){.failed = o.failed};
  tp_value_release(ref->system, o.value);
  if (o.from != NULL) tp_ref_release(o.from);
}

void tp_slot_drop(tp_ref *ref) {
  if (ref->count > 1) tp_slot_clear(ref);
  tp_ref_release(ref);
}

void tp_slot_expire(tp_slot *slot) {
  if (slot->expires_well) {
    settle(slot, tp_nil(), false, NULL);
  } else {
    fail(slot, slot->target != NULL ? "ask-timeout" : "timeout", slot->target);
  }
}

void tp_slot_request_queued(tp_slot *slot) { slot->requests++; }

void tp_slot_request_handled(tp_slot *slot) { slot->requests--; }

bool tp_slot_request_lost(tp_slot *slot, tp_ref *actor, const char *code) {
  slot->requests--;
  if (slot->settled) return true;
  if (slot->requests > 0 || slot->shown) return false;
  fail(slot, code, actor);
  return true;
}

/* ---- Requests that are cancelled -------------------------------------------------------- */

/* The leg that cancels its losers and whose request `job` has in hand, or NULL. */
static tp_slot *leg_in_hand(const tp_job *job) {
  tp_ref *sender = job->kind == TP_JOB_RECEIVE ? job->envelope.sender : NULL;
  if (sender == NULL || sender->kind != TP_REF_SLOT) return NULL;
  return tp_slot_of(sender)->cancels ? tp_slot_of(sender) : NULL;
}

void tp_slot_handler_waits(tp_job *job) {
  tp_slot *leg = leg_in_hand(job);
  if (leg == NULL) return;
  job->next_handler = leg->handlers;
  job->handler_link = &leg->handlers;
  if (job->next_handler != NULL) job->next_handler->handler_link = &job->next_handler;
  leg->handlers = job;
}

void tp_slot_handler_goes_on(tp_job *job) {
  if (leg_in_hand(job) == NULL) return;
  *job->handler_link = job->next_handler;
  if (job->next_handler != NULL) job->next_handler->handler_link = job->handler_link;
}

static void cancel(tp_slot *slot) {
  if (slot->target->kind == TP_REF_ACTOR) tp_mail_withdraw(tp_actor_of(slot->target), &slot->ref);
  for (tp_job *job = slot->handlers; job != NULL; job = job->next_handler) {
    tp_slot_fail(&tp_actor_of(job->actor)->waits_for->ref, "cancelled");
  }
  while (slot->asked != NULL) tp_gather_cancel(slot->asked);
}

/* What is given up may have asked others, and they others: that is a loop here, so that a long chain
 * needs no deep stack. */
void tp_slot_cancel(tp_slot *slot) {
  tp_system *s = slot->ref.system;
  bool running = s->cancelled != NULL;
  slot->cancelled = true;
  slot->next_cancelled = NULL;
  tp_ref_retain(&slot->ref);
  if (running) {
    s->last_cancelled->next_cancelled = slot;
  } else {
    s->cancelled = slot;
  }
  s->last_cancelled = slot;
  while (!running && s->cancelled != NULL) {
    tp_slot *next = s->cancelled;
    cancel(next);
    s->cancelled = next->next_cancelled;
    tp_ref_release(&next->ref);
  }
}

void tp_slots_terminate(tp_system *s) {
  while (!tp_list_empty(&s->open_slots)) {
    fail(TP_CONTAINER(s->open_slots.next, tp_slot, open), "system-terminated", NULL);
  }
}

void tp_slot_free(tp_slot *slot) {
  tp_system *s = slot->ref.system;
  if (!slot->settled && slot->gather == NULL) { /* nobody can answer or look any more */
    tp_timer_disarm(s, &slot->timer);
    tp_list_remove(&slot->open);
    if (slot->target != NULL) s->asks--;
  }
  tp_slot_clear(&slot->ref);
  if (slot->target != NULL) tp_ref_release(slot->target);
  tp_free(s, slot, sizeof *slot);
  tp_ref_fini(s);
}

int tp_slot_new(tp_system *s, tp_time timeout, bool expires_well, tp_ref **out) {
  tp_slot *slot = tp_slot_open(s, NULL, timeout);
  if (slot == NULL) return TP_ENOMEM;
  slot->expires_well = expires_well;
  *out = &slot->ref;
  if (tp_waits_ended(s)) fail(slot, "system-terminated", NULL);
  return TP_OK;
}

int tp_ask(tp_ref *target, tp_value message, tp_time timeout, tp_ref **out) {
  tp_system *s = target->system;
  if (s->freed) return TP_ETERMINATED;
  tp_slot *slot = tp_slot_open(s, target, timeout);
  if (slot == NULL) {
    tp_value_release(s, message);
    return TP_ENOMEM;
  }
  int status = tp_tell(target, message, &slot->ref);
  if (status != TP_OK) {
    tp_ref_release(&slot->ref);
    return status;
  }
  *out = &slot->ref;
  return TP_OK;
}

bool tp_slot_settled(const tp_ref *slot) { return tp_slot_look(slot)->settled; }

tp_outcome tp_slot_outcome(const tp_ref *slot) { return tp_slot_look(slot)->outcome; }

void tp_slot_notify(tp_ref *ref, void *token) {
  tp_slot *slot = tp_slot_of(ref);
  assert(slot->waiter == NULL && !slot->notify);
  slot->notify = true;
  slot->token = token;
  tp_ref_retain(ref);
  ref->system->waits++;
  if (slot->settled) tell_waiter(slot);
}

void tp_slot_forget(tp_ref *ref) {
  tp_slot *slot = tp_slot_of(ref);
  if (!slot->notify) return;
  slot->notify = false;
  if (slot->job != NULL) {
    tp_done(slot->job);
    slot->job->kind = TP_JOB_RESUME; /* it has ended: there is nothing left to do for it */
  }
  slot->job = NULL;
  ref->system->waits--;
  tp_unschedule_run(ref->system, &slot->run);
  tp_ref_release(ref);
}
