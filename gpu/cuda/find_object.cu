/* Finding the objects that stand beside this backend: those of the CUDA
 * toolkit's libraries. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "la.h"

#ifndef LUMAT_LIBDIR
#define LUMAT_LIBDIR "/usr/local/lib/lumat"
#endif

enum { PATH_BYTES = 4200 };

/* What is looked for, and what was found: its entry, or why it is none. */
typedef struct search {
    const char *object, *symbol;
    char *why;
    size_t size;
    void *entry;
} search;

/* Tells whether to look no further. */
static bool load_from(search *s, const char *folder)
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", folder, s->object);
    if (access(path, R_OK) != 0)
        return false;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    s->entry = object != NULL ? dlsym(object, s->symbol) : NULL;
    if (object == NULL)
        snprintf(s->why, s->size, "%s", dlerror());
    else if (s->entry == NULL)
        snprintf(s->why, s->size, "%s is of another version", s->object);
    return true;
}

/* The folder of an absolute path, and what `more` adds to it. */
static bool load_beside(search *s, const char *file, const char *more)
{
    char folder[PATH_BYTES];
    const char *slash = strrchr(file, '/');
    if (file[0] != '/')
        return false;
    snprintf(folder, sizeof folder, "%.*s%s", (int)(slash - file), file, more);
    return load_from(s, folder);
}

/* Beside this object, beside the program, then where `make install` puts it;
 * never where the user happens to stand. */
void *gpu_cuda_find_entry(const char *object, const char *symbol, char *why,
                          size_t size)
{
    search s = {object, symbol, why, size, NULL};
    Dl_info self = {};
    char program[4096] = "";
    snprintf(why, size, "%s is not installed", object);
    if (dladdr((void *)gpu_cuda_find_entry, &self) && self.dli_fname &&
        load_beside(&s, self.dli_fname, ""))
        return s.entry;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    if (load_beside(&s, program, "") ||
        load_beside(&s, program, "/../lib/lumat"))
        return s.entry;
    load_from(&s, LUMAT_LIBDIR);
    return s.entry;
}
