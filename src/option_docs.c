/* SPDX-License-Identifier: Apache-2.0 */
/* option_docs.c - a filter for the build: copies its input, a completion or the man page,
 * with what the table of options says in the place of @WORD@ (parts[] below).
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cmd/option_table.h"

static bool has_letter(const struct wp_option_row *row)
{
	return row->id < WP_OPT_THREADS;
}

/* Must a value follow? */
static bool wants_value(const struct wp_option_row *row)
{
	return row->value && *row->value != '[';
}

static bool is_for(const struct wp_option_row *row,
		   const struct wp_command_row *command)
{
	return row->commands & 1u << command->action;
}

/* Print TEXT on one line without single quotes and the characters BAD. */
static void print_line(const char *text, const char *bad)
{
	for (; *text; text++)
		if (*text == '\n')
			putchar(' ');
		else if (*text != '\'' && !strchr(bad, *text))
			putchar(*text);
}

static void print_commands(void)
{
	for (size_t i = 0; i < wp_ncommand_rows; i++)
		printf("%s%s", i ? " " : "", wp_command_rows[i].name);
}

static void print_alternatives(void)
{
	for (size_t i = 0; i < wp_ncommand_rows; i++)
		printf("%s%s", i ? " | " : "", wp_command_rows[i].name);
}

static void print_names(const struct wp_option_row *row, const char *between)
{
	if (has_letter(row))
		printf("-%c%s", row->id, between);
	printf("--%s", row->name);
}

static bool stands_before(size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (wp_option_rows[i].id == wp_option_rows[at].id)
			return true;
	return false;
}

/* The words that the option of row AT takes in commands of later rows. */
static void print_bash_other_words(size_t at)
{
	for (size_t i = at + 1; i < wp_noption_rows; i++) {
		const struct wp_option_row *row = &wp_option_rows[i];

		if (row->id != wp_option_rows[at].id || !row->words)
			continue;
		for (size_t j = 0; j < wp_ncommand_rows; j++)
			if (is_for(row, &wp_command_rows[j]))
				printf("; [[ $command != %s ]] || words='%s'",
				       wp_command_rows[j].name, row->words);
	}
}

static void print_bash_values(void)
{
	for (size_t i = 0; i < wp_noption_rows; i++) {
		const struct wp_option_row *row = &wp_option_rows[i];

		if (!wants_value(row) || stands_before(i))
			continue;
		printf("\t");
		print_names(row, " | ");
		if (row->words) {
			printf(") words='%s'", row->words);
			print_bash_other_words(i);
			printf(" ;;\n");
		} else if (!strcmp(row->value, "PID"))
			printf(") words=$(_wallprof_pids) ;;\n");
		else
			printf(") %s=1 ;;\n",
			       strcmp(row->value, "FILE") ? "free" : "files");
	}
}

static void print_bash_options(void)
{
	for (size_t i = 0; i < wp_ncommand_rows; i++) {
		printf("\t%s) options='", wp_command_rows[i].name);
		for (size_t j = 0; j < wp_noption_rows; j++) {
			if (!is_for(&wp_option_rows[j], &wp_command_rows[i]))
				continue;
			print_names(&wp_option_rows[j], " ");
			putchar(' ');
		}
		printf("' ;;\n");
	}
}

static void print_zsh_commands(void)
{
	for (size_t i = 0; i < wp_ncommand_rows; i++) {
		printf("\t\t'%s:", wp_command_rows[i].name);
		print_line(wp_command_rows[i].help, ":\\");
		printf("'\n");
	}
}

/* One option as _arguments has it. */
static void print_zsh_option(const struct wp_option_row *row)
{
	printf("\t\t");
	if (has_letter(row))
		printf("'(-%c --%s)'{-%c%s,--%s%s}", row->id, row->name,
		       row->id, wants_value(row) ? "+" : "", row->name,
		       wants_value(row) ? "=" : "");
	else
		printf("--%s%s", row->name, wants_value(row) ? "=" : "");
	printf("'[");
	print_line(row->help, "[]:\\");
	putchar(']');
	if (wants_value(row)) {
		printf(":%s:", row->value);
		if (row->words)
			printf("(%s)", row->words);
		else if (!strcmp(row->value, "FILE"))
			printf("_files");
		else if (!strcmp(row->value, "PID"))
			printf("_wallprof_pids");
	}
	printf("'\n");
}

static void print_zsh_options(void)
{
	for (size_t i = 0; i < wp_ncommand_rows; i++) {
		printf("\t%s)\n\t\toptions=(\n", wp_command_rows[i].name);
		for (size_t j = 0; j < wp_noption_rows; j++)
			if (is_for(&wp_option_rows[j], &wp_command_rows[i]))
				print_zsh_option(&wp_option_rows[j]);
		printf("\t\t)\n\t\t;;\n");
	}
}

