/* lumat, a GPU matrix calculator: the program, its options, its exit code;
 * alone or, with --spmd, as one of many processes that run one script. */
#include "entry.h"
#include "history.h"
#include "repl.h"
#include "terminal.h"
#include "viewer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { NO_DEVICE = 3 };

typedef struct program {
    repl_options options;
    const repl_ranks *ranks; /* of lumat-worker, or NULL */
    char **argv;
    int argc, code;
    char *restored; /* the file that :restart left, or NULL */
    char *restart;  /* and the one that it is to be started anew with */
} program;

/* The variable that tells the program started by :restart its file. */
static const char RESTORED[] = "LUMAT_RESTORED";

/* A script that opens a file must not get it as its standard output. Reading
 * and writing still fail as they do on what is closed: what a file in the place
 * of a missing one is opened for is the other thing. */
static void fill_standard_files(void)
{
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        if (fcntl(file, F_GETFD) < 0)
            open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static void do_nothing(int number)
{
    (void)number;
}

/* What the signal tells is an error of the call, too. A handler, unlike
 * SIG_IGN, does not pass on to programs that are started. */
static void outlive(int number)
{
    struct sigaction action = {.sa_handler = do_nothing,
                               .sa_flags = SA_RESTART},
                     old;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(number, &action, NULL);
}

static void on_time_limit(int number)
{
    static const char text[] =
        "lumat: the processor time is used up that ulimit -t allows\n";
    repl_typing_end();
    ssize_t told = write(STDERR_FILENO, text, sizeof text - 1);
    (void)told; /* nothing else can be done */
    signal(number, SIG_DFL);
    raise(number);
}

/* The system ends without a word what reaches the limit of processor time that
 * cannot be raised; a second earlier it can be said. */
static void announce_time_limit(void)
{
    struct rlimit limit;
    struct sigaction action = {.sa_handler = on_time_limit};
    sigemptyset(&action.sa_mask);
    if (getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return;
    if (limit.rlim_cur == limit.rlim_max && limit.rlim_cur > 1) {
        limit.rlim_cur--;
        setrlimit(RLIMIT_CPU, &limit);
    }
    sigaction(SIGXCPU, &action, NULL);
}

/* Strings as they are, other values as an echo shows them. */
static int print_value(lua_State *L, int index, const lumat_style *style)
{
    if (lua_type(L, index) == LUA_TSTRING)
        lua_pushvalue(L, index);
    else if (!lumat_push_shown(L, index, style)) {
        repl_report(L);
        return 1;
    }
    fwrite(lua_tostring(L, -1), 1, lua_rawlen(L, -1), stdout);
    fputc('\n', stdout);
    lua_pop(L, 1);
    return 0;
}

/* Each value on lines of its own. Returns the exit code. */
static int print_values(lua_State *L, int first)
{
    lumat_style style;
    int last = lua_gettop(L), code = 0;
    repl_script_style(&style);
    if (!lua_checkstack(L, LUA_MINSTACK)) {
        repl_complain("too many values to print");
        return 1;
    }
    for (int i = first; i <= last && code == 0; i++)
        code = print_value(L, i, &style);
    return code;
}

static int run_chunk(lua_State *L, const repl_chunk *chunk)
{
    int base = lua_gettop(L), code, status;
    repl_begin_time();
    status = repl_load_code(L, chunk->code, chunk->print);
    repl_end_time();
    if (status != LUA_OK)
        return repl_load_failed(L, status);
    code = repl_run(L, 0);
    repl_begin_time();
    if (code == 0 && chunk->print)
        code = print_values(L, base + 1);
    repl_end_time();
    lua_settop(L, base);
    return code;
}

static int run_chunks(lua_State *L, const repl_options *options)
{
    int code = 0;
    for (int i = 0; i < options->chunk_count && code == 0; i++)
        code = run_chunk(L, &options->chunks[i]);
    return code;
}

/* Runs a file, or standard input when path is NULL, with words as `...`. */
static int run_script(lua_State *L, const char *path, char **words, int count)
{
    int base = lua_gettop(L), code, status;
    repl_begin_time();
    status = repl_load_file(L, path);
    repl_end_time();
    if (status != LUA_OK)
        return repl_load_failed(L, status);
    if (!lua_checkstack(L, count + LUA_MINSTACK)) {
        repl_complain("too many arguments");
        return REPL_USAGE;
    }
    for (int i = 0; i < count; i++)
        lua_pushstring(L, words[i]);
    code = repl_run(L, count);
    lua_settop(L, base);
    return code;
}

/* The script the command line names, or a piped-in one when it names nothing
 * to do. */
static int run_main_script(lua_State *L, const program *p)
{
    const repl_options *o = &p->options;
    const char *path = NULL;
    if (o->script < p->argc) {
        if (!o->standard_input)
            path = p->argv[o->script];
        return run_script(L, path, p->argv + o->script + 1,
                          p->argc - o->script - 1);
    }
    if (o->chunk_count > 0 || o->interactive || isatty(STDIN_FILENO))
        return 0;
    return run_script(L, NULL, NULL, 0);
}

static int wants_prompt(const program *p)
{
    const repl_options *o = &p->options;
    if (o->interactive || p->restored != NULL)
        return 1;
    return o->script == p->argc && o->chunk_count == 0 && isatty(STDIN_FILENO);
}

/* --- the prompt's beginning ----------------------------------------------- */

/* A terminal, and no history yet where one will be. */
static int is_first_start(void)
{
    char path[PATH_MAX];
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return 0;
    if (!repl_user_path(path, sizeof path, "XDG_STATE_HOME", ".local/state",
                        "history"))
        return 0;
    return access(path, F_OK) != 0 && errno == ENOENT;
}

/* Three lines at a user's first start, one at later ones. */
static void print_banner(void)
{
    puts("lumat " LUMAT_VERSION "  Lua " LUA_VERSION_MAJOR "." LUA_VERSION_MINOR
         "  ? for help, :quit to leave");
    if (is_first_start())
        puts("A = rand(3, 3) makes a matrix, A shows it, A * A:inv() computes; "
             "TAB completes\n"
             "?name explains one, ??word searches, :help lists the commands; "
             "Ctrl-C stops");
}

/* The path of the user's init file, in path or the environment; NULL: none. The
 * file $LUMAT_INIT names has to be there, and may be a pipe; the one in its
 * usual place may be missing. */
static const char *init_path(char *path, size_t room)
{
    const char *named = getenv("LUMAT_INIT");
    if (named != NULL)
        return named[0] != '\0' ? named : NULL;
    if (!repl_user_path(path, room, "XDG_CONFIG_HOME", ".config", "init.lua"))
        return NULL;
    return access(path, F_OK) == 0 || errno != ENOENT ? path : NULL;
}

/* Runs it; whatever is wrong with it is only reported. */
static void run_init(lua_State *L)
{
    char room[PATH_MAX];
    const char *path = init_path(room, sizeof room);
    int base = lua_gettop(L), status;
    if (path == NULL)
        return;
    status =
        path == room ? repl_load_own_file(L, path) : repl_load_file(L, path);
    if (status == LUA_OK)
        repl_run(L, 0);
    else
        repl_load_failed(L, status);
    lua_settop(L, base);
}

static void start_prompt(lua_State *L, program *p)
{
    const repl_options *o = &p->options;
    outlive(SIGPIPE); /* of a helper of the user's that has ended */
    lumat_set_notes(repl_note);
    if (!o->quiet && p->restored == NULL)
        print_banner();
    fflush(stdout);
    if (!o->no_init)
        run_init(L);
    if (p->restored != NULL)
        repl_restore(L, p->restored);
    p->restart = repl_loop(L);
}

static int has_device(lua_State *L, const char *device)
{
    if (device == NULL || strcmp(device, "cpu") == 0)
        return 1;
    if (lumat_require_device(L))
        return 1;
    repl_report(L);
    return 0;
}

static void print_manual(lua_State *L, program *p)
{
    p->code = lumat_push_manual(L, p->options.manual) ? 0 : 1;
    if (p->code != 0)
        repl_report(L);
    else
        fwrite(lua_tostring(L, -1), 1, lua_rawlen(L, -1), stdout);
}

/* Everything, in protected mode. A script's failure does not keep the user
 * from a prompt that was asked for. */
static int run(lua_State *L)
{
    program *p = lua_touserdata(L, 1);
    lumat_style style;
    int prompt = wants_prompt(p);
    repl_script_style(&style);
    lumat_set_style(L, &style);
    lumat_set_screens(L, repl_view,
                      p->options.language.safe ? repl_page_safely : repl_page);
    repl_set_arg(L, p->argv, p->argc, p->options.script);
    if (p->options.manual != NULL) {
        print_manual(L, p);
        return 0;
    }
    if (!has_device(L, p->options.language.device) && p->restored == NULL) {
        p->code = NO_DEVICE;
        return 0;
    }
    if (prompt && p->options.language.device == NULL &&
        p->options.language.safe == LUMAT_UNSAFE)
        lumat_prepare_device();
    lumat_on_fallback(repl_note);
    if (p->ranks != NULL)
        p->ranks->begin(L, p->options.check_seconds);
    if (p->restored == NULL) /* what they made is among the variables */
        p->code = run_chunks(L, &p->options);
    if (p->code == 0 && p->restored == NULL)
        p->code = run_main_script(L, p);
    if (prompt) {
        start_prompt(L, p);
        p->code = 0;
    }
    return 0;
}

/* Where Readline looks first; a name of nothing there does no harm. */
static const char *find_inputrc(char *path, size_t size)
{
    const char *named = getenv("INPUTRC"), *home = getenv("HOME");
    if (named != NULL && named[0] != '\0')
        return named;
    snprintf(path, size, "%s/.inputrc", home != NULL ? home : "");
    return path;
}

/* What whoever started us left open is none of a script's business. */
static void close_others(void)
{
    enum { CLOSE_RANGE = 436 };
    if (syscall(CLOSE_RANGE, STDERR_FILENO + 1, ~0u, 0) == 0)
        return;
    for (int file = STDERR_FILENO + 1; file < 1024; file++)
        close(file);
}

/* The files that are read whatever --safe allows, and the history, which it
 * keeps open. */
static int fence(program *p, char *why, size_t size)
{
    static char init[PATH_MAX], inputrc[PATH_MAX + 16];
    static const char *readable[4];
    repl_options *o = &p->options;
    int count = 0;
    if (o->language.safe == LUMAT_UNSAFE)
        return 1;
    close_others();
    if (o->script < p->argc && !o->standard_input)
        readable[count++] = p->argv[o->script];
    if (wants_prompt(p)) {
        readable[count++] = find_inputrc(inputrc, sizeof inputrc);
        readable[count] = init_path(init, sizeof init);
        if (isatty(STDIN_FILENO))
            repl_history_hold();
    }
    o->language.readable = readable;
    return lumat_fence(&o->language, why, size);
}

static int run_program(program *p)
{
    char why[512];
    int code = 1;
    if (p->options.language.safe == LUMAT_UNSAFE)
        lumat_set_trial("/proc/self/exe");
    lua_State *L =
        fence(p, why, sizeof why)
            ? lumat_open(&p->options.language, why, sizeof why, &code)
            : NULL;
    repl_show_progress();
    lumat_set_warnings(repl_warn);
    if (p->options.seconds > 0)
        repl_limit_time(p->options.seconds);
    if (L == NULL) {
        repl_complain(why);
        return code;
    }
    lumat_describe(repl_command_rows, repl_option_rows());
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, p);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
        p->code = lumat_exit_code(L, -1);
        repl_report(L);
    }
    fflush(stdout);
    repl_begin_time(); /* finalisers are the script's */
    lumat_close(L);
    repl_end_time();
    return p->code;
}

