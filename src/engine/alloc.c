#include "alloc.h"

#include <string.h>

#include "system.h"

void *tp_resize(tp_system *s, void *block, size_t old_size, size_t new_size) {
  void *p = s->host.allocate(s->host.allocator, block, old_size, new_size);
  if (p != NULL) s->bytes += new_size - old_size;
  return p;
}

void *tp_alloc(tp_system *s, size_t size) {
  void *p = tp_resize(s, NULL, 0, size);
  if (p != NULL) memset(p, 0, size);
  return p;
}

void tp_free(tp_system *s, void *block, size_t size) {
  if (block == NULL) return;
  s->host.allocate(s->host.allocator, block, size, 0);
  s->bytes -= size;
}
