/* Links between the prompt and the processes of a pool: stream sockets, of this
 * machine or by TCP, that carry messages, each a word, a text and, behind it,
 * the elements of a matrix, which go from its memory and into that of another;
 * or single bytes. Who comes by TCP shows a token before anything is read. */
#include "pool.h"

#include "cancellation.h"
#include "complex_numbers.h"
#include "value.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/futex.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char link_type[] = "lumat.link", listener_type[] = "lumat.door";

/* What every message begins with. */
typedef struct head {
    uint32_t mark;
    uint32_t kind;       /* up to those who talk */
    uint64_t text, data; /* bytes of each */
} head;

enum { MARK = 0x6c6d7431 };

/* Longer texts are no messages of ours. */
#define MOST_TEXT ((lua_Integer)1 << 30)

enum { KEPT = 4096 };

typedef struct link_end {
    int fd;           /* -1: closed */
    int is_timed;     /* a read of it ends after a while: see await_bytes */
    uint64_t waiting; /* bytes of a message's matrix that were not taken yet */
    double patience;  /* seconds in the midst of a message in which no byte
                       * goes, after which the other end is gone; 0: no end */
    uint32_t *rings;  /* of the bell that is rung for a long message, or NULL */
    uint32_t *hears;  /* of the bell at which it is waited, or NULL */
    size_t from, to;  /* what came with other bytes, in kept */
    char kept[KEPT];
} link_end;

/* Hexadecimal digits of a token, and who has not shown them all yet. */
enum { TOKEN = 32, MOST_STRANGERS = 64 };

typedef struct stranger {
    int fd, got;
    double end; /* when it is sent away */
    char shown[TOKEN];
} stranger;

typedef struct door {
    int fd; /* -1: closed */
    int is_tcp, count, refused;
    char folder[64], log[80], token[TOKEN + 1];
    struct sockaddr_un at;
    stranger strangers[MOST_STRANGERS];
} door;

/* --- bytes ---------------------------------------------------------------- */

/* Waits until the link takes or has bytes: 0 where it did not for as long as it
 * has patience. Only time in which this process itself ran counts. */
static int await(const link_end *l, short events)
{
    for (double waited = 0; l->patience <= 0 || waited < l->patience;) {
        struct pollfd p = {.fd = l->fd, .events = events};
        int found = poll(&p, 1, l->patience > 0 ? 100 : -1);
        if (found > 0)
            return 1;
        if (found < 0 && errno != EINTR)
            return 0;
        if (found == 0)
            waited += 0.1;
    }
    return 0;
}

/* Had a call that did nothing just nothing to do yet? */
static int may_go_on(void)
{
    return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
}

/* May it be made again, after a wait where there was nothing to do? */
static int goes_on(const link_end *l, short events)
{
    return errno == EINTR || (may_go_on() && await(l, events));
}

/* Leaves out the first n bytes. */
static void skip_pieces(struct msghdr *m, size_t n)
{
    while (m->msg_iovlen > 0 && n >= m->msg_iov->iov_len) {
        n -= m->msg_iov->iov_len;
        m->msg_iov++;
        m->msg_iovlen--;
    }
    if (m->msg_iovlen > 0) {
        m->msg_iov->iov_base = (char *)m->msg_iov->iov_base + n;
        m->msg_iov->iov_len -= n;
    }
}

/* Sends all of the pieces: a small message by one call, so that its reader
 * wakes once. 0: the other end is gone, or silent. */
static int send_all(const link_end *l, struct iovec *pieces, size_t count)
{
    struct msghdr m = {.msg_iov = pieces, .msg_iovlen = count};
    skip_pieces(&m, 0);
    while (m.msg_iovlen > 0) {
        ssize_t sent = sendmsg(l->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && goes_on(l, POLLOUT))
            continue;
        if (sent <= 0)
            return 0;
        skip_pieces(&m, (size_t)sent);
    }
    return 1;
}

