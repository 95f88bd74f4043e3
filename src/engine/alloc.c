#include "alloc.h"

#include <string.h>

#include "system.h"

typedef struct tp_spare {
  struct tp_spare *next;
} tp_spare;

/* In full. */
static size_t grains_of(size_t size) { return (size + TP_GRAIN / 2 - 1) / TP_GRAIN; }

static size_t bytes_of(size_t size) {
  return size == 0 ? 0 : grains_of(size) * TP_GRAIN + TP_GRAIN / 2;
}

void *tp_resize(tp_system *s, void *block, size_t old_size, size_t new_size) {
  size_t from = bytes_of(old_size), to = bytes_of(new_size);
  void *p = s->host.allocate(s->host.allocator, block, from, to);
  if (p != NULL) s->bytes += to - from;
  return p;
}

void *tp_alloc_raw(tp_system *s, size_t size) {
  size_t grains = grains_of(size);
  tp_spare *p = grains <= TP_SMALL_GRAINS ? s->kept.first[grains] : NULL;
  if (p == NULL) return tp_resize(s, NULL, 0, size);
  s->kept.first[grains] = p->next;
  s->kept.bytes -= bytes_of(size);
  return p;
}

void *tp_alloc(tp_system *s, size_t size) {
  void *p = tp_alloc_raw(s, size);
  if (p != NULL) memset(p, 0, size);
  return p;
}

static void give_back(tp_system *s, void *block, size_t bytes) {
  s->host.allocate(s->host.allocator, block, bytes, 0);
  s->bytes -= bytes;
}

void tp_free(tp_system *s, void *block, size_t size) {
  if (block == NULL) return;
  size_t grains = grains_of(size), bytes = bytes_of(size);
  if (grains <= TP_SMALL_GRAINS && s->kept.bytes + bytes <= s->host.keep) {
    tp_spare *p = block;
    p->next = s->kept.first[grains];
    s->kept.first[grains] = p;
    s->kept.bytes += bytes;
  } else {
    give_back(s, block, bytes);
  }
}

void tp_alloc_keep_none(tp_system *s) {
  s->host.keep = s->kept.bytes = 0;
  for (size_t grains = 0; grains <= TP_SMALL_GRAINS; grains++) {
    tp_spare *p = s->kept.first[grains], *next;
    s->kept.first[grains] = NULL;
    for (; p != NULL; p = next) {
      next = p->next;
      give_back(s, p, grains * TP_GRAIN + TP_GRAIN / 2);
    }
  }
}
