/* Mailboxes that hand out the lowest rank first (MBX-7).
 *
 * A function of the host's gives each message its rank, by a job. A message waits for it in the
 * actor's ring, as mail of any actor does; then it goes into one of two queues, of what a bound may
 * shed and of what it may not. Its place there is reserved when it arrives, so ranking cannot fail.
 * An actor handles nothing while some of its mail has no rank. */
#ifndef TP_PRIORITY_H
#define TP_PRIORITY_H

#include "actor.h"
#include "minmax.h"

/* Laid out apart, so that actors without priorities do not pay. */
#ifdef __GNUC__
#define TP_RARE __attribute__((cold, noinline))
#else
#define TP_RARE
#endif

struct tp_priority {
  tp_link link; /* in the system's list, while something waits for its rank */
  tp_actor *actor;
  tp_minmax counted, kept; /* what a bound may shed, and what not */
  int64_t arrived;         /* orders given so far, from 1 on */
  int64_t put_back;        /* the same, from -1 down: in front of everything */
  bool asking;             /* a job is to give the oldest its rank */
  tp_value asked;          /* what that job is asked about, counted */
  uint32_t mark;           /* as that of a ring: 0 again when the mailbox has been empty */
  bool sealed;             /* a pill has come: nothing may overtake it */
  bool complained;         /* the function has failed before */
};

/* Makes the actor's mailbox one. TP_ENOMEM. */
TP_RARE int tp_priority_new(tp_actor *a);

/* Frees what made it one; the mailbox must be empty. */
TP_RARE void tp_priority_free(tp_actor *a);

/* Takes `e`, which is to be ranked. TP_ENOMEM; then `e` is still the caller's. */
TP_RARE int tp_priority_push(tp_actor *a, tp_envelope e);

/* Room for `n` messages that are put back. TP_ENOMEM. */
TP_RARE int tp_priority_reserve(tp_actor *a, uint32_t n);

/* Puts `e` (taken) before all others, into room that was made before. */
TP_RARE void tp_priority_put_back(tp_actor *a, tp_envelope e);

/* Whether there is mail and all of it has its rank: else the actor waits for that. */
TP_RARE bool tp_priority_ready(const tp_actor *a);

/* Messages queued, those without a rank included. */
TP_RARE uint32_t tp_priority_count(const tp_actor *a);

/* Gives the first; what has no rank comes last. The mailbox must not be empty. */
TP_RARE tp_envelope tp_priority_pop(tp_actor *a);

/* Gives the request of `asker`, taken out, if it is queued; not one that is being ranked. */
TP_RARE bool tp_priority_withdraw(tp_actor *a, const tp_ref *asker, tp_envelope *out);

/* Makes a job of the next message in the system that has no rank. False when there is none. */
TP_RARE bool tp_priority_next(tp_system *s, tp_job *job);

/* The job's function raised: its message comes last. Takes reason and trace. */
void tp_priority_failed(tp_job *job, tp_value reason, tp_value trace);

#endif
