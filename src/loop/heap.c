#include "heap.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* The library grows the heap in small steps. A large one is somebody's large block. */
enum { PAGE = 4096, LARGEST_STEP = 1 << 20 };

void tp_heap_map(void) {
#ifdef MADV_POPULATE_WRITE
  static _Thread_local char *end;
  char *from = end, *to = sbrk(0);
  if (to == from) return;
  end = to;
  if (from == NULL || to < from || to - from > LARGEST_STEP) return;
  from -= (uintptr_t)from % PAGE;
  (void)madvise(from, (size_t)(to - from), MADV_POPULATE_WRITE); /* else they come one by one */
#endif
}
