/* SPDX-License-Identifier: MIT
 * Files: mapping, reading, atomic replacing (also with the process killed in the middle), locks. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/file_stream.h"
#include "tandem/files.h"
#include "tests/suite_base.h"

/* tnd_test_temp's result is short-lived; the tests here need several names at once. */
static char *temp(const char *name)
{
    return strdup(tnd_test_temp(name));
}

static void put(const char *path, const char *text)
{
    CU_ASSERT_TRUE(tnd_test_write_file(path, text, strlen(text)));
}

static void check_file(const char *path, const char *text)
{
    size_t n;
    char *got = tnd_test_read_file(path, &n);
    check_string(got, text);
    free(got);
}

/* Entries of the folder of `path` whose names contain `part`. */
static int count_files(const char *path, const char *part)
{
    char folder[4096];
    snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = '\0';
    int n = 0;
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        n += strstr(entry->d_name, part) != NULL ? 1 : 0;
    }
    closedir(listing);
    return n;
}

static void mapped_and_read_files_have_the_same_bytes(void)
{
    char *path = temp("some.bin");
    struct tnd_file mapped, read;
    long live = tnd_alloc_live();
    put(path, "hello, bytes");
    check_ok(tnd_file_map(path, false, &mapped, NULL));
    check_ok(tnd_file_read(path, 0, &read, NULL));
    check_int(mapped.bytes, 12);
    check_int(read.bytes, 12);
    check_bits(mapped.data, "hello, bytes", 12, "mapped");
    tnd_file_unload(&mapped);
    tnd_file_unload(&read);
    check_bits(mapped.data, "hello, bytes", 12, "unloaded");
    check_bits(read.data, "hello, bytes", 13, "read, with its zero byte");
    tnd_file_close(&mapped);
    tnd_file_close(&read);
    tnd_file_close(&read);
    CU_ASSERT_PTR_NULL(read.data);
    check_int(tnd_alloc_live(), live);
    free(path);
}

static void empty_files_have_no_bytes_and_still_an_address(void)
{
    char *path = temp("empty.bin");
    struct tnd_file file;
    put(path, "");
    check_ok(tnd_file_map(path, false, &file, NULL));
    CU_ASSERT_TRUE(file.bytes == 0 && file.data != NULL);
    tnd_file_close(&file);
    check_ok(tnd_file_read(path, 0, &file, NULL));
    CU_ASSERT_TRUE(file.bytes == 0 && file.data != NULL);
    tnd_file_close(&file);
    free(path);
}

static void what_is_no_file_is_refused_by_name(void)
{
    struct tandem_error error;
    struct tnd_file file = {(const uint8_t *)"x", 1, false};
    char *missing = temp("is-not-there");
    check_status(tnd_file_map(missing, false, &file, &error), TANDEM_E_FILE, "is-not-there",
                 &error);
    check_status(tnd_file_read(missing, 0, &file, &error), TANDEM_E_FILE, "No such file", &error);
    CU_ASSERT_TRUE(file.bytes == 1);
    CU_ASSERT_FALSE(tnd_file_exists(missing));
    CU_ASSERT_TRUE(tnd_file_exists("/"));
    free(missing);
}

