/* Let it crash: what happens when an actor fails.
 *
 * A failed actor and all below it are suspended while its supervisor decides. Who decides: the
 * actor's own strategy, else its parent's, else the default (SPAWN-5). A strategy is a fixed
 * directive or a decider of the host's, which is asked by a job that comes before any other. The
 * model is Erlang's supervisors (Armstrong, 2003) with Akka's four directives. */
#ifndef TP_SUPERVISION_H
#define TP_SUPERVISION_H

#include "actor.h"

/* `a` failed with `reason` and `trace` while it had `message` in hand (empty when it had none); all
 * are taken. */
void tp_supervise(tp_actor *a, tp_value reason, tp_value trace, tp_envelope message);

/* Makes a job of the next decision that a decider is to take. False when there is none. */
bool tp_decision_next(tp_system *s, tp_job *job);

/* The decision about a failed actor is to restart, or to stop it: only then is the asker of what it
 * had in hand told (ASK-7). */
void tp_let_go_of_asker(tp_actor *a, bool stops);

/* The failure has been dealt with: releases what was kept of it. */
void tp_forget_failure(tp_actor *a);

/* Lets go on what is below `a`, which failed. */
void tp_resume_children(tp_actor *a);

#endif
