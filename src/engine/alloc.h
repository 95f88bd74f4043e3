/* Memory of a system: every byte the engine holds comes from the host's allocator and is
 * counted, so that tests can make each single allocation fail and see that none leaks.
 *
 * Small blocks that are freed are kept for the next of their size, up to what the host allows. They
 * count as given back: tp_stats.bytes is what is used. */
#ifndef TP_ALLOC_H
#define TP_ALLOC_H

#include "troupe.h"

/* Has the memory at `p` come nearer, which is to be looked at soon. `p` may be anything. */
#ifdef __GNUC__
#define TP_PREFETCH(p) __builtin_prefetch(p)
#else
#define TP_PREFETCH(p) ((void)(p))
#endif

/* Blocks have so many grains and half of one, since a C library has that much to itself of each. They
 * are small up to so many grains. */
enum { TP_GRAIN = 16, TP_SMALL_GRAINS = 32 };

typedef struct tp_kept {
  struct tp_spare *first[TP_SMALL_GRAINS + 1]; /* by grains */
  size_t bytes;                                /* of `bytes` of the system */
} tp_kept;

/* Zeroed memory, or NULL. */
void *tp_alloc(tp_system *s, size_t size);

/* Memory with anything in it, or NULL. */
void *tp_alloc_raw(tp_system *s, size_t size);

/* Grows or shrinks a block; NULL on failure, and then the block is as it was. */
void *tp_resize(tp_system *s, void *block, size_t old_size, size_t new_size);

void tp_free(tp_system *s, void *block, size_t size);

/* Gives back what is kept, and keeps no more: for the end of a system. */
void tp_alloc_keep_none(tp_system *s);

#endif
