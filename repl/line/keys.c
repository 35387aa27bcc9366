/* The keys of the prompt: one table names the commands, binds them, and is
 * what :keys prints. */
#include "keys.h"

#include "history.h"
#include "line.h"

#include <stdio.h>
#include <string.h>
#include <readline/readline.h>

/* A command of ours; without a name, what Readline or the terminal does. */
static const struct row {
    const char *name;
    rl_command_func_t *run;
    const char *keys; /* between blanks */
    const char *label, *help;
} rows[] = {
    {"accept-or-newline", repl_accept, NULL, "RETURN",
     "run the entry, or begin a row while it is incomplete"},
    {"insert-newline", repl_insert_row, "\\e\\C-m \\e\\C-j", "Alt-RETURN",
     "begin a row in any case"},
    {"previous-row-or-history", repl_row_up, NULL, "Up Ctrl-P",
     "the row above, then earlier entries that begin like this one"},
    {"next-row-or-history", repl_row_down, NULL, "Down Ctrl-N",
     "the row below, then later entries"},
    {NULL, NULL, NULL, "Ctrl-R", "look for an earlier entry; Ctrl-G gives up"},
    {"forward-char-or-suggestion", repl_forward_character, NULL, "Right Ctrl-F",
     "a character on; at the end take the suggestion"},
    {"forward-word-or-suggestion", repl_forward_word, "\\e[1;5C",
     "Alt-F Ctrl-Right", "a word on; at the end take one of the suggestion"},
    {"end-of-row", repl_to_row_end, NULL, "End Ctrl-E",
     "the row's end, then the entry's, then take the suggestion"},
    {"beginning-of-row", repl_to_row_start, NULL, "Home Ctrl-A",
     "the row's start, then the entry's"},
    {"accept-suggestion", repl_take_suggestion, NULL, NULL, NULL},
    {"previous-history-entry", repl_recall_older, NULL, NULL, NULL},
    {"next-history-entry", repl_recall_newer, NULL, NULL, NULL},
    {NULL, NULL, NULL, "TAB", "complete the word; twice: list what fits"},
    {"kill-row", repl_kill_row, NULL, "Ctrl-K", "cut to the row's end"},
    {"kill-row-back", repl_kill_row_back, NULL, "Ctrl-U",
     "cut to the row's start"},
    {NULL, NULL, NULL, "Ctrl-W", "cut a word before the cursor"},
    {NULL, NULL, NULL, "Ctrl-Y", "put back what was cut"},
    {NULL, NULL, NULL, "Ctrl-_", "undo"},
    {"edit-in-editor", repl_edit_elsewhere, "\\C-x\\C-e", "Ctrl-X Ctrl-E",
     "edit the entry in $VISUAL or $EDITOR"},
    {NULL, NULL, NULL, "Ctrl-L", "clear the screen"},
    {NULL, NULL, NULL, "Ctrl-C",
     "drop the entry, which Up brings back; stop what runs"},
    {NULL, NULL, NULL, "Ctrl-D",
     "leave, when nothing is typed; else delete a character"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* Keys that begin with ESC and a letter end vi's insertion. */
static int suits_vi(const char *key)
{
    return strncmp(key, "\\e", 2) != 0 || strchr("[O", key[2]) != NULL;
}

static void bind_keys(const struct row *row)
{
    const char *keys = row->keys;
    char key[16];
    while (keys != NULL && sscanf(keys, "%15s", key) == 1) {
        rl_bind_keyseq_in_map(key, row->run, emacs_standard_keymap);
        if (suits_vi(key))
            rl_bind_keyseq_in_map(key, row->run, vi_insertion_keymap);
        keys += strlen(key);
        keys += strspn(keys, " ");
    }
}

void repl_keys_open(void)
{
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].run == NULL)
            continue;
        rl_add_defun(rows[i].name, rows[i].run, -1);
        bind_keys(&rows[i]);
    }
}

/* What Readline does with a line, and ours with its rows. The first ones suit
 * vi's commands, too; its motions are to stay what they are. */
static const struct twin {
    rl_command_func_t *theirs, *ours;
} twins[] = {
    {rl_newline, repl_accept},
    {rl_get_previous_history, repl_row_up},
    {rl_get_next_history, repl_row_down},
    {rl_bracketed_paste_begin, repl_paste},
    {rl_noninc_reverse_search, repl_search_older},
    {rl_noninc_forward_search, repl_search_newer},
    {rl_noninc_reverse_search_again, repl_search_older_again},
    {rl_noninc_forward_search_again, repl_search_newer_again},
    {rl_vi_search, repl_search_as_vi},
    {rl_vi_search_again, repl_search_as_vi_again},
    {rl_beg_of_line, repl_to_row_start},
    {rl_end_of_line, repl_to_row_end},
    {rl_forward_char, repl_forward_character},
    {rl_forward_word, repl_forward_word},
    {rl_kill_line, repl_kill_row},
    {rl_unix_line_discard, repl_kill_row_back},
    {rl_history_search_backward, repl_recall_older},
    {rl_history_search_forward, repl_recall_newer},
};

enum { FOR_VI = 10, TWINS = sizeof twins / sizeof *twins };

static rl_command_func_t *ours(rl_command_func_t *run, int count)
{
    for (int i = 0; i < count; i++)
        if (twins[i].theirs == run)
            return twins[i].ours;
    return run;
}

/* Keys of a map and, so deep, of those behind prefixes in it. */
static void adopt(Keymap map, int count, int depth)
{
    for (int key = 0; key < KEYMAP_SIZE; key++)
        if (map[key].type == ISFUNC)
            map[key].function = ours(map[key].function, count);
        else if (map[key].type == ISKMAP && map[key].function != NULL &&
                 depth > 0)
            adopt((Keymap)map[key].function, count, depth - 1);
}

/* The system's inputrc binds keys to Readline's own commands, and so does
 * Readline itself for the terminal's kill character. */
void repl_keys_begin(void)
{
    adopt(emacs_standard_keymap, TWINS, 6);
    adopt(vi_insertion_keymap, TWINS, 6);
    adopt(vi_movement_keymap, FOR_VI, 6);
}

static void print_names(void)
{
    int column = 80;
    for (int i = 0; i < ROWS; i++) {
        int length = rows[i].name != NULL ? (int)strlen(rows[i].name) : 0;
        if (length == 0)
            continue;
        if (column + length > 72)
            column = printf("\n   ") - 1;
        column += printf(" %s", rows[i].name);
    }
    putchar('\n');
}

void repl_print_keys(void)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].label != NULL)
            printf("  %-17s %s\n", rows[i].label, rows[i].help);
    fputs("  Readline's other keys work, too. ~/.inputrc may bind any, under\n"
          "  \"$if lumat\" also to these names:",
          stdout);
    print_names();
}
