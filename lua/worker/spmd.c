/* One script, run by all processes that mpirun or srun has started: each runs
 * all of it, and what they do with distributed matrices they do together. What
 * is outside of them, standard input and output and the files that the library
 * writes, is the first one's, whose rank is 0; the others are told. A script is
 * to call the same on all ranks: with --spmd-check that is looked at before
 * each such call, in place of waiting for ever. */
#include "lumat.h"
#include "repl.h"
#include "terminal.h"
#include "worker.h"

#include "complex_numbers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    int rank, size;
    lua_State *L;
    double seconds; /* that one may be late; 0: nothing is checked */
    int is_alone;   /* in a call that all know of: its files are its own */
    int *is_told;   /* by one of this machine: an error */
    MPI_Comm calls, checks;
    /* of the first rank, by rank: what they say, and whether they did */
    struct call *said;
    int *came, *group;
    MPI_Request *requests;
} ranks;

/* --- who says it ---------------------------------------------------------- */

static void rest(double seconds)
{
    struct timespec t = {(time_t)seconds,
                         (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

/* Memory that the ranks of a machine share. */
static void share_flag(void)
{
    MPI_Comm here;
    MPI_Win window;
    MPI_Aint size;
    int unit, mine;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, ranks.rank,
                        MPI_INFO_NULL, &here);
    MPI_Comm_rank(here, &mine);
    MPI_Win_allocate_shared(mine == 0 ? sizeof(int) : 0, sizeof(int),
                            MPI_INFO_NULL, here, &ranks.is_told, &window);
    MPI_Win_shared_query(window, 0, &size, &unit, &ranks.is_told);
    if (mine == 0)
        *ranks.is_told = 0;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Of those of a machine one tells; the others wait for the end that it brings.
 */
static void tell_alone(void)
{
    while (__atomic_exchange_n(ranks.is_told, 1, __ATOMIC_SEQ_CST))
        rest(0.1);
}

static _Noreturn void end_all(int code)
{
    fflush(stdout);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, code);
    _exit(code);
}

/* --- calls that are compared ---------------------------------------------- */

enum { PLACE = 128, SAID = 256 };

typedef enum call_kind { CALL, END, ERROR } call_kind;

/* What a rank is about to call. */
typedef struct call {
    uint64_t hash; /* of all that is said */
    call_kind kind;
    char place[PLACE]; /* the script's line */
    char said[SAID];   /* "D:sum(1)", or an error */
} call;

/* FNV-1a. */
static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3;
    return h;
}

/* The line of the script that is under way. */
static void find_place(char place[PLACE])
{
    lua_Debug ar;
    snprintf(place, PLACE, "the script");
    for (int level = 0; lua_getstack(ranks.L, level, &ar); level++)
        if (lua_getinfo(ranks.L, "Sl", &ar) && lumat_is_users(&ar)) {
            snprintf(place, PLACE, "%s:%d", ar.short_src, ar.currentline);
            return;
        }
}

static call describe(call_kind kind, const char *said, size_t length)
{
    call c = {.kind = kind, .hash = hash_of(said, length)};
    snprintf(c.said, SAID, "%.*s", length < SAID ? (int)length : SAID - 1,
             said);
    if (kind == CALL)
        find_place(c.place);
    return c;
}

static int is_same(const call *a, const call *b)
{
    return a->kind == b->kind && a->hash == b->hash &&
           strcmp(a->place, b->place) == 0;
}

/* Waits for two messages, at most up to that time. */
static int come(MPI_Request requests[2], double end)
{
    int is_there;
    double begin = lumat_now(), now;
    for (;;) {
        MPI_Testall(2, requests, &is_there, MPI_STATUSES_IGNORE);
        if (is_there)
            return 1;
        now = lumat_now();
        if (now > end)
            return 0;
        if (now - begin < 1e-3)
            sched_yield();
        else
            rest(1e-4);
    }
}

/* "ranks 0 and 2 to 5": those whose answer is that of `which`. */
static void name_ranks(char *out, size_t size, const int *group, int which)
{
    int count = 0, places = 0;
    size_t n = 0;
    for (int i = 0; i < ranks.size; i++)
        count += group[i] == which;
    n += (size_t)snprintf(out, size, count == 1 ? "rank" : "ranks");
    for (int i = 0; i < ranks.size && n < size; i++) {
        int last = i;
        if (group[i] != which)
            continue;
        while (last + 1 < ranks.size && group[last + 1] == which)
            last++;
        n += (size_t)snprintf(out + n, size - n, "%s %d", places++ ? "," : "",
                              i);
        if (last > i && n < size)
            n += (size_t)snprintf(out + n, size - n, "%s %d",
                                  last > i + 1 ? " to" : ",", last);
        i = last;
    }
}

enum { MISSING = -1 };

static void print_call(const call *c)
{
    if (c->kind == END)
        fprintf(stderr, "ended the script");
    else if (c->kind == ERROR)
        fprintf(stderr, "raised an error: %s", c->said);
    else
        fprintf(stderr, "at %s: %s", c->place, c->said);
}

/* Which of them call what, and who is late. */
static void report(int is_late)
{
    const call *all = ranks.said;
    const int *came = ranks.came;
    int *group = ranks.group;
    char names[512];
    fflush(stdout);
    fprintf(stderr, "lumat: the ranks do not call the same:\n");
    for (int i = 0; i < ranks.size; i++) {
        group[i] = came[i] ? i : MISSING;
        for (int k = 0; came[i] && k < i; k++)
            if (group[k] != MISSING && is_same(&all[i], &all[k])) {
                group[i] = group[k];
                break;
            }
    }
    for (int i = 0; i < ranks.size; i++)
        if (group[i] == i) {
            name_ranks(names, sizeof names, group, i);
            fprintf(stderr, "  %s ", names);
            print_call(&all[i]);
            fputc('\n', stderr);
        }
    name_ranks(names, sizeof names, group, MISSING);
    if (is_late)
        fprintf(stderr, "  %s did not come within %g s\n", names,
                ranks.seconds);
}

/* The first rank hears what the others are about to call, and says whether it
 * is the same; where it is not, or one is too late, it tells and ends all. An
 * error of one is told as soon as it is heard of, with what is known of the
 * others by then. */
static void hear_all(const call *mine)
{
    double late = lumat_now() + ranks.seconds, end = late, soon = 0.3;
    int left = ranks.size - 1, differs = 0;
    char yes = 1;
    memset(ranks.came, 0, (size_t)ranks.size * sizeof *ranks.came);
    ranks.said[0] = *mine;
    ranks.came[0] = 1;
    for (int i = 1; i < ranks.size; i++)
        MPI_Irecv(&ranks.said[i], sizeof *mine, MPI_BYTE, i, 0, ranks.checks,
                  &ranks.requests[i]);
    if (mine->kind == ERROR)
        end = lumat_now() + soon;
    while (left > 0 && lumat_now() < end) {
        int i, found;
        MPI_Testany(ranks.size - 1, ranks.requests + 1, &i, &found,
                    MPI_STATUS_IGNORE);
        if (!found || i == MPI_UNDEFINED) {
            sched_yield();
            continue;
        }
        ranks.came[i + 1] = 1;
        left--;
        if (is_same(mine, &ranks.said[i + 1]))
            continue;
        if (!differs && lumat_now() + soon < end)
            end = lumat_now() + soon;
        differs = 1;
    }
    if (differs || (left > 0 && mine->kind != ERROR)) {
        tell_alone();
        report(left > 0 && lumat_now() >= late);
        end_all(1);
    }
    for (int i = 1; i < ranks.size && left == 0; i++)
        MPI_Send(&yes, 1, MPI_BYTE, i, 1, ranks.checks);
}

/* What another one does. The first may be the one that does not come, and not
 * even take what it is sent: then the next tells. */
static void ask_first(const call *mine)
{
    static call said; /* as long as it is on its way */
    static char yes;
    MPI_Request requests[2];
    double late = ranks.seconds + 2 + 0.1 * ranks.rank;
    said = *mine;
    MPI_Isend(&said, sizeof said, MPI_BYTE, 0, 0, ranks.checks, &requests[0]);
    MPI_Irecv(&yes, 1, MPI_BYTE, 0, 1, ranks.checks, &requests[1]);
    if (come(requests, lumat_now() + (mine->kind == ERROR ? 1.5 : late)) ||
        mine->kind == ERROR)
        return;
    tell_alone();
    fprintf(stderr,
            "lumat: rank 0 did not come within %g s to where rank %d waits, "
            "%s: %s\n",
            ranks.seconds, ranks.rank, mine->place, mine->said);
    end_all(1);
}

static void compare(call_kind kind, const char *said, size_t length)
{
    call mine;
    if (ranks.seconds <= 0 || ranks.size == 1)
        return;
    mine = describe(kind, said, length);
    if (ranks.rank == 0)
        hear_all(&mine);
    else
        ask_first(&mine);
}

/* --- the end -------------------------------------------------------------- */

/* An error is told once: mostly all have it, and the first tells. */
static const char *speak(const char *message)
{
    static char who[64];
    if (ranks.size == 1)
        return "";
    compare(ERROR, message, strlen(message));
    if (ranks.rank > 0)
        rest(0.5);
    tell_alone();
    snprintf(who, sizeof who, "rank %d of %d: ", ranks.rank, ranks.size);
    return who;
}

/* However the program is left: all leave together, or all are ended. */
static void leave(int code, void *data)
{
    int is_over;
    (void)data;
    MPI_Finalized(&is_over);
    if (is_over)
        return;
    if (code != 0 && ranks.size > 1)
        end_all(code);
    compare(END, "", 0);
    MPI_Finalize();
}

/* --- files, input and output ---------------------------------------------- */

/* What became of a file, by the first rank's word. */
static int share_outcome(int error)
{
    static const char said[] = "writing a file";
    if (ranks.is_alone)
        return error;
    compare(CALL, said, sizeof said - 1);
    MPI_Bcast(&error, 1, MPI_INT, 0, ranks.calls);
    return error;
}

static lumat_shared_files files = {.outcome = share_outcome};

/* Standard input, of which all ranks read the same. */
static ssize_t read_together(char *text, size_t size)
{
    static const char said[] = "reading standard input";
    long n = 0;
    compare(CALL, said, sizeof said - 1);
    if (ranks.rank == 0) {
        do
            n = read(STDIN_FILENO, text, size);
        while (n < 0 && errno == EINTR);
    }
    MPI_Bcast(&n, 1, MPI_LONG, 0, ranks.calls);
    if (n > 0)
        MPI_Bcast(text, (int)n, MPI_BYTE, 0, ranks.calls);
    return n;
}

static void do_nothing(void)
{
}

static int is_not_interrupted(void)
{
    return 0;
}

static void say_nothing(const char *message)
{
    (void)message;
}

/* io.stderr of the other ranks goes nowhere; that of the C library stays. */
static void silence(lua_State *L)
{
    FILE *nowhere = fopen("/dev/null", "w");
    int fd = nowhere ? fileno(nowhere) : -1;
    if (fd < 0)
        luaL_error(L, "/dev/null cannot be opened");
    dup2(fd, STDOUT_FILENO);
    lumat_set_warnings(say_nothing);
    lua_getglobal(L, "io");
    lua_getfield(L, -1, "stderr");
    luaL_Stream *own = luaL_checkudata(L, -1, LUA_FILEHANDLE);
    own->f = nowhere;
    lua_pop(L, 2);
}

/* --- what Lua has of it --------------------------------------------------- */

enum { SHORT = 56 };

typedef struct note {
    uint64_t length;
    char text[SHORT];
} note;

/* Longer texts than a note has. */
static const char *gather_long(lua_State *L, const char *text, int length,
                               const note *notes, int *counts, int *places)
{
    int64_t all = 0;
    for (int i = 0; i < ranks.size; i++) {
        counts[i] = (int)notes[i].length;
        places[i] = (int)all;
        all += (int64_t)notes[i].length;
        if (all > INT_MAX)
            luaL_error(L, "what the ranks tell each other is too long");
    }
    char *out = lua_newuserdatauv(L, (size_t)all + 1, 0);
    MPI_Allgatherv(text, length, MPI_BYTE, out, counts, places, MPI_BYTE,
                   ranks.calls);
    return out;
}

/* texts(text): those that all give, a list by rank + 1. */
static int share_texts(lua_State *L)
{
    size_t length, n = (size_t)ranks.size;
    const char *text = luaL_checklstring(L, 1, &length), *rest_of = NULL;
    note mine = {.length = length};
    note *notes = lua_newuserdatauv(L, n * sizeof *notes, 0);
    int *counts = lua_newuserdatauv(L, 2 * n * sizeof *counts, 0);
    int is_long = 0;
    memcpy(mine.text, text, length < SHORT ? length : SHORT);
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, notes, sizeof mine, MPI_BYTE,
                  ranks.calls);
    for (int i = 0; i < ranks.size; i++)
        is_long |= notes[i].length > SHORT;
    if (is_long)
        rest_of = gather_long(L, text, (int)length, notes, counts, counts + n);
    lua_createtable(L, ranks.size, 0);
    for (int i = 0; i < ranks.size; i++) {
        lua_pushlstring(
            L, is_long ? rest_of + counts[n + (size_t)i] : notes[i].text,
            (size_t)notes[i].length);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* The bytes of one rank's matrix, to all. */
static void broadcast(char *bytes, size_t n, int from)
{
    enum { PART = 1 << 30 };
    for (size_t at = 0; at < n; at += PART) {
        size_t count = n - at < PART ? n - at : PART;
        MPI_Bcast(bytes + at, (int)count, MPI_BYTE, from, ranks.calls);
    }
}

/* matrix(rank, A, dtype, rows, cols): that of the rank, whose A it is. */
static int share_matrix(lua_State *L)
{
    int from = (int)luaL_checkinteger(L, 1), mine = 0, all;
    gpu_matrix *a = from == ranks.rank ? lumat_check_matrix(L, 2) : NULL;
    gpu_dtype dtype;
    gpu_device *cpu;
    int64_t rows = luaL_checkinteger(L, 4), cols = luaL_checkinteger(L, 5);
    if (!gpu_dtype_find(luaL_checkstring(L, 3), &dtype))
        return luaL_argerror(L, 3, "is no type");
    lumat_try(L, gpu_open("cpu", &cpu));
    gpu_matrix *m = lumat_new_matrix(L);
    int place = lua_gettop(L);
    size_t bytes = 0;
    char *to = NULL;
    if (gpu_create(m, cpu, dtype, 2, rows, cols) == GPU_OK) {
        bytes = gpu_bytes(m);
        to = malloc(bytes + 1);
        mine = to != NULL;
    }
    if (mine && a) {
        const void *own = NULL;
        mine = gpu_bytes(a) == bytes &&
               (bytes == 0 || gpu_look_at_bytes(a, to, &own) == GPU_OK);
        if (mine && own && own != to)
            memcpy(to, own, bytes);
    }
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, ranks.calls);
    if (!all) {
        free(to);
        return luaL_error(L,
                          "no room for a matrix of %Ix%I on one of the "
                          "ranks",
                          (LUAI_UACINT)rows, (LUAI_UACINT)cols);
    }
    broadcast(to, bytes, from);
    gpu_status status = bytes == 0          ? GPU_OK
                        : gpu_is_complex(m) ? gpu_complex_upload(m, to)
                                            : gpu_upload(m, to);
    free(to);
    lumat_try(L, status);
    lumat_account(L, m);
    lua_settop(L, place);
    return 1;
}

/* compare(text): with --spmd-check, do all say the same, at the same line? */
static int compare_calls(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    compare(CALL, text, length);
    return 0;
}

/* alone(truth): is what this rank does now its own part of a call? */
static int set_alone(lua_State *L)
{
    ranks.is_alone = lua_toboolean(L, 1);
    lumat_share_files(ranks.is_alone ? NULL : &files);
    return 0;
}

static void open_exchange(lua_State *L)
{
    static const luaL_Reg functions[] = {{"texts", share_texts},
                                         {"matrix", share_matrix},
                                         {"compare", compare_calls},
                                         {"alone", set_alone},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    lua_pushboolean(L, ranks.seconds > 0);
    lua_setfield(L, -2, "is_checked");
    lumat_set_required(L, "exchange");
}

/* Pops a value: the script's global of that name, which is none of its own. */
static void set_global(lua_State *L, const char *name)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.base");
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
    lua_setglobal(L, name);
}

/* The state of a script, before it runs. */
static void begin(lua_State *L, double seconds)
{
    static const lumat_typing typing = {.read = read_together,
                                        .lend = do_nothing,
                                        .take_back = do_nothing,
                                        .is_interrupted = is_not_interrupted};
    ranks.L = L;
    ranks.seconds = seconds;
    files.writes = ranks.rank == 0;
    if (ranks.rank > 0)
        silence(L);
    lumat_share_files(&files);
    lumat_set_typing(&typing);
    lumat_open_grid(L);
    open_exchange(L);
    lumat_push_required(L, "spmd");
    lua_getfield(L, -1, "begin");
    lua_pushinteger(L, ranks.rank);
    lua_pushinteger(L, ranks.size);
    lua_call(L, 2, 1);
    set_global(L, "pairs");
    lua_pop(L, 1);
}

/* --- the program ---------------------------------------------------------- */

/* More were started than MPI knows of: by the launcher of another MPI. */
static int has_strange_launcher(void)
{
    static const char *const sizes[] = {"PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && ranks.size == 1; i++)
        if (getenv(sizes[i]) && atoi(getenv(sizes[i])) > 1)
            return 1;
    return 0;
}

int lumat_run_spmd(int argc, char **argv)
{
    static const repl_ranks ways = {begin};
    int threads;
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    if (!getenv("PMIX_RANK"))
        setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks.size);
    if (has_strange_launcher()) {
        fprintf(stderr, "lumat: --spmd: the launcher is not that of the MPI "
                        "that lumat-worker was built with (Open MPI)\n");
        MPI_Finalize();
        return 1;
    }
    size_t n = (size_t)ranks.size;
    ranks.said = calloc(n, sizeof *ranks.said);
    ranks.came = calloc(n, sizeof *ranks.came);
    ranks.group = calloc(n, sizeof *ranks.group);
    ranks.requests = calloc(n, sizeof *ranks.requests);
    if (!ranks.said || !ranks.came || !ranks.group || !ranks.requests) {
        fprintf(stderr, "lumat: not enough memory\n");
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    lumat_start_grid();
    MPI_Comm_dup(MPI_COMM_WORLD, &ranks.calls);
    MPI_Comm_dup(MPI_COMM_WORLD, &ranks.checks);
    share_flag();
    on_exit(leave, NULL);
    repl_set_speaker(speak);
    return repl_main(argc, argv, &ways);
}
