/* SIMULATION for the steadygpu lab: not NVIDIA's library. */
#include "words.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FILE = 128 * 1024 };

unsigned long long number(const char *text)
{
    unsigned int base = 10;
    unsigned long long value = 0;

    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text += 2;
    }
    for (;; text++) {
        unsigned int digit;
        if (*text >= '0' && *text <= '9')
            digit = (unsigned int)(*text - '0');
        else if (base == 16 && *text >= 'a' && *text <= 'f')
            digit = (unsigned int)(*text - 'a') + 10;
        else
            return value;
        value = value * base + digit;
    }
}

char *next_word(char **rest)
{
    char *word = *rest;
    while (*word == ' ')
        word++;
    if (*word == '\0')
        return NULL;
    char *end = word;
    while (*end != ' ' && *end != '\0')
        end++;
    *rest = *end == '\0' ? end : end + 1;
    *end = '\0';
    return word;
}

unsigned int read_numbers(unsigned long long *target, unsigned int limit, char *rest)
{
    for (unsigned int i = 0; i < limit; i++) {
        char *word = next_word(&rest);
        if (word == NULL)
            return i;
        target[i] = number(word);
    }
    return limit;
}

void copy_text(char *target, size_t size, const char *text)
{
    size_t length = strlen(text);
    if (length >= size)
        length = size - 1;
    memcpy(target, text, length);
    target[length] = '\0';
}

static char *read_all(int fd)
{
    char *text = malloc(MAX_FILE);
    size_t length = 0;

    if (text == NULL)
        return NULL;
    while (length < MAX_FILE - 1) {
        ssize_t got = read(fd, text + length, MAX_FILE - 1 - length);
        if (got < 0) {
            free(text);
            return NULL;
        }
        if (got == 0)
            break;
        length += (size_t)got;
    }
    text[length] = '\0';
    return text;
}

char *read_file(const char *path, struct stat *seen)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;

    memset(seen, 0, sizeof *seen);
    if (fd < 0)
        return NULL;
    if (fstat(fd, seen) == 0)
        text = read_all(fd);
    close(fd);
    return text;
}

void each_line(char *text, void (*read_line)(void *target, char *line), void *target)
{
    for (char *line = text; line != NULL;) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        read_line(target, line);
        line = end == NULL ? NULL : end + 1;
    }
}

bool looks_like(const char *path, const struct stat *seen)
{
    struct stat now;
    if (stat(path, &now) != 0)
        return seen->st_ino == 0;
    return now.st_ino == seen->st_ino && now.st_size == seen->st_size &&
           now.st_mtim.tv_sec == seen->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == seen->st_mtim.tv_nsec;
}
