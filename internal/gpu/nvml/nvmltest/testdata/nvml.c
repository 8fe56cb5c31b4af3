/*
 * A stand-in for libnvidia-ml.so.1: the functions that package nvml calls, on GPUs that live in a file.
 *
 * The file lies beside the library and has its name with ".state" added. It is the driver and the hardware: a process
 * that dies leaves its lock in there. Each call holds a lock on the file. nvmltest.go has the same struct in Go.
 *
 * -DOLD builds a library as of before 2023, -DNEW one that has dropped what is deprecated.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int64_t i64;
typedef int ret;
typedef void *dev;

enum {
	SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
	INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15, ARGUMENT_VERSION = 25,
};

/* The functions that can be told to fail, in the order of Fault in nvmltest.go. */
enum fault {
	ON_INIT, ON_VERSION, ON_COUNT, ON_HANDLE, ON_UUID, ON_NAME, ON_PCI, ON_MEM_CLOCKS, ON_CLOCKS, ON_LOCK, ON_UNLOCK, ON_CLOCK_INFO,
	ON_LIMIT, ON_DEFAULT, ON_CONSTRAINTS, ON_ENFORCED, ON_SET_LIMIT, ON_ENERGY, ON_POWER, ON_FIELDS, ON_TEMPERATURE, ON_REASONS,
	ON_MIG, ON_PERSISTENCE, ON_PROFILES, ON_COUNT_OF
};

#define MAX_GPUS 16
#define MAX_MEMORY 8

struct gpu {
	char uuid[96], name[96], pci[32];
	i64 memory[MAX_MEMORY], memories, memory_now;        /* MHz, as listed */
	i64 low, high, step, high_at_lower;                  /* the grid at the first memory clock, its top at the others */
	i64 idle_clock;                                      /* what an unlocked GPU runs at; 0: high */
	i64 lock_min, lock_max;                              /* 0: unlocked */
	i64 clock_before, changed_ns, latency_ns;
	i64 limit, limit_default, limit_min, limit_max, limit_outside; /* mW */
	i64 energy_mj, since_ns, step_ns, power_mw;
	i64 reasons, capped_ns, temperature, mig /* -1: none */, persistence;
	i64 asked_profiles, enforced_profiles;               /* the first 64; -1: none */
	i64 lost, generation, changes;
	i64 fail[ON_COUNT_OF];
};

struct state {
	i64 size, read_only, count, clients /* processes that die are not counted out */;
	char driver[80];
	struct gpu gpus[MAX_GPUS];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct state *state;
static int file = -1, starts;

static i64 now_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (i64)t.tv_sec * 1000000000 + t.tv_nsec;
}

static ret attach(void) {
	Dl_info me;
	char path[4096];
	if (state) return SUCCESS;
	if (!dladdr((void *)attach, &me) || snprintf(path, sizeof path, "%s.state", me.dli_fname) >= (int)sizeof path)
		return DRIVER_NOT_LOADED;
	file = open(path, O_RDWR | O_CLOEXEC);
	if (file < 0) return DRIVER_NOT_LOADED;
	struct state *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (s == MAP_FAILED || s->size != sizeof *s) {
		close(file);
		return DRIVER_NOT_LOADED;
	}
	state = s;
	return SUCCESS;
}

__attribute__((destructor)) static void detach(void) {
	if (!state) return;
	munmap(state, sizeof *state);
	close(file);
}

static void enter(void) {
	pthread_mutex_lock(&mutex);
	if (state) while (flock(file, LOCK_EX) != 0) { }
}

static ret leave(ret r) {
	if (state) flock(file, LOCK_UN);
	pthread_mutex_unlock(&mutex);
	return r;
}

static struct gpu *of(dev d) {
	uintptr_t n = ((uintptr_t)d & 0xff) - 1;
	return n < MAX_GPUS ? &state->gpus[n] : NULL;
}

