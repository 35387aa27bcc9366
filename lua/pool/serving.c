/* One of the processes of a pool, whatever started it: the thread that hears
 * the prompt while the process computes, and the part of one that the prompt
 * started itself, which is this same program. */
#include "pool.h"

#include "cancellation.h"
#include "complex_numbers.h"
#include "value.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- Ctrl-C, and the prompt's end ----------------------------------------- */

/* watch(descriptor): from now on, on a thread of its own, whatever this process
 * does: an "s" that comes there stops what runs, an "a" is answered, and its
 * end ends this process. */
static void *watch(void *data)
{
    int fd = (int)(intptr_t)data;
    char byte;
    for (;;) {
        ssize_t got = recv(fd, &byte, 1, 0);
        if (got == 1 && byte == 's')
            gpu_interrupt();
        else if (got == 1)
            (void)!send(fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        else if (got == 0 || errno != EINTR) {
            lumat_end_launcher();
            _exit(0);
        }
    }
    return NULL;
}

static int start_watch(lua_State *L)
{
    pthread_t thread;
    void *fd = (void *)(intptr_t)luaL_checkinteger(L, 1);
    lumat_note_launcher();
    if (pthread_create(&thread, NULL, watch, fd) != 0)
        return luaL_error(L, "no thread could be started");
    pthread_detach(thread);
    return 0;
}

/* go_on(): a new command begins, and what was to be stopped has ended; whether
 * there was such. */
static int go_on(lua_State *L)
{
    lua_pushboolean(L, gpu_is_interrupted());
    gpu_clear_interrupt();
    return 1;
}

/* --- parts ---------------------------------------------------------------- */

void *lumat_part_bytes(lua_State *L, gpu_matrix *m)
{
    gpu_matrix reals, first;
    const gpu_slice one = {0, 1, 1};
    if (!gpu_is_contiguous(m) || m->is_conjugated)
        luaL_error(L, "a part with gaps");
    if (gpu_size(m) == 0)
        return NULL;
    if (!gpu_is_complex(m))
        return gpu_own_bytes(m);
    lumat_try(L, gpu_settle_all());
    gpu_view_part(m, GPU_REAL_PART, &reals);
    gpu_status status = gpu_view_block(&reals, one, one, &first);
    gpu_release(&reals);
    lumat_try(L, status);
    void *at = gpu_own_bytes(&first);
    gpu_release(&first);
    return at;
}

void lumat_open_serving(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"watch", start_watch}, {"go_on", go_on}, {NULL, NULL}};
    luaL_newlib(L, functions);
    lumat_set_required(L, "serving");
}
