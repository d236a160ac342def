/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_threads.c - a sampled process's threads as threads of a dump.
 */
#include <errno.h>

#include "snapshot_priv.h"
#include "thread_lock.h"

struct job {
	struct wp_dump *dump;
	struct wp_snapshot_process *process;
	uint32_t index;
	const struct wp_snapshot_sample *sample;
};

static int add_thread(struct job *job, const struct wp_snapshot_note *note)
{
	const struct wp_profile *p = &job->sample->profile;
	const struct wp_sample_key *key =
		&p->sets[WP_PROFILE_THREADS].samples[note->sample - 1].key;
	struct wp_dump_thread *t = wp_dump_add_thread(job->dump);
	int rc;

	if (!t)
		return -ENOMEM;
	*t = note->thread;
	t->process = job->index;
	/* By the stack, too. */
	t->wait = (enum wp_wait)key->wait;
	rc = wp_snapshot_add_stack(job->dump, job->sample, key->stack,
				   &t->stack);
	if (rc)
		return rc;
	/* Who is held does not wait for what its call says. */
	if (t->state == WP_STATE_WAITING && t->wait != WP_WAIT_FROZEN &&
	    t->wait != WP_WAIT_CORE_DUMP)
		wp_thread_lock_decode(t, job->dump, job->process, &note->view);
	rc = wp_snapshot_name_variable(job->dump, t, job->sample, note);
	if (rc)
		return rc;
	job->dump->processes[job->index].nthreads++;
	return 0;
}

int wp_snapshot_add_threads(struct wp_snapshot *snapshot, uint32_t index,
			    const struct wp_snapshot_sample *sample)
{
	struct job job = { .dump = &snapshot->dump,
			   .process = snapshot->processes[index],
			   .index = index,
			   .sample = sample };
	int rc = 0;

	for (uint32_t i = 0; i < sample->profile.nthreads && !rc; i++) {
		const char *name = wp_dump_str(job.dump,
					       sample->profile.threads[i].name);

		if (sample->notes[i].sample)
			rc = add_thread(&job, &sample->notes[i]);
		else if (wp_sampler_wants(snapshot->options->thread_globs,
					  name))
			job.dump->processes[index].nlost++;
		else
			job.dump->processes[index].nunchosen++;
	}
	return rc;
}