/* usable says whether a call on d may go on: the device's lock is held then, and leave must follow. */
static ret usable(dev d, enum fault f, int changes) {
	enter();
	if (!starts) return UNINITIALIZED;
	struct gpu *g = of(d);
	if (!g) return INVALID_ARGUMENT;
	if (g->lost || g->generation != (i64)((uintptr_t)d >> 8)) return GPU_IS_LOST;
	if (g->fail[f]) return (ret)g->fail[f];
	if (changes && state->read_only) return NO_PERMISSION;
	return SUCCESS;
}

#define BEGIN(f, changes) ret r = usable(d, f, changes); if (r) return leave(r); struct gpu *g = of(d)

/* The first GPU's list of faults is also that of calls without a GPU. */
static ret general(enum fault f) {
	enter();
	if (!starts) return UNINITIALIZED;
	return (ret)state->gpus[0].fail[f];
}

static ret copy(char *to, unsigned n, const char *from) {
	if (strlen(from) + 1 > n) return INSUFFICIENT_SIZE;
	strcpy(to, from);
	return SUCCESS;
}

ret nvmlInit_v2(void) {
	pthread_mutex_lock(&mutex);
	ret r = attach();
	pthread_mutex_unlock(&mutex);
	if (r) return r;
	enter();
	r = (ret)state->gpus[0].fail[ON_INIT];
	if (!r) {
		starts++;
		state->clients++;
	}
	return leave(r);
}

ret nvmlShutdown(void) {
	enter();
	if (!starts) return leave(UNINITIALIZED);
	starts--;
	state->clients--;
	return leave(SUCCESS);
}

ret nvmlSystemGetDriverVersion(char *v, unsigned n) {
	ret r = general(ON_VERSION);
	return leave(r ? r : copy(v, n, state->driver));
}

ret nvmlDeviceGetCount_v2(unsigned *n) {
	ret r = general(ON_COUNT);
	if (!r) *n = (unsigned)state->count;
	return leave(r);
}

ret nvmlDeviceGetHandleByIndex_v2(unsigned i, dev *d) {
	enter();
	if (!starts) return leave(UNINITIALIZED);
	if (i >= state->count) return leave(INVALID_ARGUMENT);
	struct gpu *g = &state->gpus[i];
	if (g->lost) return leave(GPU_IS_LOST);
	if (g->fail[ON_HANDLE]) return leave((ret)g->fail[ON_HANDLE]);
	*d = (dev)((uintptr_t)g->generation << 8 | (i + 1));
	return leave(SUCCESS);
}

ret nvmlDeviceGetUUID(dev d, char *b, unsigned n) { BEGIN(ON_UUID, 0); return leave(copy(b, n, g->uuid)); }
ret nvmlDeviceGetName(dev d, char *b, unsigned n) { BEGIN(ON_NAME, 0); return leave(copy(b, n, g->name)); }

struct pci { char legacy[16]; unsigned domain, bus, device, id, sub; char address[32]; };

ret nvmlDeviceGetPciInfo_v3(dev d, struct pci *p) {
	BEGIN(ON_PCI, 0);
	memset(p, 0, sizeof *p);
	return leave(copy(p->address, sizeof p->address, g->pci));
}

static i64 top(struct gpu *g, int memory) { return memory == 0 ? g->high : g->high_at_lower; }

ret nvmlDeviceGetSupportedMemoryClocks(dev d, unsigned *n, unsigned *mhz) {
	BEGIN(ON_MEM_CLOCKS, 0);
	unsigned room = *n;
	*n = (unsigned)g->memories;
	if (room < *n) return leave(INSUFFICIENT_SIZE);
	for (unsigned i = 0; i < *n; i++) mhz[i] = (unsigned)g->memory[i];
	return leave(SUCCESS);
}

