/* The names of live actors: one hash table a system, keyed by parent and name. Unnamed children
 * are not in it; nobody can ask for their names but by walking (see path.h). */
#ifndef TP_NAMES_H
#define TP_NAMES_H

#include "actor.h"

/* Room for one more name, so that tp_names_add cannot fail. TP_ENOMEM. */
int tp_names_reserve(tp_system *s);

void tp_names_add(tp_system *s, tp_actor *a);
void tp_names_remove(tp_system *s, tp_actor *a);

/* The live child with that name, or NULL. */
tp_actor *tp_names_find(tp_system *s, const tp_actor *parent, const char *name, size_t length);

void tp_names_fini(tp_system *s);

#endif
