/* The history file: entries of one or more lines, each behind a line with '#'
 * and the time, the form that Readline and bash use. A line of an entry that
 * looks like such a line has a backslash before it.
 *
 * Sessions only ever append, each entry with one write under a lock, so two at
 * a time lose nothing and a killed one loses at most what was being typed. */
#include "history.h"

#include "line.h"
#include "paths.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ENTRIES = 20000 };

static char path[PATH_MAX];
static int is_kept;

static void give_up(const char *why)
{
    is_kept = 0;
    fprintf(stderr, "note: the history is not kept: %s%s%s\n", path,
            path[0] != '\0' ? ": " : "", why);
}

/* Whether a line reads "#<digit>…" behind any number of backslashes. */
static int looks_like_time(const char *line)
{
    const char *mark = line + strspn(line, "\\");
    return mark[0] == '#' && isdigit((unsigned char)mark[1]);
}

static int is_time(const char *line)
{
    return line[0] == '#' && isdigit((unsigned char)line[1]);
}

/* --- reading ------------------------------------------------------------ */

/* Adds a line of the file, without its newline, to the entry being read. */
static void add_line(char *entry, size_t *length, const char *line)
{
    size_t count;
    if (looks_like_time(line))
        line++;
    count = strlen(line);
    if (*length > 0)
        entry[(*length)++] = '\n';
    memcpy(entry + *length, line, count);
    *length += count;
}

static void end_entry(char *entry, size_t *length)
{
    entry[*length] = '\0';
    if (*length > 0)
        repl_remember(entry);
    *length = 0;
}

/* Lines before the first time are entries of their own. */
static void read_entries(char *text, char *entry)
{
    size_t length = 0;
    int timed = 0;
    for (char *line = text, *next; *line != '\0'; line = next) {
        char *end = line + strcspn(line, "\n");
        next = *end != '\0' ? end + 1 : end;
        *end = '\0';
        if (is_time(line) || !timed)
            end_entry(entry, &length);
        if (is_time(line))
            timed = 1;
        else
            add_line(entry, &length, line);
    }
    end_entry(entry, &length);
}

/* Everything in an open file as one string, or NULL. */
static char *read_text(int file)
{
    struct stat status;
    ssize_t got = -1;
    char *text = NULL;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode))
        text = malloc((size_t)status.st_size + 1);
    if (text != NULL)
        got = pread(file, text, (size_t)status.st_size, 0);
    if (got < 0) {
        free(text);
        return NULL;
    }
    text[got] = '\0';
    return text;
}

static void read_file(int file)
{
    char *text = read_text(file);
    char *entry = text != NULL ? malloc(strlen(text) + 1) : NULL;
    if (entry != NULL)
        read_entries(text, entry);
    free(entry);
    free(text);
    repl_forget_over(MOST_ENTRIES);
}

/* --- writing ------------------------------------------------------------ */

static int open_file(void)
{
    return open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* The entry as the file has it. */
static char *file_form(const char *entry, size_t *length)
{
    FILE *out;
    char *form = NULL;
    if ((out = open_memstream(&form, length)) == NULL)
        return NULL;
    fprintf(out, "#%lld\n", (long long)time(NULL));
    for (const char *line = entry; *line != '\0';) {
        size_t count = strcspn(line, "\n");
        if (looks_like_time(line))
            fputc('\\', out);
        fprintf(out, "%.*s\n", (int)count, line);
        line += count + (line[count] != '\0');
    }
    if (fclose(out) != 0) {
        free(form);
        return NULL;
    }
    return form;
}

static void append(const char *entry)
{
    size_t length;
    int file = open_file();
    char *form = file >= 0 ? file_form(entry, &length) : NULL;
    errno = file >= 0 ? ENOMEM : errno;
    if (form == NULL || flock(file, LOCK_EX) != 0 ||
        write(file, form, length) != (ssize_t)length)
        give_up(strerror(errno));
    free(form);
    if (file >= 0)
        close(file);
}

/* --- the door ----------------------------------------------------------- */

void repl_history_open(void)
{
    int file;
    if (!repl_user_path(path, sizeof path, "XDG_STATE_HOME", ".local/state",
                        "history")) {
        path[0] = '\0';
        give_up("neither HOME nor XDG_STATE_HOME names a folder");
        return;
    }
    if (repl_make_folders(path) != 0 || (file = open_file()) < 0) {
        give_up(strerror(errno));
        return;
    }
    is_kept = 1;
    if (fchmod(file, 0600) != 0)
        give_up(strerror(errno));
    read_file(file);
    close(file);
}

void repl_history_add(const char *entry)
{
    const char *last = repl_last_remembered();
    if (entry[0] == ' ' || (last != NULL && strcmp(last, entry) == 0))
        return;
    repl_remember(entry);
    if (is_kept)
        append(entry);
}
