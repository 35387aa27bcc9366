/* What an attacker would do who makes the process call what he likes, behind
 * each fence of --safe: a program that is fenced in, then tries. Prints TAP.
 * Usage: attack_fence FOLDER (which may be written to; ../outside is there). */
#include "fence.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static int count, bad;

static void report(int good, const char *what)
{
    printf("%sok %d - %s\n", good ? "" : "not ", ++count, what);
    if (!good)
        printf("#  errno %d, %s\n", errno, strerror(errno));
    bad += !good;
}

static int refused(long result)
{
    return result < 0 && (errno == EPERM || errno == EACCES || errno == EXDEV);
}
#define REFUSED(call) (errno = 0, report(refused((long)(call)), #call))
#define ALLOWED(call) (errno = 0, report((long)(call) >= 0, #call))

static void *nothing(void *data)
{
    return data;
}

static int make_thread(void)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, nothing, NULL);
    return error ? -1 : pthread_join(thread, NULL);
}

static void try_files(void)
{
    char *const none[] = {NULL};
    int flags = 0, own = open("in", O_RDWR | O_CREAT, 0600);
    ALLOWED(own);
    ALLOWED(open("in", O_RDWR | O_TRUNC));
    ALLOWED(truncate("in", 0) == 0 || errno == EPERM ? 0 : -1);
    ALLOWED(mkdir("folder", 0700));
    ALLOWED(rename("in", "folder/in"));
    ALLOWED(unlink("folder/in"));
    ALLOWED(rmdir("folder"));
    REFUSED(open("../outside", O_RDONLY));
    REFUSED(open("../outside", O_WRONLY));
    REFUSED(open("../outside", O_RDONLY | O_TRUNC));
    REFUSED(open("link", O_RDONLY));
    REFUSED(truncate("../outside", 0));
    REFUSED(unlink("../outside"));
    REFUSED(rename("../outside", "in"));
    REFUSED(link("../outside", "in"));
    REFUSED(open("../new", O_WRONLY | O_CREAT, 0600));
    REFUSED(mkdir("../new", 0700));
    REFUSED(symlink("../outside", "in"));
    REFUSED(mknod("in", S_IFIFO | 0600, 0));
    REFUSED(chmod("../outside", 0777));
    REFUSED(fchmod(own, 04777));
    REFUSED(ioctl(own, FS_IOC_SETFLAGS, &flags));
    REFUSED(chown("../outside", 1, 1));
    REFUSED(setxattr("../outside", "user.a", "b", 1, 0));
    REFUSED(utimensat(AT_FDCWD, "../outside", NULL, 0));
    REFUSED(open("/etc/passwd", O_RDONLY));
    REFUSED(open("/usr/bin/env", O_RDONLY));
    REFUSED(open("/", O_RDONLY | O_DIRECTORY));
    REFUSED(execv("/bin/true", none));
    REFUSED(syscall(SYS_execveat, AT_FDCWD, "/bin/true", none, none, 0));
}

static void try_processes(void)
{
    struct iovec piece = {&count, sizeof count};
    struct rlimit limit = {0, 0};
    int parent = getppid();
    REFUSED(fork());
    REFUSED(vfork());
    REFUSED(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    errno = 0;
    report(syscall(435, NULL, 0) < 0 && errno == ENOSYS, "clone3 is not there");
    ALLOWED(make_thread());
    REFUSED(system("true") == 0 ? 0 : -1);
    REFUSED(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    REFUSED(process_vm_readv(getppid(), &piece, 1, &piece, 1, 0));
    REFUSED(kill(getppid(), 0));
    REFUSED(kill(-1, 0));
    REFUSED(kill(0, SIGHUP));
    REFUSED(setpgid(0, getppid()));
    REFUSED(fcntl(0, F_SETOWN, getppid()));
    REFUSED(fcntl(0, F_SETSIG, SIGKILL));
    REFUSED(ioctl(0, FIOSETOWN, &parent));
    REFUSED(syscall(SYS_prlimit64, getppid(), RLIMIT_CPU, &limit, NULL));
    ALLOWED(getrlimit(RLIMIT_CPU, &limit));
    REFUSED(shmget(1, 1, IPC_CREAT | 0600));
    REFUSED(msgget(1, IPC_CREAT | 0600));
    REFUSED(semget(1, 1, IPC_CREAT | 0600));
    REFUSED(syscall(SYS_mq_open, "lumat", O_RDWR | O_CREAT, 0600, NULL));
    ALLOWED(kill(getpid(), 0));
    ALLOWED(raise(0));
    REFUSED(syscall(SYS_tkill, getppid(), 0));
    REFUSED(syscall(SYS_bpf, 0, NULL, 0));
    REFUSED(syscall(SYS_io_uring_setup, 1, NULL));
    REFUSED(syscall(SYS_mount, "none", ".", "tmpfs", 0, NULL));
    REFUSED(unshare(CLONE_NEWUSER));
    REFUSED(ioctl(0, TIOCSTI, "x"));
    REFUSED(ioctl(0, TIOCLINUX, "x"));
    REFUSED(setuid(1));
}

static void try_network(void)
{
    REFUSED(socket(AF_INET, SOCK_STREAM, 0));
    REFUSED(socket(AF_INET6, SOCK_DGRAM, 0));
    REFUSED(socket(AF_NETLINK, SOCK_RAW, 0));
    REFUSED(socket(AF_PACKET, SOCK_RAW, 0));
}

static void raise_first(const lumat_options *options)
{
    char why[256] = "";
    int failed = lumat_raise_fence(options, why, sizeof why);
    report(!failed, "the first fence stands");
    if (failed)
        printf("# %s\n", why);
}

int main(int argc, char **argv)
{
    char why[256] = "";
    const lumat_options options = {.safe = LUMAT_SAFE};
    if (argc != 2 || chdir(argv[1]) != 0)
        return 2;
    raise_first(&options);
    try_files();
    try_processes();
    try_network();
    ALLOWED(socket(AF_UNIX, SOCK_STREAM, 0));
    ALLOWED(open("/proc/self/status", O_RDONLY));
    report(lumat_close_fence(why, sizeof why) == 0, "the second fence stands");
    try_files();
    try_processes();
    try_network();
    REFUSED(socket(AF_UNIX, SOCK_STREAM, 0));
    REFUSED(open("/proc/self/status", O_RDONLY));
    REFUSED(open("/proc/self/mem", O_RDWR));
    REFUSED(open("/proc/self/task", O_RDONLY));
    REFUSED(open("/dev/zero", O_RDONLY));
    REFUSED(open("/dev/shm", O_RDONLY));
    ALLOWED(open("/dev/null", O_WRONLY));
    ALLOWED(open("/proc/meminfo", O_RDONLY));
    printf("1..%d\n", count);
    return bad != 0;
}