static int is_finished;

/* Whether nobody reads standard output, a pipe, any more. */
static int is_closed_pipe(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

/* Why output was lost: what this write says, or no more than that one did not
 * work, when the next would. */
static const char *why_lost(int error)
{
    if (error == 0 && write(STDOUT_FILENO, "", 0) < 0)
        error = errno;
    return error != 0 ? strerror(error) : "an earlier write failed";
}

/* What a transcript lacks, too. */
static int finish_log(int code)
{
    const char *lacks = lumat_end_transcript();
    char message[PATH_MAX + 256];
    if (lacks == NULL)
        return code;
    snprintf(message, sizeof message, "log: %s", lacks);
    repl_complain(message);
    return code != 0 ? code : 1;
}

/* Output that was lost makes an exit code of 0 a lie. That nobody reads on
 * behind a pipe is not worth a word. */
static int finish(int code)
{
    char message[128];
    is_finished = 1;
    code = finish_log(code);
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    if (!is_closed_pipe()) {
        snprintf(message, sizeof message, "cannot write the output: %s",
                 why_lost(errno));
        repl_complain(message);
    }
    return code != 0 ? code : 1;
}

/* A script that calls os.exit comes by here alone. */
static void finish_early(void)
{
    if (!is_finished && finish(0) != 0)
        _exit(1);
}

static int act(program *p)
{
    if (!p->options.help && !p->options.version)
        return run_program(p);
    if (p->options.help)
        repl_print_usage();
    else
        puts("lumat " LUMAT_VERSION "  " LUA_RELEASE);
    return 0;
}

/* --- the stack -------------------------------------------------------------
 * Where it is limited to less (ulimit -s) than nested calls of Lua and the
 * numerical libraries take, the program runs on one of its own, and threads
 * have as much. A page below it is nobody's. */

enum { LEAST_STACK = 2 << 20, OWN_STACK = 8 << 20 };

static struct {
    ucontext_t outside, inside;
    program *p;
} stack;

static void act_inside(void)
{
    stack.p->code = act(stack.p);
}

static void enlarge_threads(void)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setstacksize(&attributes, LEAST_STACK);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}

