/* The launcher of a pool whose prompt is gone. Its processes end then without a
 * word to it, over which Open MPI's may wait for itself for ever, in a lock of
 * PMIx. So each of them leaves one behind that ends the launcher where it has
 * not ended by itself. */
#include "pool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int launcher = -1; /* its descriptor, which no other process ever has */

/* Is it one of Open MPI's? Others, as Slurm's, are in order. */
static int is_open_mpi(pid_t pid)
{
    static const char *const names[] = {"mpirun", "orterun", "orted", "prterun",
                                        "prted"};
    char path[64], name[32];
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, name, sizeof name - 1) : 0;
    if (fd >= 0)
        close(fd);
    name[n > 0 ? n : 0] = '\0';
    name[strcspn(name, "\n")] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return 0;
}

void lumat_note_launcher(void)
{
    pid_t parent = getppid();
    if (!is_open_mpi(parent))
        return;
    launcher = (int)syscall(SYS_pidfd_open, parent, 0);
    if (launcher >= 0 && getppid() != parent) { /* it ended before */
        close(launcher);
        launcher = -1;
    }
}

/* Made without what libraries do at a fork, which may wait for their threads:
 * it calls the kernel alone, past what a sanitizer puts around such calls. The
 * launcher's pipes are not held open. */
void lumat_end_launcher(void)
{
    if (launcher < 0 || syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) != 0)
        return;
    struct timespec patience = {.tv_sec = 3};
    struct pollfd p = {.fd = 0, .events = POLLIN};
    syscall(SYS_setsid);
    syscall(SYS_prctl, PR_SET_NAME, "lumat-after", 0, 0, 0);
    syscall(SYS_dup3, launcher, p.fd, 0);
    syscall(SYS_close_range, 1, ~0U, 0);
    if (syscall(SYS_ppoll, &p, 1, &patience, NULL, 0) == 0)
        syscall(SYS_pidfd_send_signal, p.fd, SIGKILL, NULL, 0);
    for (;;)
        syscall(SYS_exit_group, 0);
}
