/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_waits.c - see goroutine_waits.h.
 *
 * Which lock a semaphore is of the functions above tell that wait there; what a lock
 * says of itself are counts, never who holds it (Go's sync/rwmutex.go,
 * internal/sync/mutex.go, sync/waitgroup.go).
 */
#include "goroutine_waits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "wallprof/clock.h"

enum {
	/* Frames that are looked at for who waits. */
	CALLERS_MAX = 16,
	TEXT_MAX = WP_FD_TEXT_MAX + 64,
	/* sync.Mutex: state, sema. */
	MUTEX_SEMA = 4,
	MUTEX_LOCKED = 1,
	/* sync.RWMutex: w, writerSem, readerSem, readerCount, readerWait. */
	RW_WRITER_SEMA = 8,
	RW_READER_SEMA = 12,
	RW_COUNT = 16,
	RW_WAIT = 20,
	RW_MAX_READERS = 1 << 30,
	/* sync.WaitGroup: state, whose high half counts; sema. */
	GROUP_COUNT = 4,
	GROUP_SEMA = 8,
};

/* What of Go's waits at a semaphore, and where that is in it. */
struct owner {
	const char *function;
	const char *kind;
	uint32_t sema;
};

static const struct owner owners[] = {
	{ "sync.(*RWMutex).RLock", "sync.RWMutex", RW_READER_SEMA },
	{ "sync.(*RWMutex).Lock", "sync.RWMutex", RW_WRITER_SEMA },
	{ "sync.(*WaitGroup).Wait", "sync.WaitGroup", GROUP_SEMA },
	{ "sync.(*Mutex).Lock", "sync.Mutex", MUTEX_SEMA },
	{ "internal/sync.(*Mutex).Lock", "sync.Mutex", MUTEX_SEMA },
};

/* The outermost function of package sync that waits on STACK; NULL: none. */
static const struct owner *find_owner(const struct wp_dump *dump,
				      const struct wp_dump_stack *stack,
				      struct owner *ret)
{
	const struct owner *found = NULL;
	bool in_mutex = false;

	for (uint32_t i = 0; i < stack->nframes && i < CALLERS_MAX; i++) {
		const char *name = wp_dump_str(
			dump, dump->frames[stack->first_frame + i].system_name);

		if (strncmp(name, "runtime.", 8) && strncmp(name, "sync.", 5) &&
		    strncmp(name, "internal/sync.", 14))
			break;
		for (size_t k = 0; k < sizeof(owners) / sizeof(*owners); k++)
			if (!strcmp(name, owners[k].function))
				found = &owners[k];
		in_mutex |= strstr(name, "sync.(*Mutex).lockSlow") != NULL;
	}
	if (!found)
		return NULL;
	*ret = *found;
	/* The mutex between writers is the first that a RWMutex has. */
	if (in_mutex)
		ret->sema = MUTEX_SEMA;
	return ret;
}

/* The word OFF bytes into what has its semaphore SEMA bytes into it. */
static bool get_word(const struct wp_go_object *object, uint32_t sema,
		     uint32_t off, int32_t *ret)
{
	uint32_t i = (WP_GO_OBJECT_BEFORE - sema + off) / 4;

	if (!object->has_words || i >= WP_GO_OBJECT_WORDS)
		return false;
	*ret = (int32_t)object->words[i];
	return true;
}

static void say_rwmutex(const struct wp_go_object *object, uint32_t sema,
			char *text, size_t size)
{
	int32_t count, leaving;

	if (!get_word(object, sema, RW_COUNT, &count) ||
	    !get_word(object, sema, RW_WAIT, &leaving))
		return;
	if (count >= 0)
		leaving = count;
	if (leaving < 0 || count < -RW_MAX_READERS)
		return;
	if (leaving)
		snprintf(text, size, "held by %" PRId32 " reader%s%s", leaving,
			 leaving == 1 ? "" : "s",
			 count < 0 ? ", for which a writer waits" : "");
	else
		snprintf(text, size, "%s",
			 count < 0 ? "held by a writer" : "not held");
}

