/* Mail: how it gets into a mailbox, and what becomes of mail that nobody will handle.
 *
 * Every envelope that is queued ends in exactly one of two ways: handled, or lost. A lost one is
 * dead-lettered, unless its asker is told instead (ASK-7, DL-4). */
#ifndef TP_MAILBOX_H
#define TP_MAILBOX_H

#include "actor.h"

/* Queues `e` (taken) and wakes the actor. TP_ENOMEM; then `e` is still the caller's. */
int tp_mail_push(tp_actor *a, tp_envelope e);

/* The handler of `e` (taken) has ended. */
void tp_mail_handled(tp_system *s, tp_envelope *e);

/* `e` (taken) is in the hand of `a`, which stops: it was delivered, so it is no dead letter, but its
 * asker is told. */
void tp_mail_cut_short(tp_actor *a, tp_envelope *e);

/* The router `a` has passed on copies of `e` (taken): whoever got one answers now. An asker is told
 * if nobody did. */
void tp_mail_routed(tp_actor *a, tp_envelope *e);

/* `e` (taken), which was queued or in hand, will not be handled by `a`. */
void tp_mail_lost(tp_actor *a, tp_envelope *e, const char *reason);

/* All that is still queued is lost. */
void tp_mail_drain(tp_actor *a, const char *reason);

/* Mail that never got into a mailbox: dead-letters `message` (borrowed), or tells the asker. */
void tp_mail_refused(tp_actor *a, tp_value message, tp_ref *sender, const char *reason);

/* `e` (taken), in the hand of a router, cannot be routed: an asker is told `code`. It is dead-lettered
 * if there is none, or `always`. */
void tp_mail_unroutable(tp_actor *a, tp_envelope *e, const char *code, bool always);

#endif
