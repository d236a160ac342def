/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_fields.h - numbers of profile.proto's fields, and one of our own.
 *
 * Readers of protocol buffers skip fields that they do not know, so a profile with
 * the timeline in it is a profile to all of them; labels would make a sample of
 * each interval, a second file gets lost.
 *
 * PROFILE_WALLPROF_TIMELINE is bytes, all of them unsigned LEB128 numbers: the
 * version, 1; then for each thread that has one, its first interval's begin after
 * the recording's, in nanoseconds, its number of intervals, and for each of them
 * the number of its sample in the file, from 1 (0: the thread was not watched), its
 * nanoseconds, and the number of a sample of the thread that held the lock (0:
 * none).
 */
#ifndef WP_PPROF_FIELDS_H
#define WP_PPROF_FIELDS_H

/* Field numbers of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,
	PROFILE_WALLPROF_TIMELINE = 1001,
	VALUE_TYPE_TYPE = 1,
	VALUE_TYPE_UNIT = 2,
	SAMPLE_LOCATION_ID = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_STR = 2,
	LABEL_NUM = 3,
	LABEL_NUM_UNIT = 4,
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_OFFSET = 4,
	MAPPING_FILENAME = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES = 8,
	MAPPING_HAS_LINE_NUMBERS = 9,
	MAPPING_HAS_INLINE_FRAMES = 10,
	LOCATION_ID = 1,
	LOCATION_MAPPING_ID = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
	LINE_FUNCTION_ID = 1,
	LINE_LINE = 2,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILENAME = 4,
	FUNCTION_START_LINE = 5,
};

#endif
