/* Loading the system's BLAS and LAPACK.
 *
 * A library can end the process while it is loaded:
 * OpenBLAS tries for ever to get the memory it works in, the libraries below
 * it leave the program when they get none, and kernels chosen for another
 * processor die of their first instruction. So it is tried by a process of its
 * own first; what it needs for good is asked for before it asks, and taken
 * while it is there. */
#include "blas.h"
#include "cores.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

gpu_cpu_blas_functions gpu_cpu_blas;

enum {
    MISSING = 3, /* what is wrong, and what a trial returns; 0: nothing */
    UNUSABLE,
    NO_MEMORY,
    WRONG,
    MOST_BUFFERS = 256
};

/* Address space of the library and those below it, and of each thread's
 * buffer: OpenBLAS takes 128 MiB. */
static const size_t LIBRARY = (size_t)256 << 20, BUFFER = (size_t)129 << 20;
static const double LONGEST = 5; /* seconds a trial may take */

static const char *trial_program;
static void *lapack; /* the library, where it is loaded */

/* --- the environment it is loaded in -------------------------------------- */

/* OpenBLAS chooses its kernels by the processor's model number; a model newer
 * than itself gets those for SSE, at a quarter of the speed. So it is told
 * the instruction sets, unless the user has told it something. */
static const char *processor(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "Haswell";
#endif
    return "";
}

/* One thread for it: those of its own, and libgomp's, wait by spinning. The
 * processor it is told unless the user has told it one. */
static char settings[][40] = {"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1",
                              "OPENBLAS_CORETYPE="};
enum { PROCESSOR = 2, SETTINGS };

static char *find_variable(const char *setting)
{
    size_t length = strcspn(setting, "=") + 1;
    for (char **v = environ; v && *v; v++)
        if (strncmp(*v, setting, length) == 0)
            return *v;
    return NULL;
}

/* Programs that are started later are not meant. */
static void put_back_environment(char *old[SETTINGS])
{
    char name[sizeof settings[0]];
    for (int i = 0; i < SETTINGS; i++) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(settings[i], "="),
                 settings[i]);
        if (old[i])
            putenv(old[i]);
        else
            unsetenv(name);
    }
}

/* old gets what to put back. Returns 0 where there is no memory for it. */
static int set_environment(char *old[SETTINGS])
{
    int failed = 0;
    char *equals = strchr(settings[PROCESSOR], '=');
    snprintf(equals + 1, 16, "%s", processor());
    for (int i = 0; i < SETTINGS; i++)
        old[i] = find_variable(settings[i]);
    for (int i = 0; i < SETTINGS && !failed; i++)
        if (i != PROCESSOR || (!old[i] && equals[1]))
            failed = putenv(settings[i]);
    if (failed)
        put_back_environment(old);
    return !failed;
}

/* --- memory --------------------------------------------------------------- */

int gpu_cpu_has_room(size_t bytes)
{
    void *room = mmap(NULL, bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return 0;
    munmap(room, bytes);
    return 1;
}

static int buffers_wanted(void)
{
    int threads = gpu_cpu_threads() + GPU_CPU_APART;
    return threads < MOST_BUFFERS ? threads : MOST_BUFFERS;
}

/* --- the library ---------------------------------------------------------- */

/* What the last attempt found wrong, for a message. */
static char trouble[256];

static void *find(void *library, const char *name, void *slot)
{
    void *symbol = dlsym(library, name);
    *(void **)slot = symbol;
    return symbol;
}

static int find_functions(void *library, gpu_cpu_blas_functions *f)
{
    return find(library, "cblas_sgemm", &f->sgemm) &&
           find(library, "cblas_dgemm", &f->dgemm) &&
           find(library, "cblas_sgemv", &f->sgemv) &&
           find(library, "cblas_dgemv", &f->dgemv) &&
           find(library, "cblas_sdot", &f->sdot) &&
           find(library, "cblas_ddot", &f->ddot);
}

/* OpenBLAS gives each call a buffer, and keeps it for the next; for the first
 * it asks for ever. So each thread's is asked for here. */
static int take_buffers(void *library, int count)
{
    void *(*take)(int), *buffers[MOST_BUFFERS];
    void (*leave)(void *);
    if (!find(library, "blas_memory_alloc", &take) ||
        !find(library, "blas_memory_free", &leave))
        return 0;
    for (int i = 0; i < count; i++)
        buffers[i] = take(0);
    for (int i = 0; i < count; i++)
        leave(buffers[i]);
    return 1;
}

int gpu_take_blas_memory(void)
{
    return gpu_cpu_has_room(2 * BUFFER) && (take_buffers(RTLD_DEFAULT, 1), 1);
}

/* OpenBLAS built for one thread shares its buffers without a lock. libgomp
 * counts threads for each of ours: it must have read that there is one. */
static int may_be_shared(void *library)
{
    int (*parallel)(void), (*most)(void);
    if (!find(library, "openblas_get_parallel", &parallel))
        return 1; /* another library */
    if (parallel() == 0)
        return 0;
    if (find(library, "omp_get_max_threads", &most) && most() > 1)
        return 0;
    return take_buffers(library, buffers_wanted());
}

static void *open_library(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libblas.so.3"};
    void *library = NULL;
    const char *why = NULL;
    for (int i = 0; i < 2 && !library; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        why = library ? NULL : dlerror();
        if (why && !strstr(why, "No such file"))
            break;
    }
    snprintf(trouble, sizeof trouble, "%s", why ? why : "");
    return library;
}

/* What the loader's message says, of which there is no number. */
static int judge_trouble(void)
{
    if (strstr(trouble, "No such file"))
        return MISSING;
    if (strstr(trouble, "memory") || strstr(trouble, "cannot create"))
        return NO_MEMORY;
    return UNUSABLE;
}

/* 0, or why not. */
static int load(void)
{
    gpu_cpu_blas_functions found = {0};
    char *old[SETTINGS];
    void (*set_threads)(int);
    if (!gpu_cpu_has_room(LIBRARY + BUFFER * (size_t)(buffers_wanted() + 1)))
        return NO_MEMORY;
    if (!set_environment(old))
        return NO_MEMORY;
    void *library = open_library();
    put_back_environment(old);
    if (!library)
        return judge_trouble();
    if (!find_functions(library, &found)) {
        snprintf(trouble, sizeof trouble, "it lacks functions of CBLAS");
        dlclose(library);
        return UNUSABLE;
    }
    if (find(library, "openblas_set_num_threads", &set_threads))
        set_threads(1);
    found.is_shared = may_be_shared(library);
    gpu_cpu_blas = found;
    lapack = library;
    return 0;
}

static int is_loaded(void)
{
    return gpu_cpu_blas.sgemm != NULL;
}

/* --- the trial ------------------------------------------------------------ */

void gpu_set_trial(const char *program)
{
    trial_program = program;
}

/* Each thread's first call is made with what the first one's has. */
int gpu_try_libraries(void)
{
    enum { SIDE = 40 };
    static double a[SIDE * SIDE], b[SIDE * SIDE];
    int status = load();
    if (status != 0)
        return status;
    for (int i = 0; i < SIDE * SIDE; i++)
        a[i] = 1;
    gpu_cpu_blas.dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE,
                       SIDE, 1, a, SIDE, a, SIDE, 0, b, SIDE);
    return b[0] == SIDE && b[SIDE * SIDE - 1] == SIDE ? 0 : WRONG;
}