/* Nobody is at the other end of the pipe: opened as files are, it would wait for ever. */
static void pipes_sockets_devices_and_folders_are_refused_at_once_by_every_reader(void)
{
    char *fifo = temp("fifo"), *socket_path = temp("sock"), *lock_of = temp("held");
    char *lock_fifo = temp("held.lock");
    const struct {
        const char *path, *kind;
    } cases[] = {{"/", "a folder"},
                 {fifo, "a pipe"},
                 {socket_path, "a socket"},
                 {"/dev/zero", "a device"},
                 {"/dev/null", "a device"}};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct tandem_error error;
    struct tnd_file file;
    void *bytes = NULL;
    size_t n = 0;
    int lock = -1;
    CU_ASSERT_EQUAL_FATAL(mkfifo(fifo, 0666), 0);
    CU_ASSERT_EQUAL_FATAL(mkfifo(lock_fifo, 0666), 0);
    CU_ASSERT_TRUE_FATAL(strlen(socket_path) < sizeof(address.sun_path));
    strcpy(address.sun_path, socket_path);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *path = cases[i].path, *kind = cases[i].kind;
        check_status(tnd_file_map(path, false, &file, &error), TANDEM_E_FILE, kind, &error);
        check_status(tnd_file_read(path, 0, &file, &error), TANDEM_E_FILE, kind, &error);
        check_status(tandem_file_read(path, 0, &bytes, &n, &error), TANDEM_E_FILE, "not a regular",
                     &error);
        check_status(tandem_file_write(path, "x", 1, true, &error), TANDEM_E_FILE, "regular",
                     &error);
    }
    check_status(tnd_file_lock(lock_of, 0, &lock, &error), TANDEM_E_FILE, "a pipe", &error);
    close(fd);
    unlink(fifo);
    unlink(lock_fifo);
    unlink(socket_path);
    free(fifo);
    free(socket_path);
    free(lock_of);
    free(lock_fifo);
}

static void what_cannot_be_looked_at_is_not_called_absent(void)
{
    char *loop = temp("loop"); /* any error but "no such file" */
    char *below = temp("loop/table.json");
    unlink(loop);
    CU_ASSERT_EQUAL_FATAL(symlink("loop", loop), 0);
    CU_ASSERT_TRUE(tnd_file_exists(loop));
    CU_ASSERT_TRUE(tnd_file_exists(below));
    CU_ASSERT_FALSE(tnd_file_exists("/dev/null/table.json"));
    free(loop);
    free(below);
}

static void reading_stops_at_the_limit_and_without_memory(void)
{
    struct tandem_error error;
    struct tnd_file file;
    char *path = temp("limit.bin");
    long live = tnd_alloc_live();
    put(path, "0123456789");
    check_ok(tnd_file_read(path, 10, &file, NULL));
    tnd_file_close(&file);
    check_status(tnd_file_read(path, 9, &file, &error), TANDEM_E_LIMIT, "9 bytes", &error);
    static const char sizeless[] = "/proc/self/smaps"; /* some 20 KB whose size nobody knows */
    if (tnd_file_exists(sizeless)) {
        check_status(tnd_file_read(sizeless, 8000, &file, &error), TANDEM_E_LIMIT, NULL, &error);
        for (long n = 1; n < 3; n++) {
            tnd_alloc_fail_after(n);
            check_status(tnd_file_read(sizeless, 1 << 20, &file, &error), TANDEM_E_MEMORY, "smaps",
                         &error);
        }
        tnd_alloc_fail_after(-1);
    }
    check_int(tnd_alloc_live(), live);
    free(path);
}

static void writing_replaces_the_whole_file_and_keeps_its_mode(void)
{
    char *path = temp("table.txt");
    struct stat info;
    check_ok(tnd_file_write_atomic(path, "first", 5, NULL));
    check_file(path, "first");
    chmod(path, 0600);
    check_ok(tnd_file_write_atomic(path, "2nd", 3, NULL));
    check_file(path, "2nd");
    CU_ASSERT_TRUE(stat(path, &info) == 0 && (info.st_mode & 0777) == 0600);
    check_ok(tnd_file_write_atomic(path, "", 0, NULL));
    check_file(path, "");
    check_int(count_files(path, ".tmp"), 0);
    free(path);
}

static void writing_through_a_link_replaces_the_file_behind_it(void)
{
    char *path = temp("behind.txt");
    char *alias = temp("link.txt");
    struct stat info;
    put(path, "old");
    CU_ASSERT_EQUAL(symlink(path, alias), 0);
    check_ok(tnd_file_write_atomic(alias, "new", 3, NULL));
    check_file(path, "new");
    CU_ASSERT_TRUE(lstat(alias, &info) == 0 && S_ISLNK(info.st_mode));
    free(path);
    free(alias);
}