static void print_fish_commands(void)
{
	for (size_t i = 0; i < wp_ncommand_rows; i++) {
		printf("complete -c wallprof -n 'not __wallprof_command' -a %s -d '",
		       wp_command_rows[i].name);
		print_line(wp_command_rows[i].help, "\\");
		printf("'\n");
	}
}

static void print_fish_option(const struct wp_option_row *row)
{
	printf("complete -c wallprof -n '__wallprof_is");
	for (size_t i = 0; i < wp_ncommand_rows; i++)
		if (is_for(row, &wp_command_rows[i]))
			printf(" %s", wp_command_rows[i].name);
	printf("'");
	if (has_letter(row))
		printf(" -s %c", row->id);
	printf(" -l %s", row->name);
	if (row->words)
		printf(" -xa '%s'", row->words);
	else if (wants_value(row) && !strcmp(row->value, "FILE"))
		printf(" -rF");
	else if (wants_value(row) && !strcmp(row->value, "PID"))
		printf(" -xa '(__fish_complete_pids)'");
	else if (wants_value(row))
		printf(" -x");
	printf(" -d '");
	print_line(row->help, "\\");
	printf("'\n");
}

static void print_fish_options(void)
{
	for (size_t i = 0; i < wp_noption_rows; i++)
		print_fish_option(&wp_option_rows[i]);
}

/* Print TEXT for troff: `x` is bold, an empty line begins a paragraph. */
static void print_troff(const char *text)
{
	bool bold = false, at_start = true;

	for (; *text; text++) {
		if (at_start && *text == '\n')
			printf(".IP");
		else if (at_start && (*text == '.' || *text == '\''))
			printf("\\&");
		at_start = *text == '\n';
		if (*text == '`')
			printf("%s", (bold = !bold) ? "\\fB" : "\\fR");
		else if (*text == '-')
			printf("\\-");
		else if (*text == '\\')
			printf("\\e");
		else
			putchar(*text);
	}
}

static void print_man_commands(void)
{
	for (size_t i = 0; i < wp_ncommand_rows; i++) {
		const struct wp_command_row *row = &wp_command_rows[i];

		printf(".TP\n\\fBwallprof %s\\fR ", row->name);
		print_troff(row->operands);
		printf("\n%c", toupper((unsigned char)row->help[0]));
		print_troff(row->help + 1);
		printf(".\n");
	}
}

static void print_man_option(const struct wp_option_row *row)
{
	printf(".TP\n");
	if (has_letter(row))
		printf("\\fB\\-%c\\fR, ", row->id);
	printf("\\fB\\-\\-");
	print_troff(row->name);
	printf("\\fR");
	if (row->value)
		printf("%s\\fI%s\\fR", *row->value == '[' ? "" : " ",
		       row->value);
	putchar('\n');
	print_troff(row->more ? row->more : row->help);
	putchar('\n');
}

static void print_man_options(void)
{
	for (int section = 0; section < WP_NSECTIONS; section++) {
		printf(".SS %s\n",
		       wp_option_section_name((enum wp_option_section)section));
		for (size_t i = 0; i < wp_noption_rows; i++)
			if ((int)wp_option_rows[i].section == section)
				print_man_option(&wp_option_rows[i]);
	}
}

static const struct {
	const char *word;
	void (*print)(void);
} parts[] = {
	{ "commands", print_commands },
	{ "alternatives", print_alternatives },
	{ "bash-values", print_bash_values },
	{ "bash-options", print_bash_options },
	{ "zsh-commands", print_zsh_commands },
	{ "zsh-options", print_zsh_options },
	{ "fish-commands", print_fish_commands },
	{ "fish-options", print_fish_options },
	{ "man-commands", print_man_commands },
	{ "man-options", print_man_options },
};

/* Print the part that TEXT, which begins with '@', names.  Returns its length; 0: it
 * names none. */
static size_t print_part(const char *text)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		size_t n = strlen(parts[i].word);

		if (strncmp(text + 1, parts[i].word, n) || text[n + 1] != '@')
			continue;
		parts[i].print();
		return n + 2;
	}
	return 0;
}

int main(void)
{
	char line[1024];

	while (fgets(line, sizeof(line), stdin))
		for (const char *p = line; *p;) {
			size_t n = *p == '@' ? print_part(p) : 0;

			if (!n)
				putchar(*p);
			p += n ? n : 1;
		}
	return ferror(stdin) || fflush(stdout);
}
