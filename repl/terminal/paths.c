/* Where a user's own files are (XDG Base Directory Specification). */
#include "terminal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The specification has relative paths ignored. */
static const char *absolute(const char *variable)
{
    const char *path = getenv(variable);
    return path != NULL && path[0] == '/' ? path : NULL;
}

int repl_user_path(char *path, size_t room, const char *variable,
                   const char *fallback, const char *name)
{
    const char *folder = absolute(variable), *home = absolute("HOME");
    int length;
    if (folder != NULL)
        length = snprintf(path, room, "%s/lumat/%s", folder, name);
    else if (home != NULL)
        length = snprintf(path, room, "%s/%s/lumat/%s", home, fallback, name);
    else
        return 0;
    return length > 0 && (size_t)length < room;
}

int repl_make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        int failed;
        *slash = '\0';
        failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        *slash = '/';
        if (failed)
            return -1;
    }
    return 0;
}