static enum tnd_file_step planned_step;

static bool refuse_planned_step(enum tnd_file_step step)
{
    return step != planned_step;
}

static void a_failed_write_leaves_the_old_file_and_nothing_else(void)
{
    char *path = temp("failing.txt");
    struct tandem_error error;
    put(path, "old");
    for (int step = TND_FILE_CREATED; step < TND_FILE_RENAMED; step++) {
        planned_step = (enum tnd_file_step)step;
        tnd_file_set_hook(refuse_planned_step);
        check_status(tnd_file_write_atomic(path, "fresh", 5, &error), TANDEM_E_FILE, "failing.txt",
                     &error);
        tnd_file_set_hook(NULL);
        check_file(path, "old");
        check_int(count_files(path, ".tmp"), 0);
    }
    check_status(tnd_file_write_atomic("/nowhere/at/all", "x", 1, &error), TANDEM_E_FILE,
                 "/nowhere/at/all", &error);
    check_status(tnd_file_write_atomic("/", "x", 1, &error), TANDEM_E_FILE, "regular", &error);
    free(path);
}

static bool die_at_planned_step(enum tnd_file_step step)
{
    if (step == planned_step) {
        raise(SIGKILL);
    }
    return true;
}

static bool has_nameless_files(const char *path)
{
    struct tnd_file_stream stream;
    check_ok(tnd_file_stream_open(path, false, &stream, NULL));
    const bool has = stream.is_nameless;
    tnd_file_stream_abandon(&stream);
    return has;
}

static void a_kill_in_the_middle_of_writing_leaves_the_old_file(void)
{
    char *path = temp("killed.txt");
    for (int step = TND_FILE_CREATED; step <= TND_FILE_RENAMED; step++) {
        put(path, "old");
        pid_t child = fork();
        if (child == 0) {
            planned_step = (enum tnd_file_step)step;
            tnd_file_set_hook(die_at_planned_step);
            tnd_file_write_atomic(path, "fresh", 5, NULL);
            _exit(0);
        }
        int status = 0;
        CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
        CU_ASSERT_TRUE(WIFSIGNALED(status));
        check_file(path, step < TND_FILE_RENAMED ? "old" : "fresh");
        if (has_nameless_files(path)) {
            check_int(count_files(path, ".tmp"), 0);
        }
    }
    free(path);
}

static void readers_beside_writers_see_whole_files_only(void)
{
    enum { N = 20000, ROUNDS = 40 };
    char *path = temp("shared.bin");
    char *bytes = malloc(N);
    pid_t children[2];
    memset(bytes, 'a', N);
    check_ok(tnd_file_write_atomic(path, bytes, N, NULL));
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            bool ok = true;
            for (int round = 0; round < ROUNDS; round++) {
                memset(bytes, 'a' + (round + i) % 26, N);
                ok = ok && tnd_file_write_atomic(path, bytes, N, NULL) == TANDEM_OK;
            }
            _exit(ok ? 0 : 1);
        }
    }
    int running = 2, wrong = 0;
    while (running > 0) {
        struct tnd_file file;
        int status;
        if (tnd_file_read(path, 0, &file, NULL) == TANDEM_OK) {
            wrong += file.bytes != N || file.data[0] != file.data[N / 2] ||
                     file.data[0] != file.data[N - 1];
            tnd_file_close(&file);
        } else {
            wrong++;
        }
        for (int i = 0; i < 2; i++) {
            if (children[i] != 0 && waitpid(children[i], &status, WNOHANG) == children[i]) {
                wrong += status != 0;
                children[i] = 0;
                running--;
            }
        }
    }
    check_int(wrong, 0);
    free(bytes);
    free(path);
}

