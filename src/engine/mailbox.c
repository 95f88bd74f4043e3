#include "mailbox.h"

#include "events.h"
#include "lifecycle.h"
#include "slot.h"
#include "system.h"
#include "value.h"

static bool is_request(const tp_ref *sender) {
  return sender != NULL && sender->kind == TP_REF_SLOT;
}

int tp_mail_push(tp_actor *a, tp_envelope e) {
  tp_system *s = a->ref.system;
  int status = tp_ring_push(s, &a->mailbox, e);
  if (status != TP_OK) return status;
  s->queued++;
  if (is_request(e.sender)) tp_slot_request_queued(tp_slot_of(e.sender));
  tp_schedule_run(s, &a->run);
  return TP_OK;
}

void tp_mail_handled(tp_system *s, tp_envelope *e) {
  if (is_request(e->sender)) tp_slot_request_handled(tp_slot_of(e->sender));
  tp_envelope_release(s, e);
}

static bool worth_a_letter(tp_value message) {
  return message.type != TP_TICK && message.type != TP_SIGNAL &&
         (message.flags & TP_UNLAMENTED) == 0;
}

static void dead_letter(tp_actor *a, tp_value message, tp_ref *sender, const char *reason) {
  if (!worth_a_letter(message)) return;
  tp_events_publish(a->ref.system, &(tp_event){.kind = TP_EVENT_DEAD_LETTER,
                                               .code = reason,
                                               .subject = &a->ref,
                                               .sender = sender,
                                               .value = message});
}

void tp_mail_cut_short(tp_actor *a, tp_envelope *e) {
  if (is_request(e->sender)) (void)tp_slot_request_lost(tp_slot_of(e->sender), &a->ref);
  tp_envelope_release(a->ref.system, e);
}

void tp_mail_routed(tp_actor *a, tp_envelope *e) { tp_mail_cut_short(a, e); }

void tp_mail_lost(tp_actor *a, tp_envelope *e, const char *reason) {
  bool told = is_request(e->sender) && tp_slot_request_lost(tp_slot_of(e->sender), &a->ref);
  if (!told) dead_letter(a, e->message, e->sender, reason);
  tp_envelope_release(a->ref.system, e);
}

void tp_mail_refused(tp_actor *a, tp_value message, tp_ref *sender, const char *reason) {
  if (is_request(sender)) {
    tp_slot_request_queued(tp_slot_of(sender));
    if (tp_slot_request_lost(tp_slot_of(sender), &a->ref)) return;
  }
  dead_letter(a, message, sender, reason);
}

void tp_mail_unroutable(tp_actor *a, tp_envelope *e, const char *reason, bool always) {
  if (always || !is_request(e->sender)) dead_letter(a, e->message, e->sender, reason);
  if (is_request(e->sender)) tp_slot_fail(e->sender, reason);
  tp_mail_handled(a->ref.system, e);
}

void tp_mail_drain(tp_actor *a, const char *reason) {
  tp_system *s = a->ref.system;
  while (a->mailbox.count > 0) {
    tp_envelope e = tp_ring_pop(s, &a->mailbox);
    s->queued--;
    tp_mail_lost(a, &e, reason);
  }
}

static int deliver(tp_actor *a, tp_value message, tp_ref *sender) {
  tp_system *s = a->ref.system;
  if (a->closed) {
    tp_mail_refused(a, message, sender, tp_system_stopping(s) ? "system-terminated" : "stopped");
    tp_value_release(s, message);
    return TP_OK;
  }
  int status = tp_mail_push(a, (tp_envelope){message, sender});
  if (status != TP_OK) {
    tp_value_release(s, message);
    return status;
  }
  if (sender != NULL) tp_ref_retain(sender);
  bool pill = tp_value_is_signal(message) && message.as.integer == TP_POISON_PILL;
  if (pill && !a->guardian) tp_actor_close(a);
  return TP_OK;
}

int tp_tell(tp_ref *target, tp_value message, tp_ref *sender) {
  if (target->system->freed) return TP_OK; /* its values went with it */
  if (target->kind == TP_REF_SLOT) {
    tp_slot_settle(target, message, false, sender);
    return TP_OK;
  }
  return deliver(tp_actor_of(target), message, sender);
}

int tp_reply(tp_ref *target, tp_value value, bool failed, tp_ref *from) {
  if (!target->system->freed && target->kind == TP_REF_SLOT) {
    tp_slot_settle(target, value, failed, from);
    return TP_OK;
  }
  return tp_tell(target, value, from);
}
