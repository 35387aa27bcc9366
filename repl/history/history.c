/* The history file. Sessions only ever append, each entry at once and under a
 * lock, so two at a time lose nothing and a killed one loses at most what was
 * being typed. Whoever starts cuts off what is over the cap. */
#include "history.h"

#include "terminal.h"

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
static int unread = -1;  /* the open file, until it is read */
static int held = -1;    /* the same for a session that may open no more */
static char *unsaved;    /* what could not be written yet, as the file has it */
static char *last_saved; /* the newest entry in the file */

/* Says once why entries are not kept; each next one is tried again. */
static void complain(const char *why)
{
    static int has_complained;
    if (!has_complained)
        lumat_print_visible(stderr, "note: the history is not kept: %s%s%s\n",
                            path, path[0] != '\0' ? ": " : "", why);
    has_complained = 1;
}

/* --- the form of the file -------------------------------------------------
 * Each entry stands behind a line with '#' and the time, as Readline and bash
 * write it. A line of an entry that looks like such a line has a backslash
 * before it. */

/* A file's text, and where each of its entries begins. */
typedef struct entries {
    char *text;
    size_t *starts; /* one more than count: the end */
    int count, room;
} entries;

static int is_time(const char *line)
{
    return line[0] == '#' && isdigit((unsigned char)line[1]);
}

/* Whether it reads "#<digit>…" behind any number of backslashes. */
static int looks_like_time(const char *line)
{
    return is_time(line + strspn(line, "\\"));
}

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return *line == '\n' ? line + 1 : line;
}

static int add_start(entries *all, size_t start)
{
    if (all->count + 1 >= all->room) {
        int room = 2 * all->room + 1024;
        size_t *starts = realloc(all->starts, (size_t)room * sizeof *starts);
        if (starts == NULL)
            return 0;
        all->starts = starts;
        all->room = room;
    }
    all->starts[all->count++] = start;
    return 1;
}

/* Finds the entries of the text, which belongs to them from then on. Returns 0
 * when memory is short. Lines before the first time are an entry each. */
static int find_entries(entries *all, char *text)
{
    const char *line = text;
    int timed = 0, ok = 1;
    *all = (entries){.text = text};
    for (; *line != '\0' && ok; line = next_line(line)) {
        timed |= is_time(line);
        if (is_time(line) || !timed)
            ok = add_start(all, (size_t)(line - text));
    }
    ok = ok && add_start(all, (size_t)(line - text));
    if (ok)
        all->count--;
    return ok;
}

static void free_entries(entries *all)
{
    free(all->text);
    free(all->starts);
}

/* The entry as it was typed. The caller frees it; NULL: memory is short. */
static char *entry_typed(const entries *all, int i)
{
    const char *line = all->text + all->starts[i];
    const char *end = all->text + all->starts[i + 1];
    char *entry = malloc((size_t)(end - line) + 1), *out = entry;
    if (entry == NULL)
        return NULL;
    if (is_time(line))
        line = next_line(line);
    while (line < end) {
        const char *next = next_line(line);
        if (looks_like_time(line))
            line++;
        memcpy(out, line, (size_t)(next - line));
        out += next - line;
        line = next;
    }
    if (out > entry && out[-1] == '\n')
        out--;
    *out = '\0';
    return entry;
}

/* The entry as the file has it, typed now. The caller frees it; NULL: memory is
 * short. */
static char *entry_filed(const char *entry)
{
    char *form = NULL;
    size_t length;
    FILE *out = open_memstream(&form, &length);
    if (out == NULL)
        return NULL;
    fprintf(out, "#%lld\n", (long long)time(NULL));
    for (const char *line = entry; *line != '\0';) {
        size_t count = strcspn(line, "\n");
        if (looks_like_time(line))
            fputc('\\', out);
        fwrite(line, 1, count, out);
        fputc('\n', out);
        line += count + (line[count] != '\0');
    }
    if (fclose(out) != 0) {
        free(form);
        return NULL;
    }
    return form;
}

/* --- the file ----------------------------------------------------------- */

static int open_file(void)
{
    if (held >= 0)
        return dup(held);
    return lumat_take_regular(
        open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600),
        NULL);
}

static int is_still_there(int file)
{
    struct stat opened, named;
    if (held >= 0)
        return 1;
    return fstat(file, &opened) == 0 && stat(path, &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* What is held stays open, so closing it alone would not unlock it. */
static void close_locked(int file)
{
    flock(file, LOCK_UN);
    close(file);
}

/* Opens and locks it; another session may have put a shorter one in its place
 * in the meantime. */
static int open_locked(void)
{
    for (;;) {
        int file = open_file();
        if (file < 0)
            return -1;
        if (flock(file, LOCK_EX) == 0 && is_still_there(file))
            return file;
        close(file);
        if (access(path, F_OK) != 0)
            return -1;
    }
}

/* Without the zeros that a crashed machine may leave in a file; what follows
 * them counts. */
static size_t drop_zeros(char *text, size_t length)
{
    size_t kept = 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] != '\0')
            text[kept++] = text[i];
    return kept;
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
    text[drop_zeros(text, (size_t)got)] = '\0';
    return text;
}

