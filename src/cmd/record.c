// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cmd/cmd.h"
#include "record/recorder.h"
#include "util/text.h"
#include "util/xalloc.h"

#define DEFAULT_HZ     4000 /* perf's */
#define MAX_HZ	       10000
#define DEFAULT_PERIOD 1000000 /* where there are no frequencies */
#define MAX_STACK      65528   /* bytes of a stack: perf's, who has their number in 16 bits */

static const char usage[] =
	"vmprof record [-e EVENT] [-F HZ|-c PERIOD] [-g] [--vm NAME]... [-a] [-o FILE] [-- "
	"CMD...]\n"
	"\n"
	"  -e, --event EVENT        what to sample: cycles (default), cpu-clock, ... with :u or "
	":k;\n"
	"                           before any --vm: of all VMs, behind one: of that VM\n"
	"  -F, --freq HZ            samples a second of each vCPU's CPU time (1 to 10000)\n"
	"  -c, --count PERIOD       one sample every PERIOD events (clocks: ns of CPU time)\n"
	"  -g                       record call chains\n"
	"      --call-graph fp|dwarf[,BYTES]|no   the same, or none\n"
	"      --multiplex          more events than counters take turns\n"
	"      --count cpu|domain   count while the guest runs, or also while the host works for "
	"it\n"
	"      --vm NAME            a VM by name, UUID or pid; may be repeated\n"
	"  -a, --all-vms            all VMs of this host\n"
	"                           within a VM that has vmprof_guest.ko: none of both, the "
	"machine "
	"itself\n"
	"      --host               what the host does for the VMs, too\n"
	"      --deliver host|inject|direct  who takes the counters' interrupts: the host "
	"(default), "
	"the\n"
	"                           host, which raises the guest's, or the guest\n"
	"      --experimental       direct delivery also on x86, where its safety has not been "
	"shown\n"
	"      --force              the same with the host's NMI watchdog on\n"
	"      --pause              stop a VM for each of its samples (Xen)\n"
	"  -o, --output FILE        write FILE (default perf.data); - is standard output\n"
	"      --duration TIME      stop after TIME: 10, 10s, 500ms, 2m\n"
	"      --backend NAME       sample by this backend; 'vmprof list -v' shows them\n"
	"  -r, --realtime PRIO      SCHED_FIFO priority of the samplers (default 1; 0: none)\n"
	"  -q, --quiet              no messages but errors\n"
	"  -v, --verbose            more messages\n"
	"  -- CMD...                record while CMD runs";

enum {
	OPT_CALL_GRAPH = 256,
	OPT_VM,
	OPT_DURATION,
	OPT_BACKEND,
	OPT_HOST,
	OPT_MULTIPLEX,
	OPT_COUNT,
	OPT_PAUSE,
	OPT_DELIVER,
	OPT_EXPERIMENTAL,
	OPT_FORCE
};

static const struct option longopts[] = {
	{"event", required_argument, NULL, 'e'},
	{"freq", required_argument, NULL, 'F'},
	{"count", required_argument, NULL, OPT_COUNT},
	{"multiplex", no_argument, NULL, OPT_MULTIPLEX},
	{"call-graph", required_argument, NULL, OPT_CALL_GRAPH},
	{"vm", required_argument, NULL, OPT_VM},
	{"all-vms", no_argument, NULL, 'a'},
	{"host", no_argument, NULL, OPT_HOST},
	{"deliver", required_argument, NULL, OPT_DELIVER},
	{"experimental", no_argument, NULL, OPT_EXPERIMENTAL},
	{"force", no_argument, NULL, OPT_FORCE},
	{"pause", no_argument, NULL, OPT_PAUSE},
	{"output", required_argument, NULL, 'o'},
	{"duration", required_argument, NULL, OPT_DURATION},
	{"backend", required_argument, NULL, OPT_BACKEND},
	{"realtime", required_argument, NULL, 'r'},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* For all events. */
struct rate {
	bool given;
	bool freq;
	uint64_t value;
	bool host;
};

static int parse_count(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 0);
	return errno || end == text || *end || *text == '-' ? -EINVAL : 0;
}

