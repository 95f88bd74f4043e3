#include "fault.h"

#include "alloc.h"
#include "system.h"

static size_t fault_size(uint32_t members) { return sizeof(tp_fault) + members * sizeof(tp_value); }

tp_fault *tp_fault_new(tp_system *s, const char *code, tp_ref *subject, uint32_t members) {
  tp_fault *f = tp_alloc(s, fault_size(members));
  if (f == NULL) {
    s->out_of_memory->count++;
    return s->out_of_memory;
  }
  f->count = 1;
  f->code = code;
  f->subject = subject;
  f->members = members;
  if (subject != NULL) tp_ref_retain(subject);
  return f;
}

tp_value tp_fault_value(tp_system *s, const char *code, tp_ref *subject) {
  return tp_fault_as_value(tp_fault_new(s, code, subject, 0));
}

tp_value tp_out_of_memory(tp_system *s) {
  s->out_of_memory->count++;
  return tp_fault_as_value(s->out_of_memory);
}

void tp_fault_release(tp_system *s, tp_fault *f) {
  if (--f->count > 0) return;
  for (uint32_t i = 0; i < f->members; i++) tp_value_release(s, f->member[i]);
  tp_value_release(s, f->routees);
  if (f->subject != NULL) tp_ref_release(f->subject);
  tp_free(s, f, fault_size(f->members));
}