/* Waits for the child, which is ended when it takes too long or the user has
 * enough. Returns 1 with its status. */
static int wait_for(pid_t child, int *status)
{
    double start = gpu_now();
    while (waitpid(child, status, WNOHANG) == 0) {
        struct timespec pause = {0, 200000};
        if (gpu_now() - start > LONGEST || gpu_cpu_interrupted()) {
            kill(child, SIGKILL);
            waitpid(child, status, 0);
            return 0;
        }
        nanosleep(&pause, NULL);
    }
    return 1;
}

/* What the child writes is not for the user; its signals are the usual ones.
 * Returns an error number. */
static int start_trial(pid_t *child)
{
    char word[] = GPU_TRIAL, name[] = "lumat", *words[] = {name, word, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    sigemptyset(&none);
    int failed = posix_spawn_file_actions_init(&files);
    if (failed)
        return failed;
    failed = posix_spawnattr_init(&how);
    if (!failed) {
        posix_spawnattr_setsigmask(&how, &none);
        posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
        for (int i = 0; i < 3 && !failed; i++)
            failed = posix_spawn_file_actions_addopen(
                &files, i, "/dev/null", i ? O_WRONLY : O_RDONLY, 0);
        if (!failed)
            failed =
                posix_spawn(child, trial_program, &files, &how, words, environ);
        posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

static int fail_trial(const char *how, const char *why)
{
    snprintf(trouble, sizeof trouble, "%s%s when a process tried it", how, why);
    return UNUSABLE;
}

/* 0, or what keeps this process from loading it. */
static int try_apart(void)
{
    pid_t child;
    int status = 0;
    if (!trial_program)
        return 0;
    int failed = start_trial(&child);
    if (failed == ENOMEM || failed == EAGAIN)
        return NO_MEMORY;
    if (failed) /* where no program can be started, it is loaded untried */
        return 0;
    if (!wait_for(child, &status))
        return fail_trial("it hung", "");
    if (WIFSIGNALED(status))
        return fail_trial("it died: ", strsignal(WTERMSIG(status)));
    switch (WEXITSTATUS(status)) {
    case 0:
    case MISSING:
    case UNUSABLE: /* which loading it here tells better */
        return 0;
    case NO_MEMORY:
        return NO_MEMORY;
    case WRONG:
        return fail_trial("it multiplied wrongly", "");
    default:
        return fail_trial("it left the program", "");
    }
}

gpu_status gpu_cpu_load_blas(const char *who, const char *without)
{
    if (is_loaded())
        return GPU_OK;
    trouble[0] = '\0';
    int status = try_apart();
    if (gpu_cpu_interrupted())
        return gpu_cpu_stop(GPU_INTERRUPTED);
    if (status == 0)
        status = load();
    if (status == 0)
        return GPU_OK;
    if (status == NO_MEMORY)
        return gpu_cpu_host->fail(GPU_MEMORY,
                                  "%s: out of memory to load BLAS with; %s",
                                  who, without);
    if (status == MISSING)
        return gpu_cpu_host->fail(GPU_UNSUPPORTED,
                                  "%s: there is no BLAS library here: install "
                                  "libopenblas0-pthread; %s",
                                  who, without);
    return gpu_cpu_host->fail(GPU_UNSUPPORTED,
                              "%s: BLAS cannot be used: %s; %s", who, trouble,
                              without);
}

/* Other libraries than OpenBLAS come without LAPACK, which stands beside them.
 */
void *gpu_cpu_find_lapack(const char *name)
{
    static void *beside;
    void *symbol = lapack ? dlsym(lapack, name) : NULL;
    if (symbol)
        return symbol;
    if (!beside)
        beside = dlopen("liblapack.so.3", RTLD_NOW | RTLD_LOCAL);
    return beside ? dlsym(beside, name) : NULL;
}