static int set_freq(struct rate *rate, const char *text, struct vmprof_err *err)
{
	rate->given = true;
	if (!strcmp(text, "max")) {
		rate->freq = true;
		rate->value = MAX_HZ;
		return 0;
	}
	if (parse_count(text, &rate->value) || !rate->value || rate->value > MAX_HZ)
		return err_set(err, EINVAL, "-F '%s' is not a frequency from 1 to %d Hz", text,
			       MAX_HZ);
	rate->freq = true;
	return 0;
}

/* -EINVAL without a sentence, which the option has. */
static int set_period(struct rate *rate, const char *text)
{
	/* the kernel has a sign in it */
	if (parse_count(text, &rate->value) || !rate->value || rate->value > INT64_MAX)
		return -EINVAL;
	rate->given = true;
	rate->freq = false;
	return 0;
}

static int set_call_graph(struct record_options *o, const char *mode, struct vmprof_err *err)
{
	static const char with_size[] = "dwarf,";
	uint64_t size = 0;

	o->chains = strcmp(mode, "no");
	if (!o->chains || !strcmp(mode, "fp") || !strcmp(mode, "dwarf"))
		return 0;
	if (!strncmp(mode, with_size, strlen(with_size))) {
		const char *text = mode + strlen(with_size);

		if (parse_count(text, &size) || !size || size > MAX_STACK)
			return err_set(err, EINVAL,
				       "--call-graph dwarf,BYTES: '%s' is not a size of a stack's "
				       "copy, from 1 to %d",
				       text, MAX_STACK);
		o->stack_size = (uint32_t)(size + 7) & ~7u;
		return 0;
	}
	return err_set(err, EINVAL,
		       "--call-graph '%s': chains of VMs are had by frame information and frame "
		       "pointers ('fp' and 'dwarf' are the same) or not at all ('no')",
		       mode);
}

/* perf's long form of -c, and how a VM's events are counted. */
static int set_count(struct record_options *o, struct rate *rate, const char *text,
		     struct vmprof_err *err)
{
	if (strcmp(text, "cpu") != 0 && strcmp(text, "domain") != 0) {
		if (set_period(rate, text))
			return err_set(err, EINVAL,
				       "--count '%s' is neither a period nor 'cpu' or 'domain'",
				       text);
		return 0;
	}
	o->domain = !strcmp(text, "domain");
	return 0;
}

static int set_realtime(struct record_options *o, const char *text, struct vmprof_err *err)
{
	uint64_t v;

	if (parse_count(text, &v) || v > 99)
		return err_set(err, EINVAL,
			       "-r '%s' is not a real-time priority from 1 to 99, or 0 "
			       "for none",
			       text);
	o->realtime = (int)v;
	return 0;
}

static int set_delivery(struct record_options *o, const char *text, struct vmprof_err *err)
{
	static const char *const names[] = {[RECORD_DELIVER_HOST] = "host",
					    [RECORD_DELIVER_INJECT] = "inject",
					    [RECORD_DELIVER_DIRECT] = "direct"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(text, names[i])) {
			o->delivery = (enum record_delivery)i;
			return 0;
		}
	return err_set(err, EINVAL, "--deliver '%s' is none of host, inject and direct", text);
}

static int set_duration(struct record_options *o, const char *text, struct vmprof_err *err)
{
	if (parse_duration(text, &o->duration_ns) || !o->duration_ns)
		return err_set(err, EINVAL, "--duration '%s' is not a time: 10, 10s, 500ms, 2m",
			       text);
	return 0;
}

/* 0, -EINVAL with a sentence, or 1: the usage is to be shown. */
static int set_option(struct record_options *o, struct rate *rate, int c, struct vmprof_err *err)
{
	switch (c) {
	case 'e':
		return wanted_add_event(&o->wanted, optarg, err);
	case 'F':
		return set_freq(rate, optarg, err);
	case 'c':
		return set_period(rate, optarg)
			       ? err_set(err, EINVAL, "-c '%s' is not a period", optarg)
			       : 0;
	case 'g':
		o->chains = true;
		return 0;
	case OPT_CALL_GRAPH:
		return set_call_graph(o, optarg, err);
	case OPT_VM:
		wanted_add_vm(&o->wanted, optarg);
		return 0;
	case OPT_MULTIPLEX:
		o->multiplex = true;
		return 0;
	case OPT_COUNT:
		return set_count(o, rate, optarg, err);
	case 'a':
		o->all_vms = true;
		return 0;
	case OPT_HOST:
		rate->host = true;
		return 0;
	case OPT_DELIVER:
		return set_delivery(o, optarg, err);
	case OPT_EXPERIMENTAL:
		o->experimental = true;
		return 0;
	case OPT_FORCE:
		o->force = true;
		return 0;
	case OPT_PAUSE:
		o->pause = true;
		return 0;
	case 'o':
		o->output = optarg;
		return 0;
	case OPT_DURATION:
		return set_duration(o, optarg, err);
	case OPT_BACKEND:
		o->backend = optarg;
		return 0;
	case 'r':
		return set_realtime(o, optarg, err);
	case 'q':
		o->quiet = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	default:
		return 1;
	}
}

