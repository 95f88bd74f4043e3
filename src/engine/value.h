/* Ownership of values and envelopes. */
#ifndef TP_VALUE_H
#define TP_VALUE_H

#include "troupe.h"

/* Releases message and sender, whatever became of them. See mailbox.h for what an asker must be
 * told when a request is lost. */
void tp_envelope_release(tp_system *s, tp_envelope *e);

/* Gives a bundle of `size` values, all nil, counted once. NULL when memory is out. */
tp_bundle *tp_bundle_new(tp_system *s, uint32_t size);

static inline tp_value tp_bundle_as_value(tp_bundle *b) {
  return (tp_value){.type = TP_BUNDLE, .as.bundle = b};
}

#endif
