/* The fences of --safe, which paths lie inside, and reads and writes of open
 * files that go on to the end. */
#include "fence.h"

#include "lauxlib.h"
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MOST_FOLDERS = 32 };

typedef struct folder {
    char path[PATH_MAX]; /* as realpath gives it */
    int is_writable;
} folder;

static struct {
    int level; /* of lumat_safety */
    int abi;   /* of Landlock; 0: no fence stands */
    folder folder[MOST_FOLDERS];
    int count;
    const char *const *readable; /* files beside them; NULL ends the list */
} fence;

int lumat_is_safe(void)
{
    return fence.level != LUMAT_UNSAFE;
}

static int fail(char *why, size_t size, const char *format, const char *word)
{
    snprintf(why, size, format, word);
    return -1;
}

/* --- the folders ---------------------------------------------------------- */

/* "DIR" or "DIR:ro", `length` long. */
static int add_folder(const char *word, size_t length, char *why, size_t size)
{
    char path[PATH_MAX];
    struct stat info;
    folder *f = &fence.folder[fence.count];
    f->is_writable = 1;
    if (length > 3 && memcmp(word + length - 3, ":ro", 3) == 0) {
        f->is_writable = 0;
        length -= 3;
    }
    snprintf(path, sizeof path, "%.*s", (int)length, word);
    if (fence.count + 1 == MOST_FOLDERS || length >= sizeof path)
        return fail(why, size, "--safe takes fewer folders: %s", path);
    if (length == 0 || !realpath(path, f->path) || stat(f->path, &info) != 0 ||
        !S_ISDIR(info.st_mode))
        return fail(why, size, "--safe: there is no folder '%s'", path);
    fence.count++;
    return 0;
}

static int is_below(const char *path, const char *above)
{
    size_t length = strlen(above);
    if (length == 1) /* "/" */
        return 1;
    return strncmp(path, above, length) == 0 &&
           (path[length] == '/' || path[length] == '\0');
}

/* Rights below a folder add up, the kernel's as ours: one to read that lies in
 * one to write would be written to. */
static int check_folders(char *why, size_t size)
{
    for (int i = 0; i < fence.count; i++)
        for (int k = 0; k < fence.count; k++)
            if (!fence.folder[i].is_writable && fence.folder[k].is_writable &&
                is_below(fence.folder[i].path, fence.folder[k].path))
                return fail(why, size,
                            "--safe: '%s' cannot be :ro, as a folder that "
                            "may be written has it",
                            fence.folder[i].path);
    return 0;
}

static int add_folders(const char *list, char *why, size_t size)
{
    fence.count = 0;
    if (!list)
        return add_folder(".", 1, why, size);
    for (const char *p = list;; p++) {
        size_t length = strcspn(p, ",");
        if (add_folder(p, length, why, size) != 0)
            return -1;
        p += length;
        if (*p == '\0')
            return check_folders(why, size);
    }
}

/* realpath of what may not be there yet: that of its folder, and its name. */
static int resolve(const char *path, char real[PATH_MAX])
{
    char copy[PATH_MAX];
    char *slash;
    struct stat info;
    if (realpath(path, real))
        return 0;
    if (errno != ENOENT || lstat(path, &info) == 0)
        return -1; /* a link that leads nowhere is not followed */
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return -1;
    for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
        copy[n - 1] = '\0';
    slash = strrchr(copy, '/');
    if (!slash)
        return realpath(".", real) ? 0 : -1;
    if (strcmp(slash, "/..") == 0)
        return -1;
    *slash = '\0';
    return resolve(slash == copy ? "/" : copy, real);
}

static int reads_only;

void lumat_forbid_writing(int on)
{
    reads_only = on;
}

