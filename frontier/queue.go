package frontier

// queue holds arcs that may enter the basis at the present makespan, those that
// start at the earliest events first. The zero value is empty.
type queue struct{ heap []uint64 }

func (q *queue) push(from int32, r residual) {
	q.heap = append(q.heap, uint64(uint32(from))<<32|uint64(uint32(r)))
	h := q.heap
	for i := len(h) - 1; i > 0; {
		above := (i - 1) / 2
		if h[above] <= h[i] {
			return
		}
		h[above], h[i] = h[i], h[above]
		i = above
	}
}

func (q *queue) pop() (r residual, ok bool) {
	h := q.heap
	if len(h) == 0 {
		return 0, false
	}
	r = residual(uint32(h[0]))
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	q.heap = h
	for i := 0; ; {
		below := 2*i + 1
		if below >= len(h) {
			return r, true
		}
		if below+1 < len(h) && h[below+1] < h[below] {
			below++
		}
		if h[i] <= h[below] {
			return r, true
		}
		h[i], h[below] = h[below], h[i]
		i = below
	}
}