ret nvmlDeviceGetSupportedGraphicsClocks(dev d, unsigned memory, unsigned *n, unsigned *mhz) {
	BEGIN(ON_CLOCKS, 0);
	unsigned room = *n;
	for (int m = 0; m < g->memories; m++) {
		if (g->memory[m] != memory) continue;
		*n = (unsigned)((top(g, m) - g->low) / g->step + 1);
		if (room < *n) return leave(INSUFFICIENT_SIZE);
		for (unsigned i = 0; i < *n; i++) mhz[i] = (unsigned)(top(g, m) - g->step * i);
		return leave(SUCCESS);
	}
	return leave(NOT_FOUND);
}

static i64 asked(struct gpu *g) {
	i64 c = g->idle_clock ? g->idle_clock : g->high;
	if (!g->lock_max) return c;
	if (c > g->lock_max) c = g->lock_max;
	return c < g->lock_min ? g->lock_min : c;
}

static i64 clock_of(struct gpu *g) {
	return now_ns() - g->changed_ns < g->latency_ns ? g->clock_before : asked(g);
}

static void change(struct gpu *g, i64 min, i64 max) {
	g->clock_before = clock_of(g);
	g->changed_ns = now_ns();
	g->lock_min = min;
	g->lock_max = max;
	g->changes++;
}

/* As the driver: any pair in order is taken, listed or not, and rounded without a word. */
ret nvmlDeviceSetGpuLockedClocks(dev d, unsigned min, unsigned max) {
	BEGIN(ON_LOCK, 1);
	if (min > max || max == 0) return leave(INVALID_ARGUMENT);
	change(g, g->low + (min - g->low) / g->step * g->step, g->low + (max - g->low) / g->step * g->step);
	return leave(SUCCESS);
}

ret nvmlDeviceResetGpuLockedClocks(dev d) {
	BEGIN(ON_UNLOCK, 1);
	change(g, 0, 0);
	return leave(SUCCESS);
}

ret nvmlDeviceGetClockInfo(dev d, unsigned type, unsigned *mhz) {
	BEGIN(ON_CLOCK_INFO, 0);
	if (type > 3) return leave(INVALID_ARGUMENT);
	*mhz = (unsigned)(type == 2 ? g->memory_now : clock_of(g));
	return leave(SUCCESS);
}

ret nvmlDeviceGetPowerManagementLimit(dev d, unsigned *mw) { BEGIN(ON_LIMIT, 0); *mw = (unsigned)g->limit; return leave(SUCCESS); }
ret nvmlDeviceGetPowerManagementDefaultLimit(dev d, unsigned *mw) { BEGIN(ON_DEFAULT, 0); *mw = (unsigned)g->limit_default; return leave(SUCCESS); }

ret nvmlDeviceGetPowerManagementLimitConstraints(dev d, unsigned *min, unsigned *max) {
	BEGIN(ON_CONSTRAINTS, 0);
	*min = (unsigned)g->limit_min;
	*max = (unsigned)g->limit_max;
	return leave(SUCCESS);
}

ret nvmlDeviceGetEnforcedPowerLimit(dev d, unsigned *mw) {
	BEGIN(ON_ENFORCED, 0);
	*mw = (unsigned)(g->limit_outside && g->limit_outside < g->limit ? g->limit_outside : g->limit);
	return leave(SUCCESS);
}

ret nvmlDeviceSetPowerManagementLimit(dev d, unsigned mw) {
	BEGIN(ON_SET_LIMIT, 1);
	if (mw < g->limit_min || mw > g->limit_max) return leave(INVALID_ARGUMENT);
	g->limit = mw;
	g->changes++;
	return leave(SUCCESS);
}

static i64 energy(struct gpu *g) {
	i64 ns = now_ns() - g->since_ns;
	if (g->step_ns) ns = ns / g->step_ns * g->step_ns;
	return g->energy_mj + (i64)((double)ns / 1e9 * (double)g->power_mw);
}