int lumat_may_open(const char *path, int writing)
{
    char real[PATH_MAX];
    if (writing && reads_only)
        return 0;
    if (!lumat_is_safe())
        return 1;
    if (resolve(path, real) != 0)
        return 0;
    for (int i = 0; i < fence.count; i++)
        if (is_below(real, fence.folder[i].path) &&
            (fence.folder[i].is_writable || !writing))
            return 1;
    return 0;
}

/* Libraries, the clock's zone, terminals' abilities; of /proc and /sys what
 * tells how much memory and how many processors there are. */
static const char *const system_paths[] = {"/lib",
                                           "/lib64",
                                           "/usr/lib",
                                           "/usr/lib64",
                                           "/usr/local/lib",
                                           "/usr/local/cuda/lib64",
                                           "/usr/local/nvidia",
                                           "/etc/ld.so.cache",
                                           "/etc/localtime",
                                           "/usr/share/zoneinfo",
                                           "/usr/share/locale",
                                           "/etc/terminfo",
                                           "/usr/share/terminfo",
                                           "/etc/inputrc",
                                           "/proc/meminfo",
                                           "/proc/cpuinfo",
                                           "/proc/self/cgroup",
                                           "/proc/self/statm",
                                           "/sys/fs/cgroup",
                                           "/sys/devices/system",
                                           NULL};

int lumat_is_system_path(const char *path)
{
    if (strstr(path, ".."))
        return 0;
    for (const char *const *p = system_paths; *p; p++)
        if ((strncmp(*p, "/proc/", 6) == 0 || strncmp(*p, "/sys/", 5) == 0) &&
            is_below(path, *p))
            return 1;
    return 0;
}

int lumat_open_path(const char *path, int flags, mode_t mode)
{
    if (lumat_may_open(path, (flags & (O_ACCMODE | O_CREAT)) != O_RDONLY))
        return open(path, flags, mode);
    errno = EACCES;
    return -1;
}

/* Reading a regular file never waits, whatever the flag says; it is cleared
 * for whoever looks. */
int lumat_take_regular(int fd, size_t *size)
{
    struct stat info;
    if (fd < 0)
        return -1;
    int error = fstat(fd, &info) == 0 ? 0 : errno;
    int is_null =
        error == 0 && S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3);
    if (error == 0 && S_ISDIR(info.st_mode))
        error = EISDIR;
    else if (error == 0 && !S_ISREG(info.st_mode) && !is_null)
        error = LUMAT_IRREGULAR;
    int flags = error == 0 ? fcntl(fd, F_GETFL) : -1;
    if (error == 0 &&
        (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0))
        error = errno;
    if (error == 0) {
        if (size != NULL)
            *size = is_null ? 0 : (size_t)info.st_size;
        return fd;
    }
    close(fd);
    errno = error;
    return -1;
}

