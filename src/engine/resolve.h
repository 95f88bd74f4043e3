/* Selections that wait for an actor to be spawned at their path (SEL-1). */
#ifndef TP_RESOLVE_H
#define TP_RESOLVE_H

#include "troupe.h"

/* An actor was spawned: settles the waiting selections that now lead somewhere. */
void tp_resolve_spawned(tp_system *s);

/* Forgets all that wait. */
void tp_resolve_fini(tp_system *s);

#endif
