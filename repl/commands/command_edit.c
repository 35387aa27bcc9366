/* Commands about typing itself. */
#include "command_list.h"
#include "history.h"
#include "keys.h"
#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A number: that entry of :history; a text: the last entry that has it; else
 * the last one. The command itself is the newest of all. */
static const char *find_entry(const char *rest)
{
    char *end;
    long number = strtol(rest, &end, 10);
    int last = repl_remembered_count() - 1;
    const char *newest = repl_last_remembered();
    if (newest != NULL && newest[strspn(newest, " \t")] == ':')
        last--;
    if (end != rest && *end == '\0')
        return number >= 1 && number <= last + 1
                   ? repl_remembered((int)number - 1)
                   : NULL;
    while (last >= 0 && strstr(repl_remembered(last), rest) == NULL)
        last--;
    return repl_remembered(last);
}

static void complain_missing(const char *rest)
{
    char message[128];
    if (rest[0] == '\0')
        snprintf(message, sizeof message, ":edit: there is no entry yet");
    else
        snprintf(message, sizeof message,
                 ":edit: no entry '%.60s'; :history lists them", rest);
    repl_complain(message);
}

/* What was saved comes to the next prompt, for RETURN to run it. */
void repl_run_edit(repl_session *session, const char *rest)
{
    const char *entry = find_entry(rest);
    char *text;
    (void)session;
    if (!isatty(STDIN_FILENO)) {
        repl_complain(":edit needs a terminal");
        return;
    }
    if (entry == NULL) {
        complain_missing(rest);
        return;
    }
    fflush(stdout);
    text = repl_edit_text(entry);
    if (text != NULL)
        repl_queue_entry(text, 0);
    free(text);
}

void repl_run_keys(repl_session *session, const char *rest)
{
    (void)session;
    (void)rest;
    repl_print_keys();
}