static void folders_of_a_path_are_made_and_may_be_there(void)
{
    char *path = temp("x/yy/z/file");
    char *blocked = temp("x/file/below/it");
    char *file = temp("x/file");
    struct tandem_error error;
    check_ok(tnd_file_make_folders(path, NULL));
    check_ok(tnd_file_make_folders(path, NULL));
    check_ok(tnd_file_make_folders("no-folder", NULL));
    check_ok(tnd_file_write_atomic(path, "1", 1, NULL));
    put(file, "in the way");
    check_status(tnd_file_make_folders(blocked, &error), TANDEM_E_FILE, "x/file", &error);
    /* The suite removes its folder, but not what is nested in it. */
    unlink(path);
    unlink(file);
    for (int i = 0; i < 3; i++) {
        *strrchr(path, '/') = '\0';
        rmdir(path);
    }
    free(path);
    free(blocked);
    free(file);
}

/* What writers leave where no nameless files are to be had. */
static void temporary_files_have_names_of_their_own_and_go_after_a_day(void)
{
    enum { A_DAY = 86400 };
    char *path = temp("aged.txt");
    char *names[] = {temp("tandem-0123456789abcdef.tmp"), temp("tandem-fedcba9876543210.tmp"),
                     temp("tandem-notes.tmp")};
    struct tnd_file_stream streams[2];
    const time_t now = time(NULL);
    for (int i = 0; i < 3; i++) { /* of an hour ago, of yesterday, somebody else's */
        const time_t then = now - (i == 0 ? 3600 : A_DAY + 60);
        const struct timespec times[2] = {{then, 0}, {then, 0}};
        put(names[i], "left");
        check_int(utimensat(AT_FDCWD, names[i], times, 0), 0);
        CU_ASSERT_EQUAL(tnd_file_is_temporary(strrchr(names[i], '/') + 1), i < 2);
    }
    for (int i = 0; i < 2; i++) {
        check_ok(tnd_file_stream_open(path, false, &streams[i], NULL));
    }
    CU_ASSERT_TRUE(strcmp(streams[0].temporary, streams[1].temporary) != 0);
    CU_ASSERT_TRUE(tnd_file_is_temporary(strrchr(streams[0].temporary, '/') + 1));
    for (int i = 0; i < 2; i++) {
        check_ok(tnd_file_stream_write(&streams[i], i == 0 ? "a" : "b", 1, NULL));
        check_ok(tnd_file_stream_commit(&streams[i], NULL));
    }
    check_file(path, "b");
    CU_ASSERT_TRUE(tnd_file_exists(names[0]));
    CU_ASSERT_FALSE(tnd_file_exists(names[1]));
    CU_ASSERT_TRUE(tnd_file_exists(names[2]));
    for (int i = 0; i < 3; i++) {
        unlink(names[i]);
        free(names[i]);
    }
    free(path);
}

static void a_name_of_full_length_can_be_written_and_a_longer_one_is_refused_at_once(void)
{
    char name[258];
    struct tandem_error error;
    struct tnd_file_stream stream;
    memset(name, 'n', sizeof(name));
    name[255] = '\0';
    char *path = temp(name);
    check_ok(tnd_file_write_atomic(path, "long", 4, NULL));
    check_file(path, "long");
    unlink(path);
    free(path);
    name[255] = 'n';
    name[256] = '\0';
    path = temp(name);
    check_status(tnd_file_stream_open(path, false, &stream, &error), TANDEM_E_FILE, "too long",
                 &error);
    free(path);
}

