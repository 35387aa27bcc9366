/* The folder of compiled kernels: what is kept is found again; what is damaged,
 * of another version, or could be another's is not; it stays small, and is the
 * user's alone. */
#include "jit.h"
#include "cpu_testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char home[64], cache[96];
static const char code[] = "machine code of a kernel, more or less";

static jit_form form(int length)
{
    jit_form f = {.compute = GPU_F32, .inputs = 1, .is_row = 1};
    f.length = (uint8_t)length;
    return f;
}

static void keep(int number)
{
    jit_form f = form(number);
    jit_keep(&f, 90, 13000, code, sizeof code, JIT_MOST_KEPT);
}

static int is_found(int number)
{
    jit_form f = form(number);
    size_t bytes = 0;
    char *image = jit_recall(&f, 90, 13000, &bytes);
    if (!image)
        return 0;
    assert_int_equal(bytes, sizeof code);
    assert_memory_equal(image, code, sizeof code);
    free(image);
    return 1;
}

/* The path of the only file there; its number otherwise. */
static int find_file(char path[512])
{
    int count = 0;
    DIR *entries = opendir(cache);
    assert_non_null(entries);
    for (struct dirent *e; (e = readdir(entries)) != NULL;)
        if (e->d_name[0] != '.') {
            snprintf(path, 512, "%s/%.300s", cache, e->d_name);
            count++;
        }
    closedir(entries);
    return count;
}

static int start(void **state)
{
    (void)state;
    strcpy(home, "/tmp/lumat-folder-XXXXXX");
    if (!mkdtemp(home))
        return -1;
    snprintf(cache, sizeof cache, "%s/.cache/lumat", home);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", home, 1);
    jit_find_folder();
    return 0;
}

static int end(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", home);
    return system(command);
}

