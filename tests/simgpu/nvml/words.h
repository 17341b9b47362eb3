/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * Reading the simulation's two text files: words, numbers, whole files. Parsed by hand: newer
 * headers redirect strtol and sscanf to symbols (__isoc23_*) that the C library of an older
 * guest does not have.
 */
#ifndef SIMGPU_WORDS_H
#define SIMGPU_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* A number in decimal or 0x-hexadecimal; stops at the first character that is no digit. */
unsigned long long number(const char *text);

/* Cut the next blank-separated word out of *rest; NULL at the end. */
char *next_word(char **rest);

/* Up to `limit` numbers of `rest`. Returns how many there were. */
unsigned int read_numbers(unsigned long long *target, unsigned int limit, char *rest);

/* Copy what fits into `size` bytes, always ended with a NUL. */
void copy_text(char *target, size_t size, const char *text);

/* The whole file as one string, which the caller frees, or NULL. `seen` is what it looked like. */
char *read_file(const char *path, struct stat *seen);

/* Call `read_line(target, line)` for each line of `text`, which is cut up. */
void each_line(char *text, void (*read_line)(void *target, char *line), void *target);

/* Does the file still look like `seen`? Writers replace files by rename, so a change shows as
 * another inode or time. A missing file equals a `seen` that is all zero. */
bool looks_like(const char *path, const struct stat *seen);

#endif
