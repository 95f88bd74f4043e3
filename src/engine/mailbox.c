#include "mailbox.h"

#include <string.h>

#include "events.h"
#include "lifecycle.h"
#include "metrics.h"
#include "slot.h"
#include "system.h"
#include "value.h"

enum { DEEP = 10000 }; /* messages */

static bool is_request(const tp_ref *sender) {
  return sender != NULL && sender->kind == TP_REF_SLOT;
}

/* Warns of a mailbox that has grown deep, and at each doubling after; anew once it has been empty
 * (MBX-8). */
static void note_depth(tp_actor *a) {
  uint32_t *mark = a->ranks ? &a->priority->mark : &a->mailbox.mark;
  uint32_t depth = tp_mail_count(a);
  if (*mark == 0) *mark = DEEP;
  if (depth < *mark) return;
  *mark = *mark <= UINT32_MAX / 2 ? *mark * 2 : UINT32_MAX;
  tp_events_publish(a->ref.system, &(tp_event){.kind = TP_EVENT_WARNING,
                                               .code = "deep-mailbox",
                                               .subject = &a->ref,
                                               .value = tp_integer(depth)});
}

int tp_mail_push(tp_actor *a, tp_envelope e) {
  tp_system *s = a->ref.system;
  int status = a->ranks ? tp_priority_push(a, e) : tp_ring_push(&s->rings, &a->mailbox, e);
  if (status != TP_OK) return status;
  if (tp_mail_count(a) >= DEEP) note_depth(a);
  s->queued++;
  if (tp_mail_counts(e.message)) a->bounded++;
  if (is_request(e.sender)) tp_slot_request_queued(tp_slot_of(e.sender));
  tp_ready_push(&s->ready, &a->run);
  return TP_OK;
}

int tp_mail_reserve(tp_actor *a, uint32_t n) {
  if (a->ranks) return tp_priority_reserve(a, n);
  return tp_ring_reserve(&a->ref.system->rings, &a->mailbox, n);
}

void tp_mail_put_back(tp_actor *a, tp_envelope e) {
  if (a->ranks) {
    tp_priority_put_back(a, e);
  } else {
    tp_ring_put_back(&a->mailbox, e);
  }
  a->ref.system->queued++;
  if (tp_mail_counts(e.message)) a->bounded++;
}

void tp_mail_hold(const tp_envelope *e) {
  if (is_request(e->sender)) tp_slot_request_queued(tp_slot_of(e->sender));
}

static void left(tp_actor *a, tp_value message) {
  a->ref.system->queued--;
  if (tp_mail_counts(message)) a->bounded--;
}

static tp_envelope pop_ranked(tp_actor *a) {
  tp_envelope e = tp_priority_pop(a);
  left(a, e.message);
  return e;
}

tp_envelope tp_mail_pop(tp_actor *a) {
  if (a->ranks) return pop_ranked(a);
  tp_envelope e = tp_ring_pop(&a->ref.system->rings, &a->mailbox);
  left(a, e.message);
  return e;
}

static bool find_in_ring(tp_actor *a, const tp_ref *asker, tp_envelope *out) {
  uint32_t at = tp_ring_find(&a->mailbox, 0, asker);
  if (at == a->mailbox.count) return false;
  *out = tp_ring_remove(&a->ref.system->rings, &a->mailbox, at);
  return true;
}

void tp_mail_withdraw(tp_actor *a, const tp_ref *asker) {
  tp_envelope e;
  if (!(a->ranks ? tp_priority_withdraw(a, asker, &e) : find_in_ring(a, asker, &e))) return;
  left(a, e.message);
  tp_mail_handled(a->ref.system, &e);
}

void tp_mail_let_go(const tp_envelope *e) {
  if (is_request(e->sender)) tp_slot_request_handled(tp_slot_of(e->sender));
}

void tp_mail_handled(tp_system *s, tp_envelope *e) {
  if (e->sender != NULL) tp_mail_let_go(e);
  tp_envelope_release(s, e);
}

static bool worth_a_letter(tp_value message) {
  switch ((tp_type)message.type) {
    case TP_TICK:
    case TP_NOTICE:
    case TP_IDLE:
    case TP_RECEIVE_TIMEOUT:
    case TP_SIGNAL: return false;
    default: return (message.flags & TP_UNLAMENTED) == 0;
  }
}

void tp_dead_letter(tp_system *s, tp_value path, tp_value message, tp_ref *sender,
                    const char *reason) {
  if (worth_a_letter(message)) {
    tp_count_dead_letter(s, reason);
    tp_events_publish(s, &(tp_event){.kind = TP_EVENT_DEAD_LETTER,
                                     .code = reason,
                                     .sender = sender,
                                     .value = message,
                                     .trace = path});
  }
  tp_value_release(s, path);
  tp_value_release(s, message);
}

