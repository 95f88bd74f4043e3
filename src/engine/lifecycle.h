/* The life of an actor: from its first turn to its last, and what runs in each.
 *
 * Start: pre_start, then messages. Restart: pre_restart of the old incarnation, the children stop,
 * a new incarnation begins with post_restart (LIFE-4). Stop: the children stop, post_stop, then the
 * rest of the mail is lost and the name is free (STOP-4). Each step that needs user code is a job;
 * a step is over when its job is, however long that waits. */
#ifndef TP_LIFECYCLE_H
#define TP_LIFECYCLE_H

#include "actor.h"

typedef enum tp_turn {
  TP_TURN_JOB,  /* a job was made */
  TP_TURN_USED, /* it has had its share; there may be more to do */
  TP_TURN_IDLE, /* nothing to do until something happens */
} tp_turn;

/* As tp_spawn, without asking whether the parent or the system may still spawn. Gives *out. */
int tp_actor_spawn(tp_actor *parent, tp_behavior *behavior, const char *name, size_t length,
                   tp_actor **out);

/* What the actor whose turn it is does next. */
tp_turn tp_actor_next(tp_actor *a, tp_job *job);

/* The job of an actor has ended; the first one is for a message. */
void tp_actor_received(tp_actor *a, tp_job *job);
void tp_actor_done(tp_actor *a, tp_job *job);

/* The job of an actor has failed: gives the message it had in hand, if any. */
tp_envelope tp_actor_give_up(tp_actor *a, tp_job *job);

/* Begins a restart or a stop of an actor that has failed. */
void tp_actor_restart(tp_actor *a);
void tp_actor_begin_stop(tp_actor *a, bool drain);

/* Takes no more mail from here on; a pool forgets it as a routee. */
void tp_actor_close(tp_actor *a);

/* A child has stopped and left. */
void tp_actor_child_gone(tp_actor *parent, tp_actor *child);

/* Gives up every hook that waits below `a`, so that stopping ends (SYS-5). */
void tp_actor_force(tp_actor *a);

#endif
