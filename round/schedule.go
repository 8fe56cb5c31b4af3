package round

// schedule is a choice of options with the events of one direction of time.
type schedule struct {
	m *model
	// choice is each op's option, early its earliest end and late its latest.
	choice []int32
	early  []int64
	late   []int64
}

func newSchedule(m *model, choice []int32) *schedule {
	s := &schedule{m: m, choice: choice, early: make([]int64, len(choice)), late: make([]int64, len(choice))}
	s.update()
	return s
}

func (s *schedule) time(op int32) int64 { return s.m.options(op)[s.choice[op]].time }

// update computes early and late from choice. O(ops + arcs).
func (s *schedule) update() {
	m := s.m
	for _, op := range m.order {
		start := int64(0)
		for _, l := range m.predecessors(op) {
			start = max(start, s.early[l.op])
		}
		s.early[op] = start + s.time(op)
	}
	for i := len(m.order) - 1; i >= 0; i-- {
		op := m.order[i]
		end := m.total
		for _, l := range m.successors(op) {
			end = min(end, s.late[l.op]-s.time(l.op))
		}
		s.late[op] = end
	}
}

// gap returns Σe' less the bound of the flow, in joules: Σ loss + price·total −
// Σ flow·time.
func (s *schedule) gap() float64 {
	sum := float64(s.m.price * float64(s.m.total))
	for op := range s.choice {
		n := &s.m.nodes[op]
		o := s.m.opts[n.opt0+s.choice[op]]
		sum += o.loss - float64(n.flow*float64(o.time))
	}
	return sum
}
