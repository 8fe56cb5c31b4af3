package zeus

import "sync"

// served remembers what each rank was last told, since a result says neither iteration nor clock. It is lost with the
// process: a rank whose result finds nothing here is taken to follow the newest schedule.
type served struct {
	mu    sync.Mutex
	jobs  map[string]*servedJob
	ranks int
	clock uint64 // counts uses
}

type servedJob struct {
	ranks map[int]*servedRank
	base  int64 // the iteration that all its ranks count from
	used  uint64
}

type servedRank struct {
	generation int
	version    int64
	steps      *steps
	iterations int64 // that the rank has reported since base
}

// maxServed bounds the ranks remembered; the jobs unused for longest go first.
const maxServed = 1 << 17

// put notes what a rank was told. iteration is the newest one that the service knows of.
func (s *served) put(job string, rank int, told servedRank, iteration int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.use(job, iteration)
	if before, ok := j.ranks[rank]; ok {
		if before.generation == told.generation {
			told.iterations = before.iterations
		}
	} else {
		s.ranks++
	}
	j.ranks[rank] = &told
	s.shrink(job)
}

// last returns what a rank was told, if that is known.
func (s *served) last(job string, rank int) (servedRank, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j, ok := s.jobs[job]; ok && j.ranks[rank] != nil {
		return *j.ranks[rank], true
	}
	return servedRank{}, false
}

// count returns the number of a rank's newest iteration after so many more, without noting them.
func (s *served) count(job string, rank, more int, iteration int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.use(job, iteration)
	n := j.base + int64(more) - 1
	if r, ok := j.ranks[rank]; ok {
		n += r.iterations
	}
	return n
}

// accepted notes that a rank's report of so many iterations is durable.
func (s *served) accepted(job string, rank, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j, ok := s.jobs[job]; ok && j.ranks[rank] != nil {
		j.ranks[rank].iterations += int64(more)
	}
}

func (s *served) use(job string, iteration int64) *servedJob {
	if s.jobs == nil {
		s.jobs = map[string]*servedJob{}
	}
	j, ok := s.jobs[job]
	if !ok {
		j = &servedJob{ranks: map[int]*servedRank{}}
		if iteration > 0 {
			j.base = iteration + 1
		}
		s.jobs[job] = j
	}
	s.clock++
	j.used = s.clock
	return j
}

// shrink forgets jobs, but not the one given, until at most maxServed ranks are left. O(jobs) for each job forgotten.
func (s *served) shrink(keep string) {
	for s.ranks > maxServed && len(s.jobs) > 1 {
		oldest := ""
		for id, j := range s.jobs {
			if id != keep && (oldest == "" || j.used < s.jobs[oldest].used) {
				oldest = id
			}
		}
		s.ranks -= len(s.jobs[oldest].ranks)
		delete(s.jobs, oldest)
	}
}
