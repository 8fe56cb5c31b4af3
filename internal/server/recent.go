package server

import "sync"

// recent is a map that forgets what was not used for longest. Safe for concurrent use.
type recent[V any] struct {
	max  int
	mu   sync.Mutex
	tick int64
	m    map[string]*entry[V]
}

type entry[V any] struct {
	v    V
	used int64
}

func newRecent[V any](n int) *recent[V] { return &recent[V]{max: n, m: map[string]*entry[V]{}} }

func (r *recent[V]) get(k string) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.m[k]
	if !ok {
		return v, false
	}
	r.tick++
	e.used = r.tick
	return e.v, true
}

func (r *recent[V]) put(k string, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(k, v)
}

// getOrPut returns what is there, or else puts what fresh returns.
func (r *recent[V]) getOrPut(k string, fresh func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.m[k]
	if !ok {
		return r.add(k, fresh())
	}
	r.tick++
	e.used = r.tick
	return e.v
}

func (r *recent[V]) add(k string, v V) V {
	r.tick++
	r.m[k] = &entry[V]{v, r.tick}
	if len(r.m) <= r.max {
		return v
	}
	oldest := k
	for k, e := range r.m {
		if e.used < r.m[oldest].used {
			oldest = k
		}
	}
	delete(r.m, oldest)
	return v
}

func (r *recent[V]) drop(k string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.m, k)
}
