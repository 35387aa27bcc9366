/* The user's own files: where they are, after the XDG Base Directory
 * Specification; and their own editor on a text, by way of a file that only
 * they can read. */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* --- folders -------------------------------------------------------------- */

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

/* --- the editor ----------------------------------------------------------- */

enum { MOST_NAMES = 100 };

extern char **environ;

static char *fail(const char *what, const char *why)
{
    char message[512];
    snprintf(message, sizeof message, ":edit: %s: %s", what, why);
    repl_complain(message);
    return NULL;
}

static const char *editor(void)
{
    const char *name = getenv("VISUAL");
    if (name == NULL || name[0] == '\0')
        name = getenv("EDITOR");
    return name != NULL && name[0] != '\0' ? name : "vi";
}

static int write_text(int file, const char *text)
{
    int error = lumat_write_fully(file, text, strlen(text), -1);
    return error != 0 ? error : lumat_write_fully(file, "\n", 1, -1);
}

/* The file's text without newlines at its end. */
static char *read_text(const char *path)
{
    FILE *in = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    ssize_t length = in != NULL ? getdelim(&text, &room, '\0', in) : -1;
    int failed = in == NULL || ferror(in);
    if (in != NULL)
        fclose(in);
    if (failed) {
        free(text);
        return NULL;
    }
    while (length > 0 && strchr("\r\n", text[length - 1]) != NULL)
        text[--length] = '\0';
    if (length <= 0) {
        free(text);
        text = strdup("");
    }
    return text;
}

/* The editor's name may bring arguments of its own, as "code -w" does. */
static pid_t start_editor(const char *path)
{
    char command[512];
    pid_t child;
    snprintf(command, sizeof command, "%s \"$1\"", editor());
    child = fork();
    if (child != 0)
        return child;
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    execle("/bin/sh", "sh", "-c", command, "sh", path, (char *)NULL, environ);
    _exit(127);
}

/* Ctrl-C is the editor's meanwhile, and Ctrl-Z stops us at once: Readline would
 * put that off. */
static int run_guarded(const char *path)
{
    static const int numbers[] = {SIGINT, SIGQUIT, SIGTSTP};
    struct sigaction action = {.sa_handler = SIG_IGN}, before[3];
    int status = -1;
    pid_t child;
    for (int i = 0; i < 3; i++) {
        if (numbers[i] == SIGTSTP)
            action.sa_handler = SIG_DFL;
        sigaction(numbers[i], &action, &before[i]);
    }
    child = start_editor(path);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    for (int i = 0; i < 3; i++)
        sigaction(numbers[i], &before[i], NULL);
    return status;
}

/* An editor that was killed leaves the terminal as it was before. */
static int run_editor(const char *path)
{
    struct termios modes;
    int is_known, status;
    repl_lend_typing();
    is_known = tcgetattr(STDIN_FILENO, &modes) == 0;
    status = run_guarded(path);
    if (is_known)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &modes);
    repl_take_typing_back();
    return status;
}

static char *edit_file(const char *path)
{
    char *text;
    int status = run_editor(path);
    if (status == -1)
        return fail("cannot start a process", strerror(errno));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return fail(editor(), "it failed, so nothing was taken over");
    text = read_text(path);
    return text != NULL ? text : fail(path, strerror(errno));
}

/* A new file in the folder for such, whose name goes into path, or -1. */
static int create_file(char *path, size_t room)
{
    const char *folder = getenv("TMPDIR");
    int file = -1;
    if (folder == NULL || folder[0] != '/')
        folder = "/tmp";
    for (int i = 0; i < MOST_NAMES && file < 0; i++) {
        snprintf(path, room, "%.200s/lumat-%ld-%d.lua", folder, (long)getpid(),
                 i);
        file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file < 0 && errno != EEXIST)
            break;
    }
    return file;
}

char *repl_edit_text(const char *text)
{
    char path[256], *edited;
    int file;
    if (lumat_is_safe())
        return fail(editor(), "--safe starts no programs");
    file = create_file(path, sizeof path);
    if (file < 0)
        return fail(path, strerror(errno));
    if (write_text(file, text) != 0 || close(file) != 0)
        edited = fail(path, strerror(errno));
    else
        edited = edit_file(path);
    unlink(path);
    return edited;
}