/* --- reading ------------------------------------------------------------ */

/* Puts a file with the newest entries in the place of the one that is locked,
 * which is named by a link perhaps. Where that fails, it stays as it was. */
static void replace_file(const entries *all, int first)
{
    char real[PATH_MAX], other[PATH_MAX + 8];
    size_t start = all->starts[first];
    int file, failed;
    if (realpath(path, real) == NULL)
        return;
    snprintf(other, sizeof other, "%s.new", real);
    file = open(other, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                0600);
    if (file < 0)
        return;
    failed = lumat_write_fully(file, all->text + start,
                               all->starts[all->count] - start, -1) != 0;
    failed |= lumat_sync(file) != 0;
    failed |= close(file) != 0;
    if (failed || rename(other, real) != 0)
        unlink(other);
}

static void cut_file(void)
{
    int file = open_locked();
    char *text = file >= 0 ? read_text(file) : NULL;
    entries all = {0};
    if (text != NULL && find_entries(&all, text) && all.count > MOST_ENTRIES)
        replace_file(&all, all.count - MOST_ENTRIES);
    free_entries(&all);
    if (file >= 0)
        close_locked(file);
}

static void remember(const entries *all, int i)
{
    char *entry = entry_typed(all, i);
    const char *last = repl_last_remembered();
    if (entry != NULL && entry[0] != '\0' &&
        (last == NULL || strcmp(last, entry) != 0))
        repl_remember(entry);
    free(last_saved);
    last_saved = entry;
}

static void read_file(int file)
{
    char *text = read_text(file);
    entries all = {0};
    int first = 0;
    repl_forget_over(MOST_ENTRIES);
    if (text != NULL && find_entries(&all, text)) {
        if (all.count > MOST_ENTRIES)
            first = all.count - MOST_ENTRIES;
        for (int i = first; i < all.count; i++)
            remember(&all, i);
    }
    free_entries(&all);
    if (first > 0)
        cut_file();
}

/* --- writing ------------------------------------------------------------ */

/* Adds text to what is to be written. */
static int queue(char *text)
{
    char *both = NULL;
    if (text == NULL)
        return 0;
    if (unsaved == NULL) {
        unsaved = text;
        return 1;
    }
    if (asprintf(&both, "%s%s", unsaved, text) < 0)
        both = NULL;
    free(text);
    if (both == NULL)
        return 0;
    free(unsaved);
    unsaved = both;
    return 1;
}

/* Does the file end amid a line, as after a crash or an editor? */
static int is_cut_off(int file, off_t end)
{
    char last;
    return end > 0 && pread(file, &last, 1, end - 1) == 1 && last != '\n';
}

/* Part of an entry, on a full disk, is taken back. */
static int append(int file, const char *text)
{
    off_t end = lseek(file, 0, SEEK_END);
    int error =
        is_cut_off(file, end) ? lumat_write_fully(file, "\n", 1, -1) : 0;
    if (error == 0)
        error = lumat_write_fully(file, text, strlen(text), -1);
    if (error == 0)
        return 0;
    if (end >= 0 && ftruncate(file, end) != 0)
        end = -1;
    errno = error;
    return -1;
}

/* Writes what was not written yet. */
static void save(void)
{
    int file = open_locked();
    if (file < 0 || append(file, unsaved) != 0) {
        complain(strerror(errno));
    } else {
        free(unsaved);
        unsaved = NULL;
    }
    if (file >= 0)
        close_locked(file);
}

/* --- the door ----------------------------------------------------------- */

static void make_private(int file)
{
    struct stat status;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
        (status.st_mode & 077) != 0 && fchmod(file, 0600) != 0)
        complain(strerror(errno));
}

void repl_history_open(void)
{
    int file;
    if (is_kept)
        return;
    if (!repl_user_path(path, sizeof path, "XDG_STATE_HOME", ".local/state",
                        "history")) {
        path[0] = '\0';
        complain("neither HOME nor XDG_STATE_HOME names a folder");
        return;
    }
    is_kept = 1;
    if (repl_make_folders(path) == 0 && (file = open_file()) >= 0) {
        make_private(file);
    } else {
        complain(lumat_error_text(errno));
        /* what is there can be used */
        file = lumat_take_regular(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK),
                                  NULL);
    }
    unread = file;
}

void repl_history_hold(void)
{
    repl_history_open();
    if (unread >= 0)
        held = dup(unread);
}

void repl_history_read(void)
{
    if (unread < 0)
        return;
    read_file(unread);
    close(unread);
    unread = -1;
}

/* A line that Ctrl-C dropped is remembered, but not in the file. */
void repl_history_add(const char *entry)
{
    const char *last = repl_last_remembered();
    if (entry[0] == ' ')
        return;
    if (last == NULL || strcmp(last, entry) != 0)
        repl_remember(entry);
    if (last_saved != NULL && strcmp(last_saved, entry) == 0)
        return;
    free(last_saved);
    last_saved = strdup(entry);
    if (is_kept && queue(entry_filed(entry)))
        save();
}