static void what_is_kept_is_found(void **state)
{
    struct stat info;
    char path[512];
    (void)state;
    assert_false(is_found(1));
    assert_int_equal(access(cache, F_OK), -1); /* looking makes no folder */
    keep(1);
    assert_true(is_found(1));
    assert_false(is_found(2));
    assert_int_equal(stat(cache, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    assert_int_equal(find_file(path), 1);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

static void other_versions_are_not(void **state)
{
    jit_form f = form(1);
    size_t bytes;
    (void)state;
    keep(1);
    assert_null(jit_recall(&f, 89, 13000, &bytes));
    assert_null(jit_recall(&f, 90, 13010, &bytes));
}

/* Every byte counts, and the last ones missing. A damaged file is replaced. */
static void damage_is_seen(void **state)
{
    char path[512];
    struct stat info;
    (void)state;
    keep(1);
    assert_int_equal(find_file(path), 1);
    assert_int_equal(stat(path, &info), 0);
    for (off_t at = 0; at < info.st_size; at++) {
        char byte, other;
        int fd = open(path, O_RDWR);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        other = (char)(byte ^ 4);
        assert_int_equal(pwrite(fd, &other, 1, at), 1);
        if (is_found(1))
            fail_msg("byte %ld of %ld does not count", (long)at,
                     (long)info.st_size);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        close(fd);
    }
    assert_true(is_found(1));
    assert_int_equal(truncate(path, info.st_size - 1), 0);
    assert_false(is_found(1));
    keep(1);
    assert_true(is_found(1));
    assert_int_equal(find_file(path), 1);
}

static void what_others_may_write_is_not_run(void **state)
{
    char path[512], link[600];
    (void)state;
    keep(1);
    assert_int_equal(find_file(path), 1);
    assert_int_equal(chmod(path, 0620), 0);
    assert_false(is_found(1));
    assert_int_equal(chmod(path, 0600), 0);
    assert_true(is_found(1));
    assert_int_equal(chmod(cache, 0770), 0);
    assert_false(is_found(1));
    keep(2); /* nor is anything put there */
    assert_int_equal(find_file(path), 1);
    assert_int_equal(chmod(cache, 0700), 0);
    snprintf(link, sizeof link, "%s.moved", path);
    assert_int_equal(rename(path, link), 0);
    assert_int_equal(symlink(link, path), 0);
    assert_false(is_found(1));
    if (geteuid() == 0) {
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rename(link, path), 0);
        assert_true(is_found(1));
        assert_int_equal(chown(path, 4711, (gid_t)-1), 0);
        assert_false(is_found(1));
        assert_int_equal(chown(path, 0, (gid_t)-1), 0);
        assert_int_equal(chown(cache, 4711, (gid_t)-1), 0);
        assert_false(is_found(1));
    }
}

static void a_folder_that_is_a_link_is_none(void **state)
{
    char other[128], command[600];
    (void)state;
    keep(1);
    snprintf(other, sizeof other, "%s.other", cache);
    snprintf(command, sizeof command, "mv %s %s && ln -s %s %s", cache, other,
             other, cache);
    assert_int_equal(system(command), 0);
    assert_false(is_found(1));
}

/* The oldest go, of those that were used the one used first. */
static void it_stays_small(void **state)
{
    enum { MANY = 12 };
    char path[512];
    struct stat info;
    (void)state;
    for (int n = 1; n <= MANY; n++) {
        keep(n);
        if (n == 1) {
            assert_int_equal(find_file(path), 1);
            assert_int_equal(stat(path, &info), 0);
        }
        struct timespec times[2] = {{.tv_sec = 1000 + n}, {.tv_sec = 1000 + n}};
        DIR *entries = opendir(cache);
        for (struct dirent *e; (e = readdir(entries)) != NULL;) {
            struct stat each;
            if (fstatat(dirfd(entries), e->d_name, &each, 0) == 0 &&
                S_ISREG(each.st_mode) && each.st_mtime > 100000)
                utimensat(dirfd(entries), e->d_name, times, 0);
        }
        closedir(entries);
    }
    assert_int_equal(find_file(path), MANY);
    assert_true(is_found(2)); /* which makes it the youngest */
    jit_form f = form(MANY + 1);
    jit_keep(&f, 90, 13000, code, sizeof code, (size_t)info.st_size * 8);
    assert_int_equal(find_file(path), 6);
    assert_true(is_found(2));
    assert_true(is_found(MANY + 1));
    assert_true(is_found(MANY));
    assert_false(is_found(1));
    assert_false(is_found(3));
}

static void leftovers_go(void **state)
{
    char path[512], old[600];
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    (void)state;
    keep(1);
    snprintf(old, sizeof old, "%s/abc-1.kernel.tmp", cache);
    int fd = open(old, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(utimensat(AT_FDCWD, old, times, 0), 0);
    keep(1);
    assert_int_equal(find_file(path), 1);
}

static void xdg_comes_first(void **state)
{
    char path[128], text[512];
    (void)state;
    snprintf(path, sizeof path, "%s/elsewhere", home);
    assert_int_equal(mkdir(path, 0755), 0);
    setenv("XDG_CACHE_HOME", path, 1);
    jit_find_folder();
    keep(1);
    assert_true(is_found(1));
    snprintf(text, sizeof text, "%s/lumat", path);
    assert_int_equal(access(text, F_OK), 0);
    assert_int_equal(access(cache, F_OK), -1);
    setenv("XDG_CACHE_HOME", "not/from/the/root", 1);
    jit_find_folder();
    keep(1);
    assert_int_equal(access(cache, F_OK), 0);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    jit_find_folder();
    keep(1);
    assert_false(is_found(1));
}

int main(void)
{
#define TEST_OF(f) cmocka_unit_test_setup_teardown(f, start, end)
    const struct CMUnitTest tests[] = {
        TEST_OF(what_is_kept_is_found),
        TEST_OF(other_versions_are_not),
        TEST_OF(damage_is_seen),
        TEST_OF(what_others_may_write_is_not_run),
        TEST_OF(a_folder_that_is_a_link_is_none),
        TEST_OF(it_stays_small),
        TEST_OF(leftovers_go),
        TEST_OF(xdg_comes_first),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