/* The stack's lowest address, or NULL. */
static char *make_stack(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *room =
        mmap(NULL, OWN_STACK, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (room == MAP_FAILED || mprotect(room, page, PROT_NONE) != 0)
        return NULL;
    return room;
}

static int act_with_room(program *p)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= LEAST_STACK)
        return act(p);
    enlarge_threads();
    char *room = make_stack();
    if (room == NULL || getcontext(&stack.inside) != 0)
        return act(p);
    stack.p = p;
    stack.inside.uc_stack.ss_sp = room;
    stack.inside.uc_stack.ss_size = OWN_STACK;
    stack.inside.uc_link = &stack.outside;
    makecontext(&stack.inside, act_inside, 0);
    swapcontext(&stack.outside, &stack.inside);
    return p->code;
}

/* --- starting anew -------------------------------------------------------- */

/* With --safe the variable is as good as not there. */
static void take_restored(program *p)
{
    const char *path = getenv(RESTORED);
    if (path != NULL && p->options.language.safe == LUMAT_UNSAFE)
        p->restored = strdup(path);
    unsetenv(RESTORED);
}

/* The same program, options and all, in the place of this one; where that
 * cannot be, the code to end with. */
static int start_anew(const program *p)
{
    char message[PATH_MAX + 128];
    repl_typing_end();
    setenv(RESTORED, p->restart, 1);
    /* a file is read on where it was */
    fflush(stdin); /* cppcheck-suppress fflushOnInputStream */
    close_others();
    execv("/proc/self/exe", p->argv);
    snprintf(message, sizeof message,
             "cannot start anew: %s; the variables are in '%s', from where "
             "load_session brings them",
             strerror(errno), p->restart);
    repl_complain(message);
    return 1;
}