static void a_lock_keeps_others_out_until_it_is_released(void)
{
    char *path = temp("locked.txt");
    int lock = -1, pipe_ends[2];
    struct tandem_error error;
    CU_ASSERT_EQUAL_FATAL(pipe(pipe_ends), 0);
    check_ok(tnd_file_lock(path, TND_LOCK_WAIT_MS, &lock, NULL));
    pid_t child = fork();
    if (child == 0) {
        close(lock); /* the inherited descriptor shares the parent's lock */
        int mine;
        bool ok = tnd_file_lock(path, TND_LOCK_WAIT_MS, &mine, NULL) == TANDEM_OK;
        ok = ok && write(pipe_ends[1], "c", 1) == 1;
        _exit(ok ? 0 : 1);
    }
    CU_ASSERT_EQUAL(write(pipe_ends[1], "p", 1), 1);
    tnd_file_unlock(lock);
    int status = 1;
    waitpid(child, &status, 0);
    CU_ASSERT_EQUAL(status, 0);
    char order[3] = "";
    CU_ASSERT_EQUAL(read(pipe_ends[0], order, 2), 2);
    check_string(order, "pc");
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    check_status(tnd_file_lock("/nowhere/at/all", 0, &lock, &error), TANDEM_E_FILE, "lock", &error);
    free(path);
}

static void what_every_user_may_write_to_is_not_trusted(void)
{
    char *folder = temp("shared"), *inner = temp("shared/inner"), *file = temp("shared/inner/file");
    const struct {
        mode_t folder, inner, file;
        bool is_good;
    } cases[] = {
        {0755, 0755, 0644, true},  {0775, 0770, 0660, true},   {0777, 0755, 0644, false},
        {0755, 0777, 0644, false}, {0755, 0755, 0666, false},  {01777, 0755, 0644, true},
        {0755, 01777, 0644, true}, {0755, 01777, 0646, false},
    };
    struct tandem_error error;
    CU_ASSERT_EQUAL_FATAL(mkdir(folder, 0755), 0);
    CU_ASSERT_EQUAL_FATAL(mkdir(inner, 0755), 0);
    check_ok(tnd_file_check_owner(file, NULL)); /* not there yet */
    put(file, "x");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CU_ASSERT_EQUAL(chmod(folder, cases[i].folder), 0);
        CU_ASSERT_EQUAL(chmod(inner, cases[i].inner), 0);
        CU_ASSERT_EQUAL(chmod(file, cases[i].file), 0);
        if (cases[i].is_good) {
            check_ok(tnd_file_check_owner(file, NULL));
        } else {
            check_status(tnd_file_check_owner(file, &error), TANDEM_E_FILE, "every user", &error);
        }
    }
    if (geteuid() == 0) { /* in a sticky folder, somebody else's */
        CU_ASSERT_EQUAL(chmod(file, 0644), 0);
        CU_ASSERT_EQUAL(chmod(folder, 01777), 0);
        CU_ASSERT_EQUAL(chown(inner, 12345, 12345), 0);
        check_status(tnd_file_check_owner(file, &error), TANDEM_E_FILE, "every user", &error);
    }
    unlink(file);
    rmdir(inner);
    rmdir(folder);
    free(folder);
    free(inner);
    free(file);
}

static void a_lock_is_waited_for_a_while_and_its_holder_is_named(void)
{
    char *path = temp("busy.txt"), *link = temp("linked.txt.lock"), *linked = temp("linked.txt");
    char part[32];
    int lock = -1, other = -1;
    struct tandem_error error;
    check_ok(tnd_file_lock(path, 0, &lock, NULL));
    snprintf(part, sizeof(part), "process %ld (suite_base)", (long)getpid());
    check_status(tnd_file_lock(path, 30, &other, &error), TANDEM_E_FILE, part, &error);
    check_contains(error.text, "busy.txt.lock");
    check_contains(error.text, "more than 0.03 s");
    check_int(other, -1);
    tnd_file_unlock(lock);
    check_ok(tnd_file_lock(path, 0, &lock, NULL));
    tnd_file_unlock(lock);
    put(path, "precious");
    CU_ASSERT_EQUAL(symlink(path, link), 0);
    check_status(tnd_file_lock(linked, 0, &lock, &error), TANDEM_E_FILE, "cannot open", &error);
    check_file(path, "precious");
    free(path);
    free(link);
    free(linked);
}