static void dead_letter(tp_actor *a, tp_value message, tp_ref *sender, const char *reason) {
  if (!worth_a_letter(message)) return;
  tp_count_dead_letter(a->ref.system, reason);
  tp_events_publish(a->ref.system, &(tp_event){.kind = TP_EVENT_DEAD_LETTER,
                                               .code = reason,
                                               .subject = &a->ref,
                                               .sender = sender,
                                               .value = message});
}

/* What an asker is told when its request is lost for `reason`. */
static const char *code_for(const char *reason) {
  return strcmp(reason, "stopped") == 0 ? "actor-stopped" : reason;
}

/* True when the asker needs no dead letter. A restart is no stop: its asker waits on (ASK-7). */
static bool tell_asker(tp_actor *a, tp_ref *sender, const char *reason) {
  if (!is_request(sender)) return false;
  tp_slot *slot = tp_slot_of(sender);
  if (strcmp(reason, "restarted") != 0)
    return tp_slot_request_lost(slot, &a->ref, code_for(reason));
  tp_slot_request_handled(slot);
  return slot->settled;
}

const char *tp_mail_end_reason(const tp_system *s) {
  return tp_system_stopping(s) ? "system-terminated" : "stopped";
}

void tp_mail_cut_short(tp_actor *a, tp_envelope *e, const char *reason) {
  (void)tell_asker(a, e->sender, reason);
  tp_envelope_release(a->ref.system, e);
}

void tp_mail_lost(tp_actor *a, tp_envelope *e, const char *reason) {
  if (!tell_asker(a, e->sender, reason)) dead_letter(a, e->message, e->sender, reason);
  tp_envelope_release(a->ref.system, e);
}

void tp_mail_refused(tp_actor *a, tp_value message, tp_ref *sender, const char *reason) {
  if (is_request(sender)) tp_slot_request_queued(tp_slot_of(sender));
  if (!tell_asker(a, sender, reason)) dead_letter(a, message, sender, reason);
}

void tp_mail_unroutable(tp_actor *a, tp_envelope *e, const char *reason) {
  if (is_request(e->sender)) {
    tp_slot_fail(e->sender, reason);
  } else {
    dead_letter(a, e->message, e->sender, reason);
  }
  tp_mail_handled(a->ref.system, e);
}

void tp_mail_misrouted(tp_actor *a, tp_envelope *e, tp_value failure) {
  dead_letter(a, e->message, e->sender, "strategy-error");
  if (is_request(e->sender)) {
    tp_slot_settle(e->sender, failure, true, NULL);
  } else {
    tp_value_release(a->ref.system, failure);
  }
  tp_mail_handled(a->ref.system, e);
}

void tp_mail_drain(tp_actor *a, const char *reason) {
  while (tp_mail_count(a) > 0) {
    tp_envelope e = tp_mail_pop(a);
    if (reason != NULL) {
      tp_mail_lost(a, &e, reason);
    } else {
      tp_envelope_release(a->ref.system, &e);
    }
  }
}

/* ---- Bounds ----------------------------------------------------------------------------- */

/* Counts and tells that a full mailbox has shed or refused `message` (MBX-6). */
static void dropped(tp_actor *a, tp_value message, tp_ref *sender) {
  static const char *const names[TP_OVERFLOWS] = {"drop-head", "drop-new", "reject", "drop-lowest"};
  tp_overflow policy = tp_behavior_look(a->behavior)->overflow;
  tp_extra *x = tp_actor_extra(a);
  if (x != NULL) x->dropped++;
  a->ref.system->dropped[policy]++;
  if ((message.flags & TP_UNLAMENTED) != 0) return; /* an event: telling of it would make another */
  tp_events_publish(a->ref.system, &(tp_event){.kind = TP_EVENT_DROPPED,
                                               .code = names[policy],
                                               .subject = &a->ref,
                                               .sender = sender,
                                               .value = message});
}

void tp_mail_shed(tp_actor *a, tp_envelope *e) {
  a->ref.system->queued--;
  a->bounded--;
  dropped(a, e->message, e->sender);
  tp_mail_cut_short(a, e, "mailbox-full");
}

/* The oldest message that counts goes, so that a reader of a full mailbox sees fresh mail. */
static void drop_head(tp_actor *a) {
  uint32_t i = 0;
  while (!tp_mail_counts(tp_ring_at(&a->mailbox, i)->message)) i++;
  tp_envelope old = tp_ring_remove(&a->ref.system->rings, &a->mailbox, i);
  tp_mail_shed(a, &old);
}

/* Makes room for one more message if that is the mailbox's way; false when the newcomer must go. Which
 * one is the lowest shows when the newcomer has been ranked. */
