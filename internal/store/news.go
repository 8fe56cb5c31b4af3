package store

import "sync"

// A hub hands the ids of published jobs to subscribers. Each has a set of ids that it has yet to take, so publishing never waits.
type hub struct {
	mu     sync.Mutex
	subs   map[*subscription]struct{}
	closed bool
}

type subscription struct {
	hub     *hub
	out     chan string
	wake    chan struct{} // capacity 1
	stop    chan struct{}
	done    chan struct{}
	once    sync.Once
	pending map[string]struct{} // guarded by hub.mu
	order   []string            // the pending ids, oldest first
}

func newHub() *hub { return &hub{subs: map[*subscription]struct{}{}} }

func (h *hub) subscribe() (<-chan string, func()) {
	s := &subscription{
		hub: h, out: make(chan string), wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		pending: map[string]struct{}{},
	}
	h.mu.Lock()
	closed := h.closed
	if !closed {
		h.subs[s] = struct{}{}
	}
	h.mu.Unlock()
	if closed {
		close(s.out)
		return s.out, func() {}
	}
	go s.run()
	return s.out, s.cancel
}

// publish costs O(ids · subscribers) and never blocks.
func (h *hub) publish(ids ...string) {
	if len(ids) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		for _, id := range ids {
			if _, ok := s.pending[id]; !ok {
				s.pending[id] = struct{}{}
				s.order = append(s.order, id)
			}
		}
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// close ends all subscriptions and waits for their goroutines.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	subs := make([]*subscription, 0, len(h.subs))
	for s := range h.subs {
		subs = append(subs, s)
	}
	h.mu.Unlock()
	for _, s := range subs {
		s.cancel()
	}
}

func (s *subscription) cancel() {
	s.once.Do(func() {
		close(s.stop)
		s.hub.mu.Lock()
		delete(s.hub.subs, s)
		s.hub.mu.Unlock()
	})
	<-s.done
}

func (s *subscription) run() {
	defer close(s.done)
	defer close(s.out)
	for {
		id, ok := s.next()
		if !ok {
			select {
			case <-s.wake:
				continue
			case <-s.stop:
				return
			}
		}
		select {
		case s.out <- id:
		case <-s.stop:
			return
		}
	}
}

// next takes the oldest pending id; the id may be published, and told, again from here on.
func (s *subscription) next() (string, bool) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if len(s.order) == 0 {
		s.order = nil
		return "", false
	}
	id := s.order[0]
	s.order = s.order[1:]
	delete(s.pending, id)
	return id, true
}