static void a_private_file_is_its_users_alone_and_replaces_a_link(void)
{
    char *path = temp("private.txt"), *victim = temp("victim.txt");
    struct stat info;
    void *bytes = NULL;
    size_t n = 0;
    put(victim, "victim");
    CU_ASSERT_EQUAL(symlink(victim, path), 0);
    for (int i = 0; i < 2; i++) {
        check_ok(tandem_file_write(path, "secret", 6, true, NULL));
        check_file(victim, "victim");
        CU_ASSERT_TRUE(lstat(path, &info) == 0 && S_ISREG(info.st_mode));
        check_int(info.st_mode & 0777, 0600);
        check_int(chmod(path, 0644), 0);
    }
    check_ok(tandem_file_read(path, 6, &bytes, &n, NULL));
    check_int(n, 6);
    check_string(bytes, "secret");
    tandem_file_free(bytes);
    tandem_file_free(NULL);
    check_status(tandem_file_read(NULL, 0, &bytes, &n, NULL), TANDEM_E_ARGUMENT, NULL, NULL);
    check_status(tandem_file_write(path, NULL, 1, true, NULL), TANDEM_E_ARGUMENT, NULL, NULL);
    free(path);
    free(victim);
}

CU_TestInfo tnd_tests_base_file[] = {
    {"mapped_and_read_files_have_the_same_bytes", mapped_and_read_files_have_the_same_bytes},
    {"empty_files_have_no_bytes_and_still_an_address",
     empty_files_have_no_bytes_and_still_an_address},
    {"what_cannot_be_looked_at_is_not_called_absent",
     what_cannot_be_looked_at_is_not_called_absent},
    {"what_is_no_file_is_refused_by_name", what_is_no_file_is_refused_by_name},
    {"pipes_sockets_devices_and_folders_are_refused_at_once_by_every_reader",
     pipes_sockets_devices_and_folders_are_refused_at_once_by_every_reader},
    {"what_every_user_may_write_to_is_not_trusted", what_every_user_may_write_to_is_not_trusted},
    {"a_lock_is_waited_for_a_while_and_its_holder_is_named",
     a_lock_is_waited_for_a_while_and_its_holder_is_named},
    {"a_private_file_is_its_users_alone_and_replaces_a_link",
     a_private_file_is_its_users_alone_and_replaces_a_link},
    {"reading_stops_at_the_limit_and_without_memory",
     reading_stops_at_the_limit_and_without_memory},
    {"writing_replaces_the_whole_file_and_keeps_its_mode",
     writing_replaces_the_whole_file_and_keeps_its_mode},
    {"writing_through_a_link_replaces_the_file_behind_it",
     writing_through_a_link_replaces_the_file_behind_it},
    {"a_failed_write_leaves_the_old_file_and_nothing_else",
     a_failed_write_leaves_the_old_file_and_nothing_else},
    {"a_kill_in_the_middle_of_writing_leaves_the_old_file",
     a_kill_in_the_middle_of_writing_leaves_the_old_file},
    {"readers_beside_writers_see_whole_files_only", readers_beside_writers_see_whole_files_only},
    {"folders_of_a_path_are_made_and_may_be_there", folders_of_a_path_are_made_and_may_be_there},
    {"temporary_files_have_names_of_their_own_and_go_after_a_day",
     temporary_files_have_names_of_their_own_and_go_after_a_day},
    {"a_name_of_full_length_can_be_written_and_a_longer_one_is_refused_at_once",
     a_name_of_full_length_can_be_written_and_a_longer_one_is_refused_at_once},
    {"a_lock_keeps_others_out_until_it_is_released", a_lock_keeps_others_out_until_it_is_released},
    CU_TEST_INFO_NULL,
};
