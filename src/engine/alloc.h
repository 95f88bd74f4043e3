/* Memory of a system: every byte the engine holds comes from the host's allocator and is
 * counted, so that tests can make each single allocation fail and see that none leaks. */
#ifndef TP_ALLOC_H
#define TP_ALLOC_H

#include "troupe.h"

/* Zeroed memory, or NULL. */
void *tp_alloc(tp_system *s, size_t size);

/* Grows or shrinks a block; NULL on failure, and then the block is as it was. */
void *tp_resize(tp_system *s, void *block, size_t old_size, size_t new_size);

void tp_free(tp_system *s, void *block, size_t size);

#endif