/* Reads what is there into `kept`, which is empty; as recv. */
static ssize_t keep(link_end *l, int flags)
{
    ssize_t got = recv(l->fd, l->kept, KEPT, flags);
    l->from = 0;
    l->to = got > 0 ? (size_t)got : 0;
    return got;
}

/* Receives all of them. 0: the other end is gone, or silent. */
static int receive_all(link_end *l, void *bytes, size_t n)
{
    char *to = bytes;
    while (n > 0) {
        size_t had = l->to - l->from, some = had < n ? had : n;
        ssize_t got;
        memcpy(to, l->kept + l->from, some);
        l->from += some;
        to += some;
        n -= some;
        if (n == 0)
            break;
        got =
            n < KEPT ? keep(l, MSG_DONTWAIT) : recv(l->fd, to, n, MSG_DONTWAIT);
        if (got < 0 && goes_on(l, POLLIN))
            continue;
        if (got <= 0)
            return 0;
        if (got > 0 && n >= KEPT) {
            to += got;
            n -= (size_t)got;
        }
    }
    return 1;
}

/* What nobody took of the last message. */
static int skip_data(link_end *l)
{
    char some[16384];
    while (l->waiting > 0) {
        size_t n = l->waiting < sizeof some ? (size_t)l->waiting : sizeof some;
        if (!receive_all(l, some, n))
            return 0;
        l->waiting -= n;
    }
    return 1;
}

/* --- bells ---------------------------------------------------------------- */

/* A page of this machine that the prompt and its processes share: how often it
 * was rung. Who waits for a message of the prompt sleeps there, and one call of
 * the system wakes all, where each message would wake its own reader. */
typedef struct bell {
    uint32_t *rings;
    char path[112]; /* "": it has no name any more */
} bell;

static const char bell_type[] = "lumat.bell";
enum { PAGE = 4096 };

