/* The processes of a pool that one machine's prompt started itself, among
 * themselves: a stream socket between each two of them, in the prompt's folder.
 * It carries elements from the memory of one into that of the other; those of
 * GPUs go by an exchange of gpu/. Processes are counted from 0 here, and from 1
 * in tables. */
#include "pool.h"

#include "cancellation.h"
#include "exchange.h"
#include "value.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char mesh_type[] = "lumat.mesh";

enum { MOST_PROCESSES = 1024, SECONDS_TO_COME = 60 };

/* One process's share of what is exchanged. */
typedef struct share {
    const char *from; /* what is left to be sent, and to be received */
    char *to;
    uint64_t out, in;
} share;

typedef struct mesh {
    int rank, count;
    int door; /* -1: all have come */
    struct sockaddr_un at;
    int fd[MOST_PROCESSES]; /* -1: not there, and this process */
    share of[MOST_PROCESSES];
    gpu_device *device;
    unsigned char name[GPU_EXCHANGE_NAME]; /* that of the first counts */
    gpu_exchange *gpus; /* NULL: elements lie in the host's memory */
    struct pollfd polled[MOST_PROCESSES];
    double sent[MOST_PROCESSES]; /* bytes of elements, since last asked */
} mesh;

static mesh *check_mesh(lua_State *L)
{
    return luaL_checkudata(L, 1, mesh_type);
}

/* --- coming together ------------------------------------------------------ */

static void place_of(const mesh *m, int rank, struct sockaddr_un *at)
{
    *at = m->at;
    size_t n = strlen(at->sun_path);
    snprintf(at->sun_path + n, sizeof at->sun_path - n, "/%d", rank);
}

static int close_mesh(lua_State *L)
{
    mesh *m = check_mesh(L);
    struct sockaddr_un own;
    for (int i = 0; i < m->count; i++) {
        if (m->fd[i] >= 0)
            close(m->fd[i]);
        m->fd[i] = -1;
    }
    gpu_exchange_close(m->gpus);
    m->gpus = NULL;
    if (m->door >= 0) {
        close(m->door);
        place_of(m, m->rank, &own);
        unlink(own.sun_path);
    }
    m->door = -1;
    return 0;
}

/* open(folder, rank, count): from now on the others can come to this process;
 * all are there after m:join(). */
static int open_mesh(lua_State *L)
{
    const char *folder = luaL_checkstring(L, 1);
    lua_Integer rank = luaL_checkinteger(L, 2), count = luaL_checkinteger(L, 3);
    luaL_argcheck(L, count >= 1 && count <= MOST_PROCESSES, 3, "are too many");
    luaL_argcheck(L, rank >= 0 && rank < count, 2, "is none of them");
    mesh *m = lua_newuserdatauv(L, sizeof *m, 0);
    *m = (mesh){.rank = (int)rank, .count = (int)count, .door = -1};
    m->at.sun_family = AF_UNIX;
    memset(m->fd, -1, sizeof m->fd);
    luaL_setmetatable(L, mesh_type);
    luaL_argcheck(L, strlen(folder) + 6 < sizeof m->at.sun_path, 1,
                  "is too long");
    strcpy(m->at.sun_path, folder);
    struct sockaddr_un own;
    place_of(m, m->rank, &own);
    m->door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (m->door < 0 ||
        bind(m->door, (struct sockaddr *)&own, sizeof own) != 0 ||
        listen(m->door, MOST_PROCESSES) != 0)
        return luaL_error(L, "no socket at %s: %s", own.sun_path,
                          strerror(errno));
    return 1;
}

