/* What the prompt begins with. */
#include "banner.h"

#include "terminal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

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

void repl_print_banner(void)
{
    puts("lumat " LUMAT_VERSION "  Lua " LUA_VERSION_MAJOR "." LUA_VERSION_MINOR
         "  ? for help, :quit to leave");
    if (is_first_start())
        puts("A = rand(3, 3) makes a matrix, A shows it, A * A:inv() computes; "
             "TAB completes\n"
             "?name explains one, ??word searches, :help lists the commands; "
             "Ctrl-C stops");
}
