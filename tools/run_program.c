/* SPDX-License-Identifier: MIT
 * A child process with two pipes. Its process group is killed at the end in any case, so that none
 * of its children survive. */
#include "tools/run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tnd_status.h"

enum { OUT, ERR, PIPES };

struct child {
    pid_t id;
    int pipe[PIPES][2]; /* -1: closed */
};

static uint64_t now_ns(void)
{
    return tnd_clock_real()->now_ns(tnd_clock_real());
}

static void close_end(int *end)
{
    if (*end >= 0) {
        close(*end);
        *end = -1;
    }
}

static void close_all(struct child *child)
{
    for (int i = 0; i < PIPES; i++) {
        close_end(&child->pipe[i][0]);
        close_end(&child->pipe[i][1]);
    }
}

/* Runs the program in the child; never returns. */
static void become(struct child *child, char *const argv[])
{
    const int null = open("/dev/null", O_RDONLY);
    (void)setpgid(0, 0);
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* Ctrl-C kills only our own group */
#endif
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
        dup2(child->pipe[OUT][1], STDOUT_FILENO) >= 0 &&
        dup2(child->pipe[ERR][1], STDERR_FILENO) >= 0) {
        close_all(child);
        execv(argv[0], argv);
    }
    _exit(127);
}

static enum tandem_status start(struct child *child, char *const argv[], struct tandem_error *error)
{
    if (access(argv[0], X_OK) != 0) {
        return tnd_error_set(error, TANDEM_E_FILE, argv[0], errno, 0,
                             "%.200s: cannot be run: %s; expected the path of a program", argv[0],
                             strerror(errno));
    }
    for (int i = 0; i < PIPES; i++) {
        if (pipe(child->pipe[i]) != 0) {
            child->pipe[i][0] = child->pipe[i][1] = -1;
            return tnd_error_set(error, TANDEM_E_FILE, argv[0], errno, 0, "pipe: %s",
                                 strerror(errno));
        }
        (void)fcntl(child->pipe[i][0], F_SETFD, FD_CLOEXEC);
    }
    child->id = fork();
    if (child->id == 0) {
        become(child, argv);
    }
    if (child->id < 0) {
        return tnd_error_set(error, TANDEM_E_FILE, argv[0], errno, 0, "%.200s: fork: %s", argv[0],
                             strerror(errno));
    }
    (void)setpgid(child->id, child->id); /* in both processes: an early kill must find the group */
    close_end(&child->pipe[OUT][1]);
    close_end(&child->pipe[ERR][1]);
    return TANDEM_OK;
}

/* Keeps the end of stderr, without control characters. */
static void keep_said(char *said, const char *bytes, size_t n)
{
    size_t length = strlen(said);
    for (size_t i = 0; i < n; i++) {
        if (length == TND_RUN_SAID - 1) {
            memmove(said, said + TND_RUN_SAID / 2, length - TND_RUN_SAID / 2 + 1);
            length -= TND_RUN_SAID / 2;
        }
        said[length++] = bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : ' ';
        said[length] = '\0';
    }
}

/* Reads what one pipe has. */
static void take(struct child *child, int which, struct tnd_run_result *out)
{
    char bytes[4096];
    const ssize_t n = read(child->pipe[which][0], bytes, sizeof(bytes));
    if (n <= 0) {
        if (n == 0 || errno != EINTR) {
            close_end(&child->pipe[which][0]);
        }
    } else if (which == ERR) {
        keep_said(out->said, bytes, (size_t)n);
    } else if (out->out.n + (size_t)n > TND_RUN_OUTPUT) {
        out->is_long = true;
    } else {
        tnd_text_add_bytes(&out->out, bytes, (size_t)n);
    }
}

static void listen_to(struct child *child, uint64_t end_ns, struct tnd_run_result *out)
{
    while ((child->pipe[OUT][0] >= 0 || child->pipe[ERR][0] >= 0) && !out->is_long) {
        struct pollfd watched[PIPES];
        const uint64_t now = now_ns();
        if (now >= end_ns) {
            out->is_late = true;
            return;
        }
        const uint64_t left_ms = (end_ns - now) / 1000000u + 1u;
        for (int i = 0; i < PIPES; i++) {
            watched[i] = (struct pollfd){.fd = child->pipe[i][0], .events = POLLIN};
        }
        (void)poll(watched, PIPES, left_ms < 1000u ? (int)left_ms : 1000);
        for (int i = 0; i < PIPES; i++) {
            if (child->pipe[i][0] >= 0 && watched[i].revents != 0) {
                take(child, i, out);
            }
        }
    }
}

/* Waits for a child that closed its output: it has the rest of its time to exit. Kills the group
 * before the child is reaped, so that its process number cannot be reused. */
static int end_of(const struct child *child, uint64_t end_ns, struct tnd_run_result *out)
{
    int status = 0;
    siginfo_t info = {0};
    while (!out->is_late && !out->is_long) {
        if (waitid(P_PID, (id_t)child->id, &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
            info.si_pid == child->id) {
            break;
        }
        (void)poll(NULL, 0, 2);
        out->is_late = now_ns() >= end_ns;
    }
    (void)kill(-child->id, SIGKILL);
    while (waitpid(child->id, &status, 0) < 0 && errno == EINTR) {
    }
    return !out->is_late && !out->is_long && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum tandem_status tnd_run_program(char *const argv[], double seconds, struct tnd_run_result *out,
                                   struct tandem_error *error)
{
    struct child child = {-1, {{-1, -1}, {-1, -1}}};
    const uint64_t end_ns = now_ns() + (uint64_t)(1e9 * seconds);
    memset(out, 0, sizeof(*out));
    enum tandem_status status = start(&child, argv, error);
    if (status == TANDEM_OK) {
        listen_to(&child, end_ns, out);
        out->code = end_of(&child, end_ns, out);
    }
    close_all(&child);
    if (status == TANDEM_OK && out->out.failed) {
        status =
            tnd_error_set(error, TANDEM_E_MEMORY, argv[0], 0, 0, "%.200s: out of memory", argv[0]);
    }
    if (status != TANDEM_OK) {
        tnd_run_fini(out);
    }
    return status;
}

void tnd_run_fini(struct tnd_run_result *result)
{
    tnd_text_fini(&result->out);
}