static bool is_to_guest(const struct record_options *o)
{
	const struct vmprof_backend *b = o->backend ? backend_by_name(o->backend) : NULL;

	return o->delivery != RECORD_DELIVER_HOST || (b && b->delivery);
}

/* What is asked for of delivery to the guest says nothing without it. */
static int check_experimental(const struct record_options *o, struct vmprof_err *err)
{
	if (o->experimental && !is_to_guest(o))
		return err_set(err, EINVAL,
			       "--experimental is of delivery to the guest: give --deliver, too");
	if (o->force && !o->experimental)
		return err_set(err, EINVAL,
			       "--force is of what is experimental: give --experimental, too");
	return 0;
}

/* The backend of a delivery to the guest is what that is had by, and is nothing else. */
static int settle_delivery(struct record_options *o, struct rate *rate, struct vmprof_err *err)
{
	if (o->delivery != RECORD_DELIVER_HOST && o->backend)
		return err_set(err, EINVAL,
			       "--deliver has a backend of its own: leave out --backend");
	if (o->delivery != RECORD_DELIVER_HOST && !rate->given)
		*rate = (struct rate){.value = DEFAULT_PERIOD, .host = rate->host};
	return check_experimental(o, err);
}

static void set_rate(struct event_list *l, const struct rate *rate)
{
	if (rate->host)
		event_list_add_host(l);
	event_list_set_rate(l, rate->freq, rate->value);
}

static int parse(struct record_options *o, int argc, char **argv, struct vmprof_err *err)
{
	struct rate rate = {.freq = true, .value = DEFAULT_HZ};
	int c, rc;

	while ((c = cli_getopt(argc, argv, "+e:F:c:go:ar:qvh", longopts)) != -1) {
		rc = set_option(o, &rate, c, err);
		if (rc == 1)
			return c == 'h' ? 2 : 1;
		if (rc)
			return rc;
	}
	if (optind < argc)
		o->command = argv + optind;
	if (!o->wanted.events.n) {
		o->events_default = true;
		rc = event_list_add(&o->wanted.events, "cycles", err);
		if (rc)
			return rc;
	}
	rc = settle_delivery(o, &rate, err);
	if (rc)
		return rc;
	if (!*o->output)
		return err_set(err, EINVAL, "-o '' is not a file: it has no name");
	if (!strcmp(o->output, "-") && isatty(STDOUT_FILENO))
		return err_set(err, EINVAL, "-o -: standard output is a terminal");
	set_rate(&o->wanted.events, &rate);
	for (unsigned i = 0; i < o->wanted.nr_vms; i++)
		set_rate(&o->wanted.vms[i].events, &rate);
	return 0;
}

int cmd_record(int argc, char **argv)
{
	char **whole = xcalloc((size_t)argc + 2, sizeof(*whole));
	struct record_options o = {.output = "perf.data", .realtime = 1, .argv = whole};
	struct record_result result = {0};
	struct vmprof_err err;
	int rc;

	whole[0] = (char[]){"vmprof"};
	memcpy(whole + 1, argv, (size_t)argc * sizeof(*argv));
	rc = parse(&o, argc, argv, &err);
	if (rc > 0) {
		result.status =
			rc == 2 ? cli_help("record", usage) : cli_usage_error("record", usage);
	} else if (rc < 0) {
		cli_error("record", &err);
		result.status = 2;
	} else if (recorder_run(&o, &result, &err)) {
		result.status = cli_error("record", &err);
	} else if (result.signal) {
		cli_end_by_signal(result.signal);
	}
	wanted_free(&o.wanted);
	free(whole);
	return result.status;
}
