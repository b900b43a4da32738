/* Counts what a process asks the disk to make durable: loaded before the C library, it adds one to the number
   in the file that BENCH_SYNCS names, and passes the call on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t *counted;

__attribute__((constructor)) static void open_counter(void) {
  const char *path = getenv("BENCH_SYNCS");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *mapped = mmap(NULL, sizeof *counted, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) counted = mapped;
  close(file);
}

#define COUNTED(name)                                              \
  int name(int file) {                                             \
    static int (*original)(int);                                   \
    if (!original) original = (int (*)(int))dlsym(RTLD_NEXT, #name); \
    if (counted) __atomic_add_fetch(counted, 1, __ATOMIC_RELAXED);  \
    return original(file);                                         \
  }

COUNTED(fsync)
COUNTED(fdatasync)