static bool make_room(tp_actor *a, const tp_behavior_spec *spec, const tp_envelope *newcomer) {
  if (a->bounded < spec->capacity || spec->overflow == TP_OVERFLOW_DROP_LOWEST) return true;
  if (spec->overflow != TP_OVERFLOW_DROP_HEAD) return false;
  tp_mail_hold(newcomer);                            /* it may be a copy of the request that goes */
  while (a->bounded >= spec->capacity) drop_head(a); /* which may send its asker's answer here */
  tp_mail_let_go(newcomer);
  return true;
}

/* The newcomer goes: its sender hears of it, or else its asker does. */
static int turn_away(tp_actor *a, const tp_behavior_spec *spec, tp_value message, tp_ref *sender) {
  bool rejects = spec->overflow == TP_OVERFLOW_REJECT;
  dropped(a, message, sender);
  if (!rejects && is_request(sender)) {
    tp_slot_request_queued(tp_slot_of(sender));
    (void)tell_asker(a, sender, "mailbox-full");
  }
  if (rejects) return TP_EFULL;
  tp_value_release(a->ref.system, message);
  return TP_OK;
}

/* As deliver below, where there is something to be looked at first: a mailbox that is closed, or has a
 * bound or ranks, or a signal. */
static int deliver_with_care(tp_actor *a, tp_value message, tp_ref *sender) {
  tp_system *s = a->ref.system;
  if (a->closed) {
    tp_mail_refused(a, message, sender, tp_mail_end_reason(s));
    tp_value_release(s, message);
    return TP_OK;
  }
  const tp_behavior_spec *spec = a->behavior == NULL ? NULL : tp_behavior_look(a->behavior);
  tp_envelope e = {message, sender};
  if (spec != NULL && spec->capacity > 0 && tp_mail_counts(message) && !make_room(a, spec, &e)) {
    return turn_away(a, spec, message, sender);
  }
  int status = tp_mail_push(a, e);
  if (status != TP_OK) return status;
  if (sender != NULL) tp_ref_retain(sender);
  bool pill = tp_value_is_signal(message) && message.as.integer == TP_POISON_PILL;
  if (pill && !a->guardian) tp_actor_close(a);
  return TP_OK;
}

/* Takes `message` but when it fails. */
static inline int deliver(tp_actor *a, tp_value message, tp_ref *sender) {
  if (a->choosy || !tp_mail_is_plain(message)) return deliver_with_care(a, message, sender);
  tp_system *s = a->ref.system;
  tp_envelope *place = tp_ring_place(&s->rings, &a->mailbox);
  if (place == NULL) return TP_ENOMEM;
  place->message = message;
  place->sender = sender;
  if (a->mailbox.count >= DEEP) note_depth(a);
  s->queued++;
  a->bounded++;
  if (sender != NULL) {
    if (is_request(sender)) tp_slot_request_queued(tp_slot_of(sender));
    tp_ref_retain(sender);
  }
  tp_ready_push(&s->ready, &a->run);
  return TP_OK;
}

int tp_tell(tp_ref *target, tp_value message, tp_ref *sender) {
  if (target->system->freed) return TP_OK; /* its values went with it */
  if (target->kind == TP_REF_SLOT) {
    tp_slot_settle(target, message, false, sender);
    return TP_OK;
  }
  int status = deliver(tp_actor_of(target), message, sender);
  if (status != TP_OK) tp_value_release(target->system, message);
  return status;
}

void tp_mail_send(tp_ref *target, tp_value message, tp_ref *sender) {
  if (target->kind == TP_REF_SLOT) {
    tp_slot_settle(target, message, false, sender);
    return;
  }
  tp_actor *a = tp_actor_of(target);
  int status = deliver(a, message, sender);
  if (status == TP_OK) return;
  tp_mail_refused(a, message, sender, status == TP_EFULL ? "mailbox-full" : "out-of-memory");
  tp_value_release(target->system, message);
}

int tp_forward(tp_ref *actor, tp_ref *target, uint32_t most) {
  const tp_job *job = tp_actor_of(actor)->job;
  tp_actor *t = tp_actor_of(target);
  if (job == NULL || job->kind != TP_JOB_RECEIVE) return TP_EIDLE;
  tp_envelope e = job->envelope;
  int status = TP_EFULL;
  tp_mail_let_go(&e); /* the target answers for the request from here on, also by refusing it */
  if (t->bounded < most) {
    tp_value_retain(actor->system, e.message);
    status = tp_tell(target, e.message, e.sender);
  }
  if (status == TP_EFULL) tp_mail_refused(t, e.message, e.sender, "mailbox-full");
  tp_mail_hold(&e); /* until the job is done */
  return status == TP_ENOMEM ? TP_ENOMEM : TP_OK;
}

int tp_reply(tp_ref *target, tp_value value, bool failed, tp_ref *from) {
  if (!target->system->freed && target->kind == TP_REF_SLOT) {
    tp_slot_settle(target, value, failed, from);
    return TP_OK;
  }
  return tp_tell(target, value, from);
}