/* To the one of that number, which listens since the prompt heard of it. */
static int go_to(const mesh *m, int rank)
{
    struct sockaddr_un there;
    place_of(m, rank, &there);
    uint32_t own = (uint32_t)m->rank;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (connect(fd, (struct sockaddr *)&there, sizeof there) != 0 ||
                    send(fd, &own, sizeof own, MSG_NOSIGNAL) != sizeof own)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* One that comes, with its number; -1: none came. */
static int let_in(const mesh *m, uint32_t *rank)
{
    struct pollfd p = {.fd = m->door, .events = POLLIN};
    if (poll(&p, 1, SECONDS_TO_COME * 1000) <= 0)
        return -1;
    int fd = accept4(m->door, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return -1;
    if (recv(fd, rank, sizeof *rank, MSG_WAITALL) != sizeof *rank ||
        *rank >= (uint32_t)m->count || m->fd[*rank] >= 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* m:join(): each goes to those before it. */
static int join(lua_State *L)
{
    mesh *m = check_mesh(L);
    struct sockaddr_un own;
    for (int i = 0; i < m->rank; i++) {
        m->fd[i] = go_to(m, i);
        if (m->fd[i] < 0)
            return luaL_error(L, "process %d does not reach process %d: %s",
                              m->rank + 1, i + 1, strerror(errno));
    }
    for (int i = m->rank + 1; i < m->count; i++) {
        uint32_t rank;
        int fd = let_in(m, &rank);
        if (fd < 0)
            return luaL_error(L, "a process did not come to process %d",
                              m->rank + 1);
        m->fd[rank] = fd;
    }
    for (int i = 0; i < m->count; i++)
        if (m->fd[i] >= 0)
            fcntl(m->fd[i], F_SETFL, O_NONBLOCK);
    close(m->door);
    m->door = -1;
    place_of(m, m->rank, &own);
    unlink(own.sun_path);
    return 0;
}

/* --- exchanging ----------------------------------------------------------- */

/* A process that is gone takes the pool with it: the prompt ends the others. */
static int fail_at(lua_State *L, int peer)
{
    return luaL_error(L, "process %d is gone", peer + 1);
}

/* Does what a socket allows now; 0: who is at its other end is gone. */
static int advance(int fd, share *e)
{
    while (e->in > 0) {
        ssize_t got = recv(fd, e->to, e->in, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return 0;
        if (got < 0)
            break;
        e->to += got;
        e->in -= (uint64_t)got;
    }
    while (e->out > 0) {
        ssize_t sent = send(fd, e->from, e->out, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return 0;
        if (sent < 0)
            break;
        e->from += sent;
        e->out -= (uint64_t)sent;
    }
    return 1;
}

/* All that m->of tells of. It is not stopped between: then some would have
 * what others still wait for. Who is gone, or -1. */
static int exchange_with_all(mesh *m)
{
    for (;;) {
        nfds_t waiting = 0;
        for (int i = 0; i < m->count; i++) {
            share *e = &m->of[i];
            if (e->in == 0 && e->out == 0)
                continue;
            if (m->fd[i] < 0 || !advance(m->fd[i], e))
                return i;
            if (e->in > 0 || e->out > 0)
                m->polled[waiting++] = (struct pollfd){
                    .fd = m->fd[i],
                    .events = (short)((e->in > 0 ? POLLIN : 0) |
                                      (e->out > 0 ? POLLOUT : 0))};
        }
        if (waiting == 0)
            return -1;
        poll(m->polled, waiting, 1000);
    }
}

static void exchange_all(lua_State *L, mesh *m)
{
    int gone = exchange_with_all(m);
    if (gone >= 0)
        fail_at(L, gone);
}

/* The matrix in the list at index for a process, which the list keeps; NULL:
 * nothing. */
static gpu_matrix *parcel_for(lua_State *L, int index, int peer)
{
    gpu_matrix *m = NULL;
    if (lua_isnoneornil(L, index))
        return NULL;
    if (lua_rawgeti(L, index, peer + 1) != LUA_TNIL)
        m = lumat_check_matrix(L, -1);
    lua_pop(L, 1);
    return m && gpu_bytes(m) > 0 ? m : NULL;
}

static void *host_bytes(lua_State *L, gpu_matrix *m, uint64_t *n)
{
    *n = m ? gpu_bytes(m) : 0;
    void *at = m ? lumat_part_bytes(L, m) : NULL;
    if (m && !at)
        luaL_error(L, "elements that are not in the host's memory");
    return at;
}

/* What all are to exchange lies on the device, or all in the host's memory. */
static int is_of_device(const gpu_matrix *m)
{
    return m && !gpu_device_is_cpu(gpu_matrix_device(m));
}

/* The parcels of both lists, n of them, pushed. */
static gpu_parcel *push_parcels(lua_State *L, const mesh *m, int *n)
{
    gpu_parcel *list =
        lua_newuserdatauv(L, 2 * sizeof *list * (size_t)m->count, 0);
    *n = 0;
    for (int i = 0; i < m->count; i++) {
        gpu_matrix *out = parcel_for(L, 2, i), *in = parcel_for(L, 3, i);
        if (out)
            list[(*n)++] = (gpu_parcel){out, i, 0};
        if (in)
            list[(*n)++] = (gpu_parcel){in, i, 1};
    }
    return list;
}

/* m:begin(outgoing, incoming): to each process goes the matrix that the first
 * list has for it, and what comes from it is written into that of the second;
 * all call it, and know how much is for them. It is done after m:finish(), of
 * what this gives; until then the matrices, which are without gaps, are to be
 * kept. One exchange of the host's memory goes on at a time, and one of GPUs.
 */
static int begin(lua_State *L)
{
    int n;
    mesh *m = check_mesh(L);
    gpu_parcel *list = push_parcels(L, m, &n);
    for (int i = 0; i < n; i++)
        if (!list[i].is_incoming)
            m->sent[list[i].peer] += (double)gpu_bytes(list[i].m);
    int is_on_gpus = m->gpus && n > 0 && is_of_device(list[0].m);
    lua_pushboolean(L, is_on_gpus);
    if (is_on_gpus) {
        lumat_try(L, gpu_exchange_begin(m->gpus, list, n));
        return 1;
    }
    memset(m->of, 0, sizeof m->of);
    for (int i = 0; i < n; i++) {
        share *e = &m->of[list[i].peer];
        if (list[i].is_incoming)
            e->to = host_bytes(L, list[i].m, &e->in);
        else
            e->from = host_bytes(L, list[i].m, &e->out);
    }
    return 1;
}

/* m:finish(begun) */
static int finish(lua_State *L)
{
    mesh *m = check_mesh(L);
    if (lua_toboolean(L, 2))
        lumat_try(L, gpu_exchange_finish(m->gpus));
    else
        exchange_all(L, m);
    return 0;
}

/* m:traffic(): a list of the bytes of elements that went to each process since
 * it was last called. */
static int traffic(lua_State *L)
{
    mesh *m = check_mesh(L);
    lua_createtable(L, m->count, 0);
    for (int i = 0; i < m->count; i++) {
        lua_pushnumber(L, m->sent[i]);
        lua_rawseti(L, -2, i + 1);
        m->sent[i] = 0;
    }
    return 1;
}

/* m:prepare(device): what needs nobody else of m:open_exchange. */
static int prepare(lua_State *L)
{
    mesh *m = check_mesh(L);
    lumat_try(L, gpu_open(luaL_checkstring(L, 2), &m->device));
    lumat_try(L, gpu_exchange_make_name(m->device, m->name));
    return 0;
}

/* m:open_exchange(): from now on elements of the prepared device go from one to
 * the other; all call it. */
static int open_exchange(lua_State *L)
{
    mesh *m = check_mesh(L);
    unsigned char *name = m->name;
    memset(m->of, 0, sizeof m->of);
    for (int i = 1; m->rank == 0 && i < m->count; i++)
        m->of[i] = (share){.from = (char *)name, .out = GPU_EXCHANGE_NAME};
    if (m->rank > 0)
        m->of[0] = (share){.to = (char *)name, .in = GPU_EXCHANGE_NAME};
    exchange_all(L, m);
    lumat_try(L,
              gpu_exchange_open(m->device, name, m->rank, m->count, &m->gpus));
    return 0;
}

/* Is it true of every process, and was none told to stop? *gone: who is gone,
 * or -1. */
static int all_agree(mesh *m, int truth, int *gone)
{
    char mine = truth && !gpu_is_interrupted(), all = mine;
    char said[MOST_PROCESSES] = {0};
    for (int i = 0; i < m->count; i++)
        if (i == m->rank)
            m->of[i] = (share){0};
        else
            m->of[i] = (share){&mine, &said[i], 1, 1};
    *gone = exchange_with_all(m);
    for (int i = 0; i < m->count; i++)
        if (i != m->rank && !said[i])
            all = 0;
    return all;
}

/* m:agree(truth) */
static int agree(lua_State *L)
{
    int gone, all = all_agree(check_mesh(L), lua_toboolean(L, 2), &gone);
    if (gone >= 0)
        return fail_at(L, gone);
    lua_pushboolean(L, all);
    return 1;
}

/* --- what libraries do ---------------------------------------------------- */

static gpu_grid_task check_task(lua_State *L, int index)
{
    static const char *const names[] = {[GPU_GRID_PRODUCT] = "product",
                                        [GPU_GRID_LU] = "lu",
                                        [GPU_GRID_CHOLESKY] = "chol",
                                        [GPU_GRID_QR] = "qr",
                                        [GPU_GRID_APPLY_Q] = "apply_q",
                                        [GPU_GRID_EIGH] = "eigh",
                                        NULL};
    return (gpu_grid_task)luaL_checkoption(L, index, NULL, names);
}

/* m:lacks(task): what is missing for a library to do it, in words, or nil. */
static int lacks(lua_State *L)
{
    const mesh *m = check_mesh(L);
    gpu_grid_task task = check_task(L, 2);
    lua_pushstring(L, m->gpus ? gpu_exchange_lacks(m->gpus, task)
                              : "several GPUs");
    return 1;
}

static int64_t number_of(lua_State *L, int index, const char *name)
{
    lua_getfield(L, index, name);
    int64_t n = luaL_checkinteger(L, -1);
    lua_pop(L, 1);
    return n;
}

/* A part's table, which stays where it is; none: nil. */
static gpu_grid_part check_part(lua_State *L, int index)
{
    if (lua_isnoneornil(L, index))
        return (gpu_grid_part){0};
    luaL_checktype(L, index, LUA_TTABLE);
    lua_getfield(L, index, "data");
    gpu_grid_part part = {.data = lumat_check_matrix(L, -1)};
    lua_pop(L, 1);
    part.m = number_of(L, index, "m");
    part.n = number_of(L, index, "n");
    part.mb = number_of(L, index, "mb");
    part.nb = number_of(L, index, "nb");
    return part;
}

/* Between the steps of a task; who is gone is told of when it is over. */
typedef struct agreeing {
    mesh *m;
    int asked, gone;
} agreeing;

static int ask_all(void *context, int is_well)
{
    agreeing *a = context;
    a->asked = 1;
    return a->gone < 0 && all_agree(a->m, is_well, &a->gone);
}

/* m:work(task, grid, a, b, c, numbers): see gpu_exchange_work; what trouble
 * there was, as a number. */
static int work(lua_State *L)
{
    agreeing context = {.m = check_mesh(L), .gone = -1};
    luaL_checktype(L, 3, LUA_TTABLE);
    gpu_grid_job job = {.task = check_task(L, 2),
                        .rows = (int)number_of(L, 3, "rows"),
                        .cols = (int)number_of(L, 3, "cols"),
                        .a = check_part(L, 4),
                        .b = check_part(L, 5),
                        .c = check_part(L, 6),
                        .agree = ask_all,
                        .context = &context};
    if (!lua_isnoneornil(L, 7))
        job.numbers = lumat_check_matrix(L, 7);
    luaL_argcheck(L, context.m->gpus && job.a.data, 4, "is on no GPU");
    gpu_status status = gpu_exchange_work(context.m->gpus, &job);
    if (!context.asked) /* it failed before its first step */
        ask_all(&context, 0);
    if (context.gone >= 0)
        return fail_at(L, context.gone);
    lumat_try(L, status);
    lua_pushinteger(L, job.trouble);
    return 1;
}

/* The module lumat.mesh. */
void lumat_open_mesh(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"join", join},       {"begin", begin},
        {"finish", finish},   {"traffic", traffic},
        {"prepare", prepare}, {"open_exchange", open_exchange},
        {"agree", agree},     {"lacks", lacks},
        {"work", work},       {"close", close_mesh},
        {NULL, NULL}};
    static const luaL_Reg functions[] = {{"open", open_mesh}, {NULL, NULL}};
    lumat_open_closing(L, mesh_type, close_mesh);
    luaL_getmetatable(L, mesh_type);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    lumat_set_required(L, "mesh");
}
