/* Mail: how it gets into a mailbox, and what becomes of mail that nobody will handle.
 *
 * Every envelope that is queued ends in exactly one way: handled, cut short (out of the mailbox, and
 * counted elsewhere: only its asker is told), or lost. A lost one is dead-lettered, unless its asker
 * is told instead (ASK-7, DL-4). */
#ifndef TP_MAILBOX_H
#define TP_MAILBOX_H

#include "actor.h"
#include "priority.h"

/* Queues `e` (taken) and wakes the actor, whatever bound there is. TP_ENOMEM; then `e` is still the
 * caller's. */
int tp_mail_push(tp_actor *a, tp_envelope e);

/* Room for `n` messages that are put back. TP_ENOMEM. */
int tp_mail_reserve(tp_actor *a, uint32_t n);

/* Puts `e` (taken), which was set aside, before all others, into room that was made before. */
void tp_mail_put_back(tp_actor *a, tp_envelope e);

/* A copy of `e` is kept: a request in it may still be answered. */
void tp_mail_hold(const tp_envelope *e);

/* Whether a message is user mail, which a bound may shed. What the engine itself has to say cannot be
 * said again (MBX-5). */
static inline bool tp_mail_counts(tp_value message) {
  const uint32_t ours = 1u << TP_TICK | 1u << TP_NOTICE | 1u << TP_TERMINATED | 1u << TP_IDLE |
                        1u << TP_RECEIVE_TIMEOUT;
  return (1u << message.type & ours) == 0 && !tp_value_is_signal(message);
}

/* Whether it is user mail that means nothing to the engine. */
static inline bool tp_mail_is_plain(tp_value message) { return message.type < TP_SIGNAL; }

/* Messages queued, those that have no rank yet included. */
static inline uint32_t tp_mail_count(const tp_actor *a) {
  return a->ranks ? tp_priority_count(a) : a->mailbox.count;
}

/* Takes the next one out; there must be one. */
tp_envelope tp_mail_pop(tp_actor *a);

/* Takes the request of `asker` out, if it is queued: nobody is told, it is no dead letter (SG-14). O(n) */
void tp_mail_withdraw(tp_actor *a, const tp_ref *asker);

/* The handler of `e` (taken) has ended. */
void tp_mail_handled(tp_system *s, tp_envelope *e);

/* The request of `e` is in the router's hand no more: it counts where its copies are. */
void tp_mail_let_go(const tp_envelope *e);

/* Why mail is lost with its actor: "stopped", or "system-terminated" at the system's end. */
const char *tp_mail_end_reason(const tp_system *s);

/* `e` (taken) is out of the mailbox of `a`, and there is nobody left to answer it: its asker is
 * told why. It was delivered, passed on or counted as shed, so it is no dead letter. */
void tp_mail_cut_short(tp_actor *a, tp_envelope *e, const char *reason);

/* `e` (taken), which was queued or in hand, will not be handled by `a`. */
void tp_mail_lost(tp_actor *a, tp_envelope *e, const char *reason);

/* `e` (taken), which has been taken out of the queue, was too much for the bound. */
void tp_mail_shed(tp_actor *a, tp_envelope *e);

/* All that is still queued is lost, in the order in which it would have been handled; nobody is told
 * when `reason` is NULL. */
void tp_mail_drain(tp_actor *a, const char *reason);

/* Mail that never got into a mailbox: dead-letters `message` (borrowed), or tells the asker. */
void tp_mail_refused(tp_actor *a, tp_value message, tp_ref *sender, const char *reason);

/* Tells `message` (taken) in the name of `sender` (borrowed, or NULL), for a router: what an actor does
 * not take is lost as above. */
void tp_mail_send(tp_ref *target, tp_value message, tp_ref *sender);

/* `e` (taken), in the hand of a router, cannot be routed: an asker is told `code`; if there is none,
 * it is dead-lettered. */
void tp_mail_unroutable(tp_actor *a, tp_envelope *e, const char *code);

/* The user code that should have routed `e` (taken) has failed: it is dead-lettered, and an asker
 * gets `failure` (taken) too (RTR-11). */
void tp_mail_misrouted(tp_actor *a, tp_envelope *e, tp_value failure);

#endif
