/* What an actor sets aside, and what it has become: the two ways to handle a message not now. */
#ifndef TP_STASH_H
#define TP_STASH_H

#include "actor.h"

/* All that is set aside is lost for `reason`. */
void tp_stash_lost(tp_actor *a, const char *reason);

#endif
