/* Ownership of values and envelopes. */
#ifndef TP_VALUE_H
#define TP_VALUE_H

#include "troupe.h"

/* Releases message and sender, whatever became of them. See mailbox.h for what an asker must be
 * told when a request is lost. */
void tp_envelope_release(tp_system *s, tp_envelope *e);

/* Aggregates and bundles may hold others. Whoever looks at them or lets go of them goes down by
 * recursion, so they are not to be nested deeper than this. */
enum { TP_DEPTH_MAX = 100 };

/* How deep `v` is nested; 0 for what holds no other values. */
uint32_t tp_value_depth(tp_value v);

/* Puts `v` (taken) in a place of an aggregate, or a bundle. */
void tp_fault_put(tp_fault *f, uint32_t i, tp_value v);
void tp_bundle_put(tp_bundle *b, uint32_t i, tp_value v);

/* Gives a bundle of `size` values, all nil, counted once. NULL when memory is out. */
tp_bundle *tp_bundle_new(tp_system *s, uint32_t size);

static inline tp_value tp_bundle_as_value(tp_bundle *b) {
  return (tp_value){.type = TP_BUNDLE, .as.bundle = b};
}

#endif