static void ring(uint32_t *rings)
{
    __atomic_fetch_add(rings, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Until it is rung, a second or so. */
static void sleep_at(uint32_t *rings, uint32_t heard)
{
    static const struct timespec second = {1, 0};
    syscall(SYS_futex, rings, FUTEX_WAIT, heard, &second, NULL, 0);
}

static int hide_bell(lua_State *L)
{
    bell *b = luaL_checkudata(L, 1, bell_type);
    if (b->path[0])
        unlink(b->path);
    b->path[0] = '\0';
    return 0;
}

static int close_bell(lua_State *L)
{
    bell *b = luaL_checkudata(L, 1, bell_type);
    hide_bell(L);
    if (b->rings)
        munmap(b->rings, PAGE);
    b->rings = NULL;
    return 0;
}

static int ring_bell(lua_State *L)
{
    ring(((bell *)luaL_checkudata(L, 1, bell_type))->rings);
    return 0;
}

/* bell(path [, is_new]): the one at that path, or nil. Who makes it hides it,
 * by bell:hide(), when all have it. */
static int open_bell(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    int is_new = lua_toboolean(L, 2);
    bell *b = lua_newuserdatauv(L, sizeof *b, 0);
    *b = (bell){NULL, ""};
    luaL_setmetatable(L, bell_type);
    if (strlen(path) >= sizeof b->path)
        return 0;
    int fd = open(
        path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (is_new ? O_CREAT | O_EXCL : 0),
        0600);
    if (fd >= 0 && is_new)
        strcpy(b->path, path);
    void *page = MAP_FAILED;
    if (fd >= 0 && (!is_new || ftruncate(fd, PAGE) == 0))
        page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (page == MAP_FAILED)
        return 0;
    b->rings = page;
    return 1;
}

/* --- links ---------------------------------------------------------------- */

static link_end *check_link(lua_State *L)
{
    return luaL_checkudata(L, 1, link_type);
}

static void push_link(lua_State *L, int fd)
{
    link_end *l = lua_newuserdatauv(L, sizeof *l, 1); /* its bell */
    *l = (link_end){.fd = fd};
    luaL_setmetatable(L, link_type);
}

static int close_link(lua_State *L)
{
    link_end *l = check_link(L);
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    l->waiting = 0;
    return 0;
}

/* false, with the link closed: who was at the other end is gone. */
static int is_gone(lua_State *L)
{
    close_link(L);
    lua_pushboolean(L, 0);
    return 1;
}

/* What has more bytes waits for its reader, who has to be awake then. */
#define AT_ONCE 16384

static int send_waking(const link_end *l, struct iovec *pieces, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += pieces[i].iov_len;
    if (!l->rings || bytes <= AT_ONCE)
        return send_all(l, pieces, count);
    if (!send_all(l, pieces, 1))
        return 0;
    ring(l->rings);
    return send_all(l, pieces + 1, count - 1);
}

/* link:send(kind, text [, A]): true, or false where the other end is gone. The
 * elements of A go row by row. */
static int send_message(lua_State *L)
{
    link_end *l = check_link(L);
    size_t length;
    const char *text = luaL_checklstring(L, 3, &length);
    gpu_matrix *m = lua_isnoneornil(L, 4) ? NULL : lumat_check_matrix(L, 4);
    head h = {.mark = MARK,
              .kind = (uint32_t)luaL_checkinteger(L, 2),
              .text = length,
              .data = m ? gpu_bytes(m) : 0};
    const void *bytes = NULL;
    if (h.data > 0) {
        void *room = lua_newuserdatauv(
            L, gpu_is_contiguous(m) && gpu_own_bytes(m) ? 0 : h.data, 0);
        lumat_try(L, gpu_look_at_bytes(m, room, &bytes));
    }
    struct iovec pieces[] = {{&h, sizeof h},
                             {(void *)text, length},
                             {(void *)bytes, (size_t)h.data}};
    if (l->fd < 0 || !send_waking(l, pieces, 3))
        return is_gone(L);
    lua_pushboolean(L, 1);
    return 1;
}

/* Is there something to be read within so many seconds (below 0: whenever), or
 * nothing ever? A call that the user stops ends the wait. */
static int is_ready(lua_State *L, int fd, double seconds)
{
    double end = lumat_now() + seconds;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        double left = seconds < 0 ? 1 : end - lumat_now();
        int most = left >= 1 ? 1000 : left > 0 ? (int)(left * 1e3) + 1 : 0;
        if (poll(&p, 1, most) > 0)
            return 1;
        if (gpu_is_interrupted())
            lumat_raise_interrupted(L);
        if (seconds >= 0 && lumat_now() >= end)
            return 0;
    }
}

/* Seconds in which what comes soon is looked for before this process sleeps:
 * who wakes a sleeping one pays more than the message costs. The cores go to
 * whoever has something to do; where that is somebody who keeps one for long,
 * this process had better sleep, as one that wakes goes first. */
#define SOON 100e-6
#define KEPT_LONG 500e-6
#define SLEEPS 1.0

/* As keep, which is tried as long as nothing has come soon. */
static ssize_t keep_soon(link_end *l)
{
    static double awake_again; /* when it may look instead of sleep */
    double now = lumat_now(), end = now < awake_again ? now : now + SOON;
    for (;;) {
        ssize_t got = keep(l, MSG_DONTWAIT);
        double before = now;
        if (got >= 0 || !may_go_on() || now >= end)
            return got;
        sched_yield();
        now = lumat_now();
        if (now - before > KEPT_LONG)
            awake_again = now + SLEEPS;
    }
}

/* As keep, after a sleep at the bell where nothing is there. */
static ssize_t keep_at_bell(link_end *l)
{
    uint32_t heard = __atomic_load_n(l->hears, __ATOMIC_SEQ_CST);
    ssize_t got = keep(l, MSG_DONTWAIT);
    if (got >= 0 || !may_go_on())
        return got;
    sleep_at(l->hears, heard);
    return keep(l, MSG_DONTWAIT);
}

/* Waits for bytes, about a second: 1 where there are some, or never will be;
 * 0: not yet. The call of the system that waits is the one that reads. A call
 * that the user stops ends the wait. */
static int await_bytes(lua_State *L, link_end *l)
{
    static const struct timeval second = {1, 0};
    if (l->to > l->from)
        return 1;
    if (!l->is_timed && !l->hears)
        setsockopt(l->fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    l->is_timed = 1;
    ssize_t got = keep_soon(l);
    if (got < 0 && may_go_on())
        got = l->hears ? keep_at_bell(l) : keep(l, 0);
    int is_over = got == 0 || (got < 0 && !may_go_on());
    if (got < 0 && gpu_is_interrupted())
        lumat_raise_interrupted(L);
    return got > 0 || is_over;
}

/* The same whenever they come, or within so many seconds from 0 on. */
static int await_message(lua_State *L, link_end *l, double seconds)
{
    if (seconds >= 0)
        return l->to > l->from || is_ready(L, l->fd, seconds);
    while (!await_bytes(L, l))
        ;
    return 1;
}

/* link:receive([seconds [, most]]): kind, text and the bytes of the matrix that
 * goes with it, to be taken by link:matrix; nil where nothing came in that
 * time, false where the other end is gone, or says more than `most` bytes. */
static int receive_message(lua_State *L)
{
    link_end *l = check_link(L);
    head h;
    double seconds = luaL_optnumber(L, 2, -1);
    uint64_t most = (uint64_t)luaL_optinteger(L, 3, MOST_TEXT);
    if (l->fd < 0 || !skip_data(l))
        return is_gone(L);
    if (!await_message(L, l, seconds)) {
        lua_pushnil(L);
        return 1;
    }
    if (!receive_all(l, &h, sizeof h) || h.mark != MARK || h.text > most)
        return is_gone(L);
    luaL_Buffer b;
    lua_pushinteger(L, h.kind);
    char *text = luaL_buffinitsize(L, &b, (size_t)h.text);
    if (!receive_all(l, text, (size_t)h.text))
        return is_gone(L);
    luaL_pushresultsize(&b, (size_t)h.text);
    l->waiting = h.data;
    lua_pushinteger(L, (lua_Integer)h.data);
    return 3;
}

/* link:matrix(dtype, rows, cols): of the message that was received last. */
static int take_matrix(lua_State *L)
{
    link_end *l = check_link(L);
    gpu_dtype dtype;
    gpu_device *cpu;
    int64_t rows = luaL_checkinteger(L, 3), cols = luaL_checkinteger(L, 4);
    if (!gpu_dtype_find(luaL_checkstring(L, 2), &dtype))
        return luaL_argerror(L, 2, "is no type");
    lumat_try(L, gpu_open("cpu", &cpu));
    gpu_matrix *m = lumat_new_matrix(L);
    int place = lua_gettop(L);
    lumat_try(L, gpu_create(m, cpu, dtype, 2, rows, cols));
    lumat_account(L, m);
    if (gpu_bytes(m) != l->waiting)
        return luaL_error(L, "%I bytes came for a matrix of %I",
                          (LUAI_UACINT)l->waiting, (LUAI_UACINT)gpu_bytes(m));
    if (l->waiting == 0)
        return 1;
    void *own = gpu_own_bytes(m), *to = own;
    if (!own)
        to = lua_newuserdatauv(L, (size_t)l->waiting, 0);
    if (!receive_all(l, to, (size_t)l->waiting))
        return is_gone(L);
    l->waiting = 0;
    if (!own)
        lumat_try(L, gpu_is_complex(m) ? gpu_complex_upload(m, to)
                                       : gpu_upload(m, to));
    lua_settop(L, place);
    return 1;
}

static int is_open(lua_State *L)
{
    lua_pushboolean(L, check_link(L)->fd >= 0);
    return 1;
}

/* link:descriptor(): for who waits for several. */
static int descriptor(lua_State *L)
{
    lua_pushinteger(L, check_link(L)->fd);
    return 1;
}

/* link:rings(bell): it is rung for what this link sends, by bell:ring(), or
 * here where it is long. */
static int set_rings(lua_State *L)
{
    check_link(L)->rings = ((bell *)luaL_checkudata(L, 2, bell_type))->rings;
    lua_setiuservalue(L, 1, 1);
    return 0;
}

/* link:hears(bell): it is rung for what comes. */
static int set_hears(lua_State *L)
{
    check_link(L)->hears = ((bell *)luaL_checkudata(L, 2, bell_type))->rings;
    lua_setiuservalue(L, 1, 1);
    return 0;
}

/* link:patience(seconds): from now on; see link_end. */
static int set_patience(lua_State *L)
{
    check_link(L)->patience = luaL_checknumber(L, 2);
    return 0;
}

/* link:signal(byte): sends one that is no message, where there is room for it;
 * false where the other end is gone. */
static int signal_byte(lua_State *L)
{
    link_end *l = check_link(L);
    const char *byte = luaL_checkstring(L, 2);
    ssize_t sent = send(l->fd, byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && !may_go_on())
        return is_gone(L);
    lua_pushboolean(L, 1);
    return 1;
}

/* link:heard(): how many such bytes came since; false where the other end is
 * gone. */
static int heard(lua_State *L)
{
    link_end *l = check_link(L);
    char bytes[256];
    ssize_t got = recv(l->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && !may_go_on()))
        return is_gone(L);
    lua_pushinteger(L, got > 0 ? got : 0);
    return 1;
}

/* --- who waits for links -------------------------------------------------- */

static void write_token(lua_State *L, char out[TOKEN + 1])
{
    unsigned char bytes[TOKEN / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        luaL_error(L, "the system gives no random numbers");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* Nobody comes in any more. */
static void shut(door *d)
{
    for (int i = 0; i < d->count; i++)
        close(d->strangers[i].fd);
    d->count = 0;
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
    if (!d->is_tcp)
        unlink(d->at.sun_path);
}

/* door:shut(): the log stays. */
static int shut_door(lua_State *L)
{
    shut(luaL_checkudata(L, 1, listener_type));
    return 0;
}

static int close_door(lua_State *L)
{
    door *d = luaL_checkudata(L, 1, listener_type);
    shut(d);
    if (d->folder[0]) {
        unlink(d->log);
        rmdir(d->folder);
    }
    d->folder[0] = '\0';
    return 0;
}

/* A folder of its own, which nobody else may enter, for socket and log. */
static void make_folder(lua_State *L, door *d)
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    if (!base || *base != '/' || strlen(base) > 40)
        base = "/tmp";
    snprintf(d->folder, sizeof d->folder, "%s/lumat-XXXXXX", base);
    if (!mkdtemp(d->folder)) {
        d->folder[0] = '\0';
        luaL_error(L, "no folder for a socket in %s: %s", base,
                   strerror(errno));
    }
    snprintf(d->at.sun_path, sizeof d->at.sun_path, "%s/pool", d->folder);
    snprintf(d->log, sizeof d->log, "%s/log", d->folder);
}

static door *new_door(lua_State *L)
{
    door *d = lua_newuserdatauv(L, sizeof *d, 0);
    *d = (door){.fd = -1, .at = {.sun_family = AF_UNIX}};
    luaL_setmetatable(L, listener_type);
    make_folder(L, d);
    return d;
}

/* listen(): what accepts links at a socket of this machine, the socket's path,
 * and that of a log beside it, which goes with the door. */
static int listen_here(lua_State *L)
{
    door *d = new_door(L);
    d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (d->fd < 0 ||
        bind(d->fd, (struct sockaddr *)&d->at, sizeof d->at) != 0 ||
        chmod(d->at.sun_path, 0600) != 0 || listen(d->fd, 4096) != 0)
        return luaL_error(L, "no socket at %s: %s", d->at.sun_path,
                          strerror(errno));
    lua_pushstring(L, d->at.sun_path);
    lua_pushstring(L, d->log);
    return 3;
}

/* A socket that listens at any address of this machine, or at 127.0.0.1 alone:
 * its port, or -1. */
static int listen_tcp(door *d, int is_local)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_storage got;
    socklen_t size = sizeof got;
    int no = 0;
    four.sin_addr.s_addr = htonl(is_local ? INADDR_LOOPBACK : INADDR_ANY);
    if (!is_local) {
        d->fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        setsockopt(d->fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    }
    if (d->fd < 0 || bind(d->fd, (struct sockaddr *)&any, sizeof any) != 0) {
        if (d->fd >= 0)
            close(d->fd);
        d->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (d->fd < 0 ||
            bind(d->fd, (struct sockaddr *)&four, sizeof four) != 0)
            return -1;
    }
    if (listen(d->fd, 4096) != 0 ||
        getsockname(d->fd, (struct sockaddr *)&got, &size) != 0)
        return -1;
    return ntohs(got.ss_family == AF_INET6
                     ? ((struct sockaddr_in6 *)&got)->sin6_port
                     : ((struct sockaddr_in *)&got)->sin_port);
}

/* Adds the addresses of this machine that others may reach, "a,b". */
static void add_addresses(luaL_Buffer *b)
{
    struct ifaddrs *all, *i;
    char text[NI_MAXHOST];
    int count = 0;
    if (getifaddrs(&all) != 0)
        return;
    for (i = all; i; i = i->ifa_next) {
        const struct sockaddr *at = i->ifa_addr;
        if (!at || (i->ifa_flags & IFF_LOOPBACK) || !(i->ifa_flags & IFF_UP) ||
            (at->sa_family != AF_INET && at->sa_family != AF_INET6))
            continue;
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)at;
        if (at->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
            continue;
        if (getnameinfo(at,
                        at->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                 : sizeof(struct sockaddr_in6),
                        text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0)
            continue;
        if (count++ > 0)
            luaL_addchar(b, ',');
        luaL_addstring(b, text);
    }
    freeifaddrs(all);
    if (count == 0)
        luaL_addstring(b, "127.0.0.1");
}

/* listen_far(is_local): what accepts links by TCP of those who show the token;
 * "tcp:PORT@ADDRESS,…", the log's path, and the token. */
static int listen_far(lua_State *L)
{
    int is_local = lua_toboolean(L, 1), port;
    door *d = new_door(L);
    int place = lua_gettop(L);
    d->is_tcp = 1;
    write_token(L, d->token);
    port = listen_tcp(d, is_local);
    if (port < 0)
        return luaL_error(L, "no port to listen at: %s", strerror(errno));
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    lua_pushfstring(L, "tcp:%d@", port);
    luaL_addvalue(&b);
    if (is_local)
        luaL_addstring(&b, "127.0.0.1");
    else
        add_addresses(&b);
    luaL_pushresult(&b);
    lua_pushvalue(L, place);
    lua_insert(L, -2);
    lua_pushstring(L, d->log);
    lua_pushstring(L, d->token);
    return 4;
}

/* Without a look at where the first difference is. */
static int is_same(const char *a, const char *b, size_t n)
{
    unsigned char differs = 0;
    for (size_t i = 0; i < n; i++)
        differs |= (unsigned char)(a[i] ^ b[i]);
    return differs == 0;
}

/* Small messages go at once; an end that vanished is noticed. */
static void tune(int fd)
{
    const int yes = 1, idle = 5, every = 5, most = 4;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &most, sizeof most);
}

static void forget_stranger(door *d, int i, int is_refused)
{
    if (is_refused) {
        close(d->strangers[i].fd);
        d->refused++;
    }
    memmove(d->strangers + i, d->strangers + i + 1,
            (size_t)(--d->count - i) * sizeof *d->strangers);
}

/* Those who came stand in line, for 5 seconds at most; where there are too many
 * who say nothing the first one goes. */
static void let_in(door *d)
{
    int fd;
    while ((fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        if (d->count == MOST_STRANGERS)
            forget_stranger(d, 0, 1);
        d->strangers[d->count++] = (stranger){.fd = fd, .end = lumat_now() + 5};
    }
}

/* The descriptor of one who has shown the token, or -1; no byte behind it is
 * read. */
static int find_shown(door *d)
{
    for (int i = 0; i < d->count; i++) {
        stranger *s = d->strangers + i;
        ssize_t got = recv(s->fd, s->shown + s->got, (size_t)(TOKEN - s->got),
                           MSG_DONTWAIT);
        int fd = s->fd;
        if (got > 0)
            s->got += (int)got;
        if (s->got == TOKEN && is_same(s->shown, d->token, TOKEN)) {
            forget_stranger(d, i, 0);
            tune(fd);
            return fd;
        }
        if (s->got == TOKEN || got == 0 || lumat_now() > s->end ||
            (got < 0 && !may_go_on()))
            forget_stranger(d, i--, 1);
    }
    return -1;
}

/* Waits for those who come and those in line. */
static int accept_far(lua_State *L, door *d, double seconds)
{
    double end = lumat_now() + seconds;
    struct pollfd list[MOST_STRANGERS + 1];
    for (;;) {
        let_in(d);
        int fd = find_shown(d);
        double left = end - lumat_now();
        if (fd >= 0 || left <= 0)
            return fd;
        list[0] = (struct pollfd){.fd = d->fd, .events = POLLIN};
        for (int i = 0; i < d->count; i++)
            list[i + 1] =
                (struct pollfd){.fd = d->strangers[i].fd, .events = POLLIN};
        poll(list, (nfds_t)d->count + 1,
             left < 1 ? (int)(left * 1e3) + 1 : 1000);
        if (gpu_is_interrupted())
            lumat_raise_interrupted(L);
    }
}

/* door:accept(seconds): a link, or nil. */
static int accept_link(lua_State *L)
{
    door *d = luaL_checkudata(L, 1, listener_type);
    double seconds = luaL_checknumber(L, 2);
    int fd = -1;
    if (d->fd >= 0 && d->is_tcp)
        fd = accept_far(L, d, seconds);
    else if (d->fd >= 0 && is_ready(L, d->fd, seconds))
        fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return 0;
    push_link(L, fd);
    return 1;
}

/* door:refused(): how many came who did not show the token. */
static int count_refused(lua_State *L)
{
    door *d = luaL_checkudata(L, 1, listener_type);
    lua_pushinteger(L, d->refused);
    return 1;
}

/* --- who comes ------------------------------------------------------------ */

static int connect_here(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(at.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

/* Ends within 10 seconds. */
static int connect_one(const struct addrinfo *to)
{
    const struct timeval most = {.tv_sec = 10};
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0) {
        const struct timeval none = {0};
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
        tune(fd);
        return fd;
    }
    int error = errno;
    close(fd);
    errno = error == EINPROGRESS ? ETIMEDOUT : error;
    return -1;
}

/* To PORT@ADDRESS,…: the first that answers. */
static int connect_far(const char *where)
{
    const struct addrinfo how = {.ai_socktype = SOCK_STREAM,
                                 .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    char text[4096], *rest, *host;
    int fd = -1;
    snprintf(text, sizeof text, "%s", where);
    char *at = strchr(text, '@');
    errno = EINVAL;
    if (!at)
        return -1;
    *at = '\0';
    for (host = strtok_r(at + 1, ",", &rest); host && fd < 0;
         host = strtok_r(NULL, ",", &rest)) {
        struct addrinfo *found;
        if (getaddrinfo(host, text, &how, &found) != 0)
            continue;
        fd = connect_one(found);
        freeaddrinfo(found);
    }
    return fd;
}

/* connect(path or "tcp:…", [token]): a link, or nothing with why. */
static int connect_link(lua_State *L)
{
    const char *where = luaL_checkstring(L, 1);
    const char *token = luaL_optstring(L, 2, "");
    int is_far = strncmp(where, "tcp:", 4) == 0;
    int fd = is_far ? connect_far(where + 4) : connect_here(where);
    if (fd < 0) {
        lua_pushnil(L);
        lua_pushstring(L, strerror(errno));
        return 2;
    }
    push_link(L, fd);
    if (is_far)
        send_all(lua_touserdata(L, -1),
                 &(struct iovec){(void *)token, strlen(token)}, 1);
    return 1;
}

/* wait(links, seconds): the places of those of the list that have something to
 * say, or are gone; an empty list where none has in that time. */
static int wait_for_links(lua_State *L)
{
    int n = (int)luaL_len(L, 1);
    double seconds = luaL_checknumber(L, 2);
    struct pollfd *list = lua_newuserdatauv(L, (size_t)n * sizeof *list + 1, 0);
    int kept = 0;
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, 1, i + 1);
        link_end *l = luaL_checkudata(L, -1, link_type);
        int has = l->to > l->from;
        kept += has;
        list[i] = (struct pollfd){.fd = has ? -1 : l->fd, .events = POLLIN};
        lua_pop(L, 1);
    }
    int found = poll(list, (nfds_t)n, kept ? 0 : (int)(seconds * 1e3));
    if (gpu_is_interrupted())
        lumat_raise_interrupted(L);
    lua_createtable(L, found > 0 ? found : 0, 0);
    for (int i = 0, k = 1; i < n; i++)
        if (list[i].fd < 0 || (found > 0 && list[i].revents)) {
            lua_pushinteger(L, i + 1);
            lua_rawseti(L, -2, k++);
        }
    return 1;
}

/* answers(links): the places of those that have something to say, or are gone:
 * all of them as a rule. It waits for the last one first, who was asked last
 * and mostly answers last: by then the others are there, and the prompt has
 * slept once. After about a second without one, those that came by then. */
static int await_answers(lua_State *L)
{
    int n = (int)luaL_len(L, 1), count = 0;
    lua_createtable(L, n, 0);
    for (int i = n; i > 0; i--) {
        lua_rawgeti(L, 1, i);
        link_end *l = luaL_checkudata(L, -1, link_type);
        int has = l->fd < 0 || await_bytes(L, l);
        lua_pop(L, 1);
        if (!has)
            break;
        lua_pushinteger(L, i);
        lua_rawseti(L, -2, ++count);
    }
    return 1;
}

void lumat_open_links(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"send", send_message},     {"receive", receive_message},
        {"matrix", take_matrix},    {"close", close_link},
        {"is_open", is_open},       {"descriptor", descriptor},
        {"patience", set_patience}, {"signal", signal_byte},
        {"heard", heard},           {"rings", set_rings},
        {"hears", set_hears},       {NULL, NULL}};
    static const luaL_Reg bells[] = {
        {"ring", ring_bell}, {"hide", hide_bell}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"listen", listen_here},
                                         {"listen_far", listen_far},
                                         {"connect", connect_link},
                                         {"wait", wait_for_links},
                                         {"answers", await_answers},
                                         {"bell", open_bell},
                                         {NULL, NULL}};
    static const luaL_Reg doors[] = {{"accept", accept_link},
                                     {"refused", count_refused},
                                     {"shut", shut_door},
                                     {"close", close_door},
                                     {NULL, NULL}};
    lumat_open_closing(L, link_type, close_link);
    luaL_getmetatable(L, link_type);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lumat_open_closing(L, listener_type, close_door);
    luaL_getmetatable(L, listener_type);
    luaL_newlib(L, doors);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lumat_open_closing(L, bell_type, close_bell);
    luaL_getmetatable(L, bell_type);
    luaL_newlib(L, bells);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    lua_pushliteral(L, LUMAT_VERSION);
    lua_setfield(L, -2, "version");
    lumat_set_required(L, "links");
}
