/* The compiler as a process of its own: texts go in, machine code comes out.
 * Inside this process NVRTC would stay with its 100 MB, and a program that ends
 * while it works crashes or hangs (tried: one time in thirty, whether it was
 * told to stop or not). Loading it takes 0.13 s, so that it is kept while there
 * is work. */
#include "jit.h"
#include "compiler_words.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MOST_BYTES = 8 << 20 };

/* In a process group of its own: Ctrl-C is not for it. It gets nothing that is
 * open here but its two pipes. Returns an error number. */
static int start(const char *program, char **words, int in, int out,
                 pid_t *child)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    sigemptyset(&none);
    int error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    error = posix_spawnattr_init(&how);
    if (!error) {
        posix_spawnattr_setsigmask(&how, &none);
        posix_spawnattr_setpgroup(&how, 0);
        posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK |
                                           POSIX_SPAWN_SETPGROUP);
        posix_spawn_file_actions_adddup2(&files, in, 0);
        posix_spawn_file_actions_adddup2(&files, out, 1);
        posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addclosefrom_np(&files, 3);
        error = posix_spawn(child, program, &files, &how, words, environ);
        posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static int start_between(jit_compiler *c, const char *program, char **words,
                         const int in[2], const int out[2])
{
    int error = start(program, words, in[0], out[1], &c->process);
    close(in[0]);
    close(out[1]);
    c->in = in[1];
    c->out = out[0];
    c->is_open = error == 0;
    if (error) {
        close(in[1]);
        close(out[0]);
    }
    return error;
}

static int start_compiler(jit_compiler *c, const char *program, int version)
{
    char name[] = "lumat-cuda-compile", numbers[2][24];
    char *words[] = {name, numbers[0], numbers[1], NULL};
    int in[2], out[2];
    snprintf(numbers[0], sizeof numbers[0], "%d", version);
    snprintf(numbers[1], sizeof numbers[1], "%llx",
             (unsigned long long)jit_hash_files());
    if (pipe2(in, O_CLOEXEC) != 0)
        return errno;
    if (pipe2(out, O_CLOEXEC) != 0) {
        int error = errno;
        close(in[0]);
        close(in[1]);
        return error;
    }
    return start_between(c, program, words, in, out);
}

void jit_close_compiler(jit_compiler *c)
{
    int status;
    if (!c->is_open)
        return;
    c->is_open = 0;
    close(c->in);
    close(c->out);
    while (waitpid(c->process, &status, 0) < 0 && errno == EINTR)
        ;
}

int jit_write_fully(int fd, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(fd, (const char *)data + done, bytes - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        done += (size_t)n;
    }
    return 1;
}

int jit_read_fully(int fd, void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read(fd, (char *)data + done, bytes - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        done += (size_t)n;
    }
    return 1;
}

/* What it answers; NULL: it died, or has no code. */
static void *read_answer(jit_compiler *c, size_t *bytes, char *why, size_t size)
{
    jit_answer answer;
    snprintf(why, size, "the compiler gave no answer");
    if (!jit_read_fully(c->out, &answer, sizeof answer) ||
        answer.bytes > MOST_BYTES) {
        jit_close_compiler(c);
        return NULL;
    }
    char *data = malloc((size_t)answer.bytes + 1);
    if (data && jit_read_fully(c->out, data, (size_t)answer.bytes)) {
        *bytes = (size_t)answer.bytes;
        data[*bytes] = '\0';
        if (answer.is_code)
            return data;
        snprintf(why, size, "%s", data);
    } else {
        jit_close_compiler(c);
    }
    free(data);
    return NULL;
}

void *jit_compile(jit_compiler *c, const char *program, int version,
                  const char *text, int capability, size_t *bytes, char *why,
                  size_t size)
{
    jit_question question = {strlen(text), (uint64_t)capability};
    int error = c->is_open ? 0 : start_compiler(c, program, version);
    if (error) {
        snprintf(why, size, "%s: %s", program, strerror(error));
        return NULL;
    }
    if (!jit_write_fully(c->in, &question, sizeof question) ||
        !jit_write_fully(c->in, text, (size_t)question.bytes))
        snprintf(why, size, "the compiler has ended");
    return read_answer(c, bytes, why, size);
}
