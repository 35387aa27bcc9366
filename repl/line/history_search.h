/* Looking for an entry by a text in it that is typed first, as Alt-P, Alt-N and
 * vi's / ? n N do. What Readline 8.2 does for them frees the changes of a line
 * twice, and in vi's searches takes seconds over a long entry. */
#ifndef HISTORY_SEARCH_H
#define HISTORY_SEARCH_H

/* Commands of Readline's. */
int repl_search_older(int count, int key);
int repl_search_newer(int count, int key);
int repl_search_older_again(int count, int key);
int repl_search_newer_again(int count, int key);
int repl_search_as_vi(int count, int key);
int repl_search_as_vi_again(int count, int key);

#endif
