/* What the tests of compiled kernels share: the compiler beside the programs of
 * this build, and whether it has NVRTC here. */
#ifndef JIT_TESTING_H
#define JIT_TESTING_H

#include "jit.h"
#include "cpu_testing.h"
#include "op_list.h"

#include <limits.h>
#include <signal.h>
#include <unistd.h>

/* Ends a test that this machine lacks something for. (What cmocka says of one
 * that is skipped counts as a failure.) */
#define LEAVE_OUT(what)                             \
    do {                                            \
        print_message("# left out: no " what "\n"); \
        return;                                     \
    } while (0)

enum { VERSION = 13000, CAPABILITY = 90 };

static inline const char *compiler(void)
{
    static char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    path[n > 0 ? n : 0] = '\0';
    for (int i = 0; i < 4 && strrchr(path, '/'); i++)
        *strrchr(path, '/') = '\0';
    return strcat(path, "/bin/lumat-cuda-compile");
}

/* By a process that is there until the end. */
static inline void *compiled(const char *text, int version, char *why,
                             size_t size)
{
    static jit_compiler c;
    static int before;
    size_t bytes;
    signal(SIGPIPE, SIG_IGN);
    if (version != before)
        jit_close_compiler(&c);
    before = version;
    return jit_compile(&c, compiler(), version, text, CAPABILITY, &bytes, why,
                       size);
}

static inline int has_nvrtc(void)
{
    jit_form f = {.inputs = 1, .is_row = 1, .length = 1};
    char text[JIT_MOST_TEXT], why[1000];
    text[jit_write_source(&f, text)] = '\0';
    void *image = compiled(text, VERSION, why, sizeof why);
    free(image);
    if (!image && !strstr(why, "no NVRTC"))
        fail_msg("%s: %s", compiler(), why);
    return image != NULL;
}

#endif
