/* Failures that the engine itself reports, as values. The host turns them into errors of its own
 * when somebody looks. */
#ifndef TP_FAULT_H
#define TP_FAULT_H

#include "troupe.h"

/* Gives a fault with `members` members, all nil; borrows `subject` (or NULL). When memory is out,
 * gives the fault that says so, which each system keeps ready. */
tp_fault *tp_fault_new(tp_system *s, const char *code, tp_ref *subject, uint32_t members);

/* The same, as a value that fails an ask. */
tp_value tp_fault_value(tp_system *s, const char *code, tp_ref *subject);

static inline tp_value tp_fault_as_value(tp_fault *f) {
  return (tp_value){.type = TP_FAULT, .flags = TP_IS_ERROR, .as.fault = f};
}

void tp_fault_release(tp_system *s, tp_fault *f);

#endif