int lumat_open_regular(const char *path, size_t *size)
{
    int fd = lumat_open_path(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    return lumat_take_regular(fd, size);
}

void lumat_unlink_path(const char *path)
{
    if (lumat_may_open(path, 1))
        unlink(path);
}

const char *lumat_error_text(int error)
{
    if (error == LUMAT_IRREGULAR)
        return "it is not a regular file";
    if (error == EISDIR)
        return "it is a directory";
    if ((error == EACCES || error == EPERM || error == EXDEV) &&
        lumat_is_safe())
        return "--safe allows it in its folders alone";
    return strerror(error);
}

void lumat_check_fence(lua_State *L, const char *name, const char *path,
                       int writing)
{
    luaL_Buffer b;
    if (lumat_may_open(path, writing))
        return;
    luaL_buffinit(L, &b);
    for (int i = 0; i < fence.count; i++) {
        luaL_addstring(&b, i > 0 ? ", " : "");
        luaL_addstring(&b, fence.folder[i].path);
        luaL_addstring(&b, fence.folder[i].is_writable ? "" : " (to read)");
    }
    luaL_pushresult(&b);
    luaL_error(L, "%s: --safe keeps '%s' from being %s: it allows %s", name,
               path, writing ? "written" : "read", lua_tostring(L, -1));
}

/* --- open files ----------------------------------------------------------- */

ssize_t lumat_read_fully(int fd, void *bytes, size_t size, off_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n =
            pread(fd, (char *)bytes + done, size - done, offset + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int lumat_write_fully(int fd, const void *bytes, size_t length, off_t at)
{
    const char *p = bytes;
    while (length > 0) {
        ssize_t n = at < 0 ? write(fd, p, length) : pwrite(fd, p, length, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : ENOSPC;
        p += n;
        at += at < 0 ? 0 : n;
        length -= (size_t)n;
    }
    return 0;
}

int lumat_sync(int fd)
{
    int error;
    do
        error = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    while (error == EINTR);
    return error;
}

int lumat_open_folder_of(const char *path)
{
    char above[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof above) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (slash) {
        memcpy(above, path, length);
        strcpy(above + length, length ? "" : "/");
    }
    return lumat_open_path(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
}

int lumat_sync_folder(const char *path)
{
    int fd = lumat_open_folder_of(path);
    if (fd < 0)
        return errno == EACCES ? 0 : errno;
    int error = lumat_sync(fd);
    close(fd);
    return error;
}

/* --- Landlock --------------------------------------------------------------
 * Source: Linux, Documentation/userspace-api/landlock.rst. The headers of the
 * systems we build on are older than their kernels, so the numbers are here. */

enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };
enum { RULESET_VERSION = 1, PATH_BENEATH = 1 };

enum {
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_REMOVE_DIR = 1 << 4,
    FS_REMOVE_FILE = 1 << 5,
    FS_MAKE_DIR = 1 << 7,
    FS_MAKE_REG = 1 << 8,
    FS_REFER = 1 << 13,    /* from the second version on */
    FS_TRUNCATE = 1 << 14, /* from the third */
    FS_IOCTL_DEV = 1 << 15 /* from the fifth */
};
enum {
    OF_FILES = FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
    TO_READ = FS_READ_FILE | FS_READ_DIR,
    TO_USE = TO_READ | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
    TO_WRITE = TO_READ | FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE |
               FS_MAKE_DIR | FS_MAKE_REG | FS_REFER | FS_TRUNCATE
};

struct ruleset {
    uint64_t fs, net, scoped;
};
struct path_rule {
    uint64_t access;
    int32_t parent;
} __attribute__((packed));

static uint64_t known_rights(void)
{
    static const int newest[] = {0, 12, 13, 14, 14, 15};
    int bits = newest[fence.abi < 5 ? fence.abi : 5];
    return ((uint64_t)2 << bits) - 1;
}

/* What is not there needs no rule. */
static int allow(int rules, const char *path, uint64_t access)
{
    struct path_rule rule;
    struct stat info;
    rule.parent = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent < 0)
        return 0;
    rule.access = access & known_rights();
    if (fstat(rule.parent, &info) == 0 && !S_ISDIR(info.st_mode))
        rule.access &= OF_FILES;
    long failed = syscall(ADD_RULE, rules, PATH_BENEATH, &rule, 0);
    close(rule.parent);
    return failed ? -1 : 0;
}

/* A list of folders with ":" between them, as of LD_LIBRARY_PATH. */
static int allow_list(int rules, const char *list)
{
    char path[PATH_MAX];
    int failed = 0;
    while (list && *list && !failed) {
        size_t length = strcspn(list, ":");
        snprintf(path, sizeof path, "%.*s", (int)length, list);
        failed = length > 0 && allow(rules, path, TO_READ);
        list += length + (list[length] == ':');
    }
    return failed;
}

/* The libraries that lie beside the program, or where it is installed; the
 * rest of its folder is not the script's. */
static int allow_program(int rules)
{
    static const char *const places[] = {"liblumat-*.so", "../lib/*.so*",
                                         "../lib/lumat/*.so"};
    char path[PATH_MAX];
    glob_t found = {0};
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
    int failed = 0;
    if (n <= 0)
        return 0;
    path[n] = '\0';
    char *name = strrchr(path, '/') + 1;
    for (int i = 0; i < 3; i++) {
        strcpy(name, places[i]);
        glob(path, i > 0 ? GLOB_APPEND : 0, NULL, &found);
    }
    for (size_t i = 0; i < found.gl_pathc && !failed; i++)
        failed = allow(rules, found.gl_pathv[i], FS_READ_FILE);
    globfree(&found);
    return failed;
}

static int is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int allow_common(int rules)
{
    for (int i = 0; i < fence.count; i++)
        if (allow(rules, fence.folder[i].path,
                  fence.folder[i].is_writable ? TO_WRITE : TO_READ))
            return -1;
    for (const char *const *p = system_paths; *p; p++)
        if (allow(rules, *p, TO_READ))
            return -1;
    for (const char *const *p = fence.readable; p && *p; p++)
        if (!is_folder(*p) && allow(rules, *p, FS_READ_FILE))
            return -1;
    if (allow(rules, "/dev/null", TO_USE) || allow(rules, "/dev/tty", TO_USE))
        return -1;
    return allow_program(rules) || allow_list(rules, getenv("LD_LIBRARY_PATH"));
}

/* What cuInit asks for (measured: without one of them it fails with 304). */
static int allow_driver(int rules)
{
    char path[32];
    if (allow(rules, "/proc", TO_READ) || allow(rules, "/sys", TO_READ) ||
        allow(rules, "/dev", TO_READ) ||
        allow(rules, "/proc/self/task", TO_USE) ||
        allow(rules, "/dev/nvidiactl", TO_USE) ||
        allow(rules, "/dev/nvidia-uvm", TO_USE) ||
        allow(rules, "/dev/nvidia-uvm-tools", TO_USE) ||
        allow(rules, "/dev/nvidia-modeset", TO_USE) ||
        allow(rules, "/dev/nvidia-caps", TO_USE))
        return -1;
    for (int i = 0; i < 64; i++) {
        snprintf(path, sizeof path, "/dev/nvidia%d", i);
        if (allow(rules, path, TO_USE))
            return -1;
    }
    return 0;
}

/* Signals to, and sockets of, processes outside are out of scope, too, where
 * the kernel knows how; and no port is bound or connected to. */
static int restrict_files(int for_driver)
{
    struct ruleset set = {.fs = known_rights(),
                          .net = fence.abi >= 4 ? 3 : 0,
                          .scoped = fence.abi >= 6 ? 3 : 0};
    size_t size = fence.abi >= 6   ? sizeof set
                  : fence.abi >= 4 ? offsetof(struct ruleset, scoped)
                                   : offsetof(struct ruleset, net);
    if (for_driver)
        set.scoped = 0;
    int rules = (int)syscall(CREATE_RULESET, &set, size, 0);
    if (rules < 0)
        return -1;
    int failed = allow_common(rules) || (for_driver && allow_driver(rules)) ||
                 syscall(RESTRICT_SELF, rules, 0) != 0;
    close(rules);
    return failed ? -1 : 0;
}

/* --- seccomp --------------------------------------------------------------
 * A filter that looks at a call's number and arguments. Source: Linux,
 * Documentation/userspace-api/seccomp_filter.rst. */

#if defined __x86_64__
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#define OWN_ARCH 0 /* none: --safe says so */
#endif

/* Starting programs, other processes, the system, files' owners. */
static const int denied[] = {
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_io_uring_setup,
    SYS_userfaultfd,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_quotactl,
    SYS_acct,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_fanotify_init,
    SYS_lookup_dcookie,
    SYS_personality,
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setfsuid,
    SYS_setfsgid,
    SYS_setgroups,
    SYS_capset,
    SYS_fchown,
    SYS_fchownat,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    SYS_utimensat,
    SYS_mknodat,
    SYS_symlinkat,
    SYS_setpriority,
    SYS_ioprio_set,
    SYS_setpgid,
    SYS_syslog,
    SYS_vhangup,
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_msgget,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_msgctl,
    SYS_semget,
    SYS_semop,
    SYS_semtimedop,
    SYS_semctl,
    SYS_mq_open,
    SYS_mq_unlink,
#ifdef SYS_chmod
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_mknod,
    SYS_symlink,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
#endif
#ifdef SYS_pidfd_open
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
#endif
#ifdef SYS_pidfd_getfd
    SYS_pidfd_getfd,
#endif
#ifdef SYS_process_madvise
    SYS_process_madvise,
#endif
#ifdef SYS_open_tree
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
#endif
#ifdef SYS_mount_setattr
    SYS_mount_setattr,
#endif
};
enum { DENIED = sizeof denied / sizeof *denied };
enum { MOST_STEPS = 2 * DENIED + 160 };

/* What the kernel does to a terminal or a file for whoever has it open, be it
 * to read: keys for the shell around us, flags of a file, signals to whom the
 * file's news are to go. */
static const uint32_t denied_ioctls[] = {TIOCSTI,         TIOCLINUX,
                                         FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR,
                                         FIOSETOWN,       SIOCSPGRP};
static const uint32_t denied_fcntls[] = {F_SETOWN, F_SETSIG, F_SETOWN_EX};

/* Calls that came with later kernels than the headers here. */
enum { FCHMODAT2 = 452, SETXATTRAT = 463, REMOVEXATTRAT = 466, CLONE3 = 435 };
enum { X32_BIT = 0x40000000 };

typedef struct filter {
    struct sock_filter step[MOST_STEPS];
    unsigned short count;
} filter;

static void add(filter *f, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    f->step[f->count++] = (struct sock_filter){code, yes, no, k};
}

static void load(filter *f, size_t offset)
{
    add(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void answer(filter *f, uint32_t with)
{
    add(f, BPF_RET | BPF_K, with, 0, 0);
}

enum { REFUSED = SECCOMP_RET_ERRNO | EPERM };
#define COUNT(list) (sizeof(list) / sizeof *(list))

static size_t argument(int i)
{
    return offsetof(struct seccomp_data, args) + 8 * (size_t)i;
}

/* The number is loaded, before and after. */
static void deny(filter *f, uint32_t number, uint32_t with)
{
    add(f, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    answer(f, with);
}

/* Refuses the call unless the low half of argument i is the value. */
static void deny_unless(filter *f, uint32_t number, int i, uint32_t value)
{
    add(f, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4);
    load(f, argument(i));
    add(f, BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
    answer(f, REFUSED);
    answer(f, SECCOMP_RET_ALLOW);
}

static void deny_if(filter *f, uint32_t number, int i, uint32_t value)
{
    add(f, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4);
    load(f, argument(i));
    add(f, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    answer(f, REFUSED);
    load(f, offsetof(struct seccomp_data, nr));
}

/* Threads are made, processes are not. */
static void deny_clone(filter *f)
{
    add(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
    load(f, argument(0));
    add(f, BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0);
    answer(f, REFUSED);
    answer(f, SECCOMP_RET_ALLOW);
    deny(f, CLONE3, SECCOMP_RET_ERRNO | ENOSYS); /* libc then takes clone */
}

/* Signals to itself alone; the whole group stops for Ctrl-Z in the viewer. */
static void deny_signals(filter *f)
{
    uint32_t self = (uint32_t)getpid();
    deny_unless(f, SYS_tgkill, 0, self);
    deny_unless(f, SYS_rt_sigqueueinfo, 0, self);
    deny_unless(f, SYS_rt_tgsigqueueinfo, 0, self);
    deny(f, SYS_tkill, REFUSED);
    add(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 0, 7);
    load(f, argument(0));
    add(f, BPF_JMP | BPF_JEQ | BPF_K, self, 4, 0);
    add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2);
    load(f, argument(1));
    add(f, BPF_JMP | BPF_JEQ | BPF_K, SIGTSTP, 1, 0);
    answer(f, REFUSED);
    answer(f, SECCOMP_RET_ALLOW);
}

/* With the second fence there are no sockets at all. */
static void deny_sockets(filter *f, int is_second)
{
    if (is_second) {
        deny(f, SYS_socket, REFUSED);
        deny(f, SYS_socketpair, REFUSED);
        deny(f, SYS_connect, REFUSED);
        deny(f, SYS_bind, REFUSED);
        return;
    }
    deny_unless(f, SYS_socket, 0, AF_UNIX);
}

static void fill_filter(filter *f, int is_second)
{
    load(f, offsetof(struct seccomp_data, arch));
    add(f, BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0);
    answer(f, SECCOMP_RET_KILL_PROCESS);
    load(f, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    add(f, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
    answer(f, SECCOMP_RET_KILL_PROCESS);
#endif
    for (int i = 0; i < DENIED; i++)
        deny(f, (uint32_t)denied[i], REFUSED);
    deny(f, FCHMODAT2, REFUSED);
    deny(f, SETXATTRAT, REFUSED);
    deny(f, REMOVEXATTRAT, REFUSED);
    if (fence.abi < 3)
        deny(f, SYS_truncate, REFUSED);
    deny_sockets(f, is_second);
    for (size_t i = 0; i < COUNT(denied_ioctls); i++)
        deny_if(f, SYS_ioctl, 1, denied_ioctls[i]);
    for (size_t i = 0; i < COUNT(denied_fcntls); i++)
        deny_if(f, SYS_fcntl, 1, denied_fcntls[i]);
    deny_unless(f, SYS_prlimit64, 0, 0); /* 0: its own limits */
    deny_clone(f);
    deny_signals(f);
    answer(f, SECCOMP_RET_ALLOW);
}

static int filter_calls(int is_second)
{
    filter f = {.count = 0};
    struct sock_fprog program = {.filter = f.step};
    fill_filter(&f, is_second);
    program.len = f.count;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                   SECCOMP_FILTER_FLAG_TSYNC, &program)
               ? -1
               : 0;
}

#ifdef __SANITIZE_ADDRESS__
/* Looking for leaks starts a process at the end, which is what must not be. */
int __lsan_is_turned_off(void);
__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
    return fence.abi != 0;
}
#endif

/* --- both ----------------------------------------------------------------- */

static int find_landlock(char *why, size_t size)
{
    long abi = syscall(CREATE_RULESET, NULL, 0, RULESET_VERSION);
    if (abi > 0 && OWN_ARCH != 0) {
        fence.abi = (int)abi;
        return 0;
    }
    return fail(why, size,
                "--safe needs %s: --safe-language is weaker, and works "
                "without",
                OWN_ARCH == 0 ? "a processor of another kind"
                              : "Landlock (Linux 5.13 or newer, turned on)");
}

int lumat_raise_fence(const lumat_options *options, char *why, size_t size)
{
    fence.level = options->safe;
    fence.readable = options->readable;
    if (!lumat_is_safe())
        return 0;
    if (add_folders(options->folders, why, size) != 0)
        return -1;
    if (fence.level == LUMAT_SAFE_LANGUAGE)
        return 0;
    if (find_landlock(why, size) != 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || restrict_files(1) != 0 ||
        filter_calls(0) != 0)
        return fail(why, size, "--safe: the fence does not stand: %s",
                    strerror(errno));
    return 0;
}

int lumat_close_fence(char *why, size_t size)
{
    if (fence.abi == 0)
        return 0;
    if (restrict_files(0) != 0 || filter_calls(1) != 0)
        return fail(why, size, "--safe: the second fence does not stand: %s",
                    strerror(errno));
    return 0;
}
