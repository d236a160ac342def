/* SPDX-License-Identifier: Apache-2.0 */
/* hang_files.c - see hang_files.h. */
#include "hang_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "signals.h"
#include "wallprof/clock.h"
#include "wallprof/history.h"
#include "wallprof/output.h"

#define PREFIX "wallprof-hang-"
/* What is being written, and how long it stays if nobody goes on. */
#define PART ".part-"
enum { PART_S = 600 };

/* Names begin with the time: they sort by age. */
static int is_ours(const struct dirent *entry)
{
	return !strncmp(entry->d_name, PREFIX, sizeof(PREFIX) - 1);
}

static int is_part(const struct dirent *entry)
{
	return !strncmp(entry->d_name, PART PREFIX, sizeof(PART PREFIX) - 1);
}

/* Remove what a writer that was killed has left: others may be writing. */
static void remove_parts(int dir)
{
	struct dirent **v;
	struct stat st;
	int n = scandirat(dir, ".", &v, is_part, alphasort);

	for (int i = 0; i < n; i++) {
		if (!fstatat(dir, v[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    time(NULL) - st.st_mtime > PART_S)
			unlinkat(dir, v[i]->d_name, 0);
		free(v[i]);
	}
	if (n >= 0)
		free(v);
}

void wp_hang_files_prune(int dir, size_t most)
{
	struct dirent **v;
	int n = scandirat(dir, ".", &v, is_ours, alphasort);

	for (int i = 0; i < n; i++) {
		if ((size_t)(n - i) > most)
			unlinkat(dir, v[i]->d_name, 0);
		free(v[i]);
	}
	if (n >= 0)
		free(v);
	remove_parts(dir);
}

/* "wallprof-hang-20261123T074500Z-redis-server-4711"; what others named has letters
 * and digits only. */
static void make_stem(const struct wp_recording *r, char *stem, size_t size)
{
	const time_t now = (time_t)(wp_clock_utc_ns() / (int64_t)WP_NS_PER_S);
	char name[32] = "all", when[32];
	struct tm tm;

	if (!r->options->sampler.many)
		wp_process_name(&r->process, name, sizeof(name));
	for (char *c = name; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-",
			    *c))
			*c = '_';
	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(stem, size, PREFIX "%s-%s-%d", when, name, r->process.pid);
}

/* The files that are being written. */
struct files {
	int dir;
	char stem[96];
	char parts[3][128];
	size_t nparts;
};

static FILE *begin_file(struct files *f, const char *ending)
{
	char *name = f->parts[f->nparts];
	int fd;

	snprintf(name, sizeof(f->parts[0]), PART "%s.%s", f->stem, ending);
	/* A signal may end this process as soon as the file is there. */
	f->nparts++;
	fd = openat(f->dir, name,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		f->nparts--;
	return fd < 0 ? NULL : fdopen(fd, "w");
}

/* Half of what was found out is of no use, and the disk may be full. */
static void remove_all(const void *files)
{
	const struct files *f = files;

	for (size_t i = 0; i < f->nparts; i++)
		unlinkat(f->dir, f->parts[i], 0);
}

/* All are whole: give them their names, the dump the last. */
static int name_all(struct files *f)
{
	for (; f->nparts; f->nparts--) {
		const char *part = f->parts[f->nparts - 1];

		if (renameat(f->dir, part, f->dir, part + sizeof(PART) - 1))
			return -errno;
	}
	return 0;
}

static int end_file(FILE *out, int rc)
{
	if (fclose(out) && !rc)
		rc = -errno;
	return rc;
}

static int copy(int from, FILE *out)
{
	char buffer[16384];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(from, buffer, sizeof(buffer), at)) > 0) {
		if (fwrite(buffer, 1, (size_t)n, out) != (size_t)n)
			return -errno;
		at += n;
	}
	return n < 0 ? -errno : 0;
}

/* The check has printed reason and dump; of a threshold there is none yet. */
static int write_dump(struct files *f, struct wp_recording *r,
		      const struct wp_recording_job *job)
{
	struct wp_serve_answer dumped = { .status = 200 };
	int report = job->report, rc;
	FILE *out = begin_file(f, "txt");

	if (!out)
		return -errno;
	if (report < 0) {
		fprintf(out, "%s\n\n", job->reason);
		report = memfd_create("dump", MFD_CLOEXEC);
		if (report >= 0)
			wp_recording_dump(r, report, &dumped);
		/* The dump had a file of its own to remove. */
		wp_signals_end_at_once(remove_all, f);
		if (dumped.status != 200)
			fprintf(out, "no dump: %s\n", dumped.text);
	}
	rc = report < 0 ? -errno : copy(report, out);
	return end_file(out, rc);
}

static int write_format(struct files *f, const struct wp_recording *r,
			enum wp_format format, const char *ending)
{
	const struct wp_report_options plain = { 0 };
	FILE *out = begin_file(f, ending);

	return out ? end_file(out,
			      wp_write_profile(&r->profile, WP_PROFILE_WALL,
					       format, &plain, out)) :
		     -errno;
}

static int write_all(struct files *f, struct wp_recording *r,
		     const struct wp_recording_job *job)
{
	uint64_t from_ns = job->from_ns, to_ns = job->to_ns;
	int rc;

	wp_signals_end_at_once(remove_all, f);
	rc = write_dump(f, r, job);
	if (!rc)
		rc = wp_history_view(&r->history, &r->profile, &from_ns,
				     &to_ns);
	if (!rc)
		rc = wp_recording_finish(r, job, from_ns, to_ns);
	if (!rc)
		rc = write_format(f, r, WP_FORMAT_HTML, "html");
	if (!rc)
		rc = write_format(f, r, WP_FORMAT_PPROF, "pb.gz");
	if (rc)
		return rc;
	wp_signals_put_off(2);
	return name_all(f);
}

void wp_hang_files_write(struct wp_recording *r,
			 const struct wp_recording_job *job,
			 struct wp_serve_answer *ret)
{
	const char *path = r->options->on_hang;
	struct files f = { .dir = open(path,
				       O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	int rc = f.dir < 0 ? -errno : 0;

	make_stem(r, f.stem, sizeof(f.stem));
	/* Room for those to come. */
	if (!rc)
		wp_hang_files_prune(f.dir, (WP_HANG_FILES_MAX - 1) * 3);
	if (!rc)
		rc = write_all(&f, r, job);
	if (rc && f.dir >= 0)
		remove_all(&f);
	wp_signals_forget_files();
	ret->status = rc ? 500 : 200;
	if (rc)
		snprintf(ret->text, sizeof(ret->text), "%.300s: %s", path,
			 strerror(-rc));
	else
		snprintf(ret->text, sizeof(ret->text),
			 "%.300s/%s.txt, .html, .pb.gz", path, f.stem);
}