static void say_owner(const struct wp_go_object *object,
		      const struct owner *owner, char *text, size_t size)
{
	int32_t state;

	if (!strcmp(owner->kind, "sync.RWMutex"))
		say_rwmutex(object, owner->sema, text, size);
	else if (!strcmp(owner->kind, "sync.WaitGroup") &&
		 get_word(object, owner->sema, GROUP_COUNT, &state))
		snprintf(text, size, "%" PRId32 " not done", state);
	else if (!strcmp(owner->kind, "sync.Mutex") &&
		 get_word(object, owner->sema, 0, &state))
		snprintf(text, size, "%s",
			 state & MUTEX_LOCKED ? "held" : "not held");
}

static void say_channel(const struct wp_go_object *object, char *text,
			size_t size)
{
	const char *more = object->is_closed ? ", closed" : "";

	if (object->is_timers)
		snprintf(text, size, "of a timer");
	else if (object->cap)
		snprintf(text, size, "%" PRIu64 " of %" PRIu64 " values%s",
			 object->len, object->cap, more);
	else
		snprintf(text, size, "unbuffered%s", more);
}

static void say_fd(const struct wp_go_object *object,
		   struct wp_snapshot_process *process, char *text, size_t size)
{
	struct wp_fd_desc desc;

	if (wp_fdinfo_describe(&process->fdinfo, 0, object->fd, wp_clock_ns(),
			       &desc))
		desc.text[0] = '\0';
	snprintf(text, size, "%s%sto %s", desc.text, *desc.text ? ", " : "",
		 object->writes ? "write" : "read");
}

/* Add OBJECT, which the goroutine with STACK waits for. */
static int add_wait(struct wp_dump *dump, struct wp_snapshot_process *process,
		    const struct wp_go_object *object,
		    const struct wp_dump_stack *stack)
{
	static const char *const kinds[] = {
		[WP_GO_OBJECT_CHANNEL] = "channel",
		[WP_GO_OBJECT_SEMAPHORE] = "semaphore",
		[WP_GO_OBJECT_COND] = "sync.Cond",
		[WP_GO_OBJECT_FD] = "fd",
	};
	struct wp_dump_wait *wait = wp_dump_add_wait(dump);
	const char *kind = kinds[object->kind];
	char text[TEXT_MAX] = "";
	struct owner owner;

	if (!wait)
		return -ENOMEM;
	wait->avma = object->avma;
	wait->fd = object->fd;
	wait->is_channel = object->kind == WP_GO_OBJECT_CHANNEL;
	wait->is_timers = object->is_timers;
	wait->may_be_timers = object->may_be_timers;
	wait->len = object->len;
	wait->cap = object->cap;
	if (wait->is_channel)
		say_channel(object, text, sizeof(text));
	else if (object->kind == WP_GO_OBJECT_FD)
		say_fd(object, process, text, sizeof(text));
	if (object->kind == WP_GO_OBJECT_SEMAPHORE &&
	    find_owner(dump, stack, &owner)) {
		kind = owner.kind;
		wait->avma -= owner.sema;
		say_owner(object, &owner, text, sizeof(text));
	}
	wait->kind = wp_intern_add_str(&dump->strings, kind);
	wait->text = wp_intern_add_str(&dump->strings, text);
	return wait->kind == UINT32_MAX || wait->text == UINT32_MAX ? -ENOMEM :
								      0;
}

int wp_goroutine_waits_add(struct wp_dump *dump,
			   struct wp_snapshot_process *process,
			   const struct wp_goroutines *all,
			   const struct wp_goroutine *from,
			   struct wp_dump_goroutine *to)
{
	int rc = 0;

	to->first_wait = dump->nwaits;
	for (uint32_t i = 0; !rc && i < from->nobjects; i++)
		rc = add_wait(dump, process,
			      &all->objects[from->first_object + i],
			      &to->stack);
	to->nwaits = dump->nwaits - to->first_wait;
	return rc;
}