ret nvmlDeviceGetTotalEnergyConsumption(dev d, unsigned long long *mj) { BEGIN(ON_ENERGY, 0); *mj = (unsigned long long)energy(g); return leave(SUCCESS); }
ret nvmlDeviceGetPowerUsage(dev d, unsigned *mw) { BEGIN(ON_POWER, 0); *mw = (unsigned)g->power_mw + 1000; return leave(SUCCESS); }

struct field { unsigned id, scope; long long stamp, latency; unsigned type; ret r; union { unsigned u; unsigned long long ull; } v; };

ret nvmlDeviceGetFieldValues(dev d, int n, struct field *f) {
	BEGIN(ON_FIELDS, 0);
	for (int i = 0; i < n; i++) {
		f[i].stamp = now_ns() / 1000;
		f[i].r = SUCCESS;
		switch (f[i].id) {
		case 74: f[i].type = 3; f[i].v.ull = (unsigned long long)g->capped_ns; break;
		case 186: f[i].type = 1; f[i].v.u = (unsigned)g->power_mw; break;
		default: f[i].r = NOT_SUPPORTED;
		}
	}
	return leave(SUCCESS);
}

#ifndef OLD
struct temperature { unsigned version, sensor; int celsius; };

ret nvmlDeviceGetTemperatureV(dev d, struct temperature *t) {
	BEGIN(ON_TEMPERATURE, 0);
	if (t->version != (sizeof *t | 1 << 24)) return leave(ARGUMENT_VERSION);
	if (t->sensor != 0) return leave(INVALID_ARGUMENT);
	t->celsius = (int)g->temperature;
	return leave(SUCCESS);
}

ret nvmlDeviceGetCurrentClocksEventReasons(dev d, unsigned long long *m) { BEGIN(ON_REASONS, 0); *m = (unsigned long long)g->reasons; return leave(SUCCESS); }

struct profiles { unsigned version, supported[8], asked[8], enforced[8]; };

static void put(unsigned *to, i64 mask) {
	to[0] = (unsigned)mask;
	to[1] = (unsigned)(mask >> 32);
}

ret nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(dev d, struct profiles *p) {
	BEGIN(ON_PROFILES, 0);
	if (g->asked_profiles < 0) return leave(NOT_SUPPORTED);
	if (p->version != (sizeof *p | 1 << 24)) return leave(ARGUMENT_VERSION);
	memset(p->supported, 0, sizeof p->supported * 3);
	put(p->asked, g->asked_profiles);
	put(p->enforced, g->enforced_profiles);
	return leave(SUCCESS);
}
#endif

#ifndef NEW
ret nvmlDeviceGetTemperature(dev d, unsigned sensor, unsigned *c) {
	BEGIN(ON_TEMPERATURE, 0);
	if (sensor != 0) return leave(INVALID_ARGUMENT);
	*c = (unsigned)g->temperature;
	return leave(SUCCESS);
}

ret nvmlDeviceGetCurrentClocksThrottleReasons(dev d, unsigned long long *m) { BEGIN(ON_REASONS, 0); *m = (unsigned long long)g->reasons; return leave(SUCCESS); }
#endif

ret nvmlDeviceGetMigMode(dev d, unsigned *current, unsigned *pending) {
	BEGIN(ON_MIG, 0);
	if (g->mig < 0) return leave(NOT_SUPPORTED);
	*current = *pending = (unsigned)g->mig;
	return leave(SUCCESS);
}

ret nvmlDeviceGetPersistenceMode(dev d, unsigned *on) { BEGIN(ON_PERSISTENCE, 0); *on = (unsigned)g->persistence; return leave(SUCCESS); }

/* For a test of the layouts: the sizes of the structs above. */
unsigned standin_sizes(int i) {
	switch (i) {
	case 0: return sizeof(struct pci);
	case 1: return sizeof(struct field);
#ifndef OLD
	case 2: return sizeof(struct temperature);
	case 3: return sizeof(struct profiles);
#endif
	}
	return 0;
}
