/* Ownership of values and envelopes. */
#ifndef TP_VALUE_H
#define TP_VALUE_H

#include "troupe.h"

/* Releases message and sender, whatever became of them. See mailbox.h for what an asker must be
 * told when a request is lost. */
void tp_envelope_release(tp_system *s, tp_envelope *e);

#endif