/* Whether the locale that the environment names is one of UTF-8. */
static int names_utf8(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *name = getenv(variables[i]);
        if (name != NULL && *name != '\0')
            return strcasestr(name, "utf-8") || strcasestr(name, "utf8");
    }
    return 0;
}

/* A locale that this machine lacks, as one an ssh client brings along from
 * its own, still tells what the terminal shows. */
static void choose_locale(void)
{
    if (setlocale(LC_CTYPE, "") == NULL && names_utf8())
        setlocale(LC_CTYPE, "C.UTF-8");
}

/* --- on all ranks --------------------------------------------------------- */

/* Said by the first of the processes that a launcher has started, as all of
 * them come by here; it ends all when one of them has left. */
static int refuse_ranks(const char *message)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                            "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *rank = getenv(variables[i]);
        if (rank != NULL && strcmp(rank, "0") != 0) {
            usleep(500000);
            return REPL_USAGE;
        }
    }
    return repl_refuse_options(message);
}

/* With --spmd, before anything is opened: lumat-worker in the place of this
 * program, as that alone has MPI. Returns 0 where nothing is to be done, or an
 * exit code. */
static int join_ranks(const program *p)
{
    const repl_options *o = &p->options;
    char path[PATH_MAX];
    if (!o->spmd || o->help || o->version || o->manual != NULL)
        return 0;
    if (o->language.safe != LUMAT_UNSAFE)
        return refuse_ranks("--spmd: --safe lets no processes talk");
    if (o->interactive || o->standard_input ||
        (o->script == p->argc && o->chunk_count == 0))
        return refuse_ranks("--spmd runs a script, on all processes of mpirun, "
                            "and has no prompt: lumat --spmd file.lua");
    if (p->ranks != NULL)
        return 0;
    if (!lumat_find_worker(path, sizeof path))
        return refuse_ranks("--spmd: there is no lumat-worker beside this "
                            "program: it was built without MPI and ScaLAPACK "
                            "(libscalapack-openmpi-dev, then make)");
    char **words = calloc((size_t)p->argc + 3, sizeof *words);
    if (words == NULL)
        return refuse_ranks("--spmd: not enough memory");
    setenv("OMP_NUM_THREADS", "1", 0);      /* ranks share the cores */
    setenv("OPENBLAS_NUM_THREADS", "1", 0); /* which BLAS reads at its start */
    words[0] = path;
    words[1] = (char *)REPL_AS_RANK;
    memcpy(words + 2, p->argv, (size_t)p->argc * sizeof *words);
    execv(path, words);
    free(words);
    return refuse_ranks("--spmd: lumat-worker cannot be started");
}

int repl_main(int argc, char **argv, const repl_ranks *ranks)
{
    program p = {.argv = argv, .argc = argc, .ranks = ranks};
    if (argc == 2 && lumat_is_trial(argv[1]))
        return lumat_try_libraries();
    if (lumat_is_pool_process(argc, argv))
        return lumat_be_pool_process(argv);
    fill_standard_files();
    outlive(SIGXFSZ); /* ulimit -f */
    announce_time_limit();
    atexit(finish_early);
    choose_locale();
    p.code = repl_parse_options(argc, argv, &p.options);
    lumat_settings_now()->colour = p.options.colour;
    take_restored(&p);
    if (p.code == 0)
        p.code = join_ranks(&p);
    if (ranks != NULL && p.options.language.device == NULL)
        p.options.language.device = "cpu";
    if (p.code == 0)
        p.code = act_with_room(&p);
    free(p.options.chunks);
    free(p.restored);
    p.code = finish(p.code);
    if (p.restart != NULL)
        p.code = start_anew(&p);
    free(p.restart);
    return p.code;
}
