package round

import "slices"

// face knows how far the events of a state are from a relaxed optimum.
//
// The relaxed optima with a given flow are the solutions of a system of
// difference constraints: each op takes between the two hull vertices that its
// flow prices alike, and no dependency with flow waits. What that says about the
// ends of the ops that are open at some position (later events eliminated) is
// again such a system, a matrix of distances.
type face struct {
	// live lists the slots open before each position. distance is the matrix for
	// them and, last, the end of the iteration: x_i − x_j ≤ distance[i][j].
	live     [][]int32
	distance [][]float64
	matrix   []int64
	nodes    []int
	size     int
}

// widest is the number of open ops from which on the matrix is left out.
const widest = 48

// project fills live and distance for a window, from its end to its start.
// O(window · open²).
func (f *face) project(s *schedule, w window, slot []int32, closing [][]int32, slots int) {
	m := s.m
	f.size = slots + 3
	if len(f.matrix) < f.size*f.size {
		f.matrix = make([]int64, f.size*f.size)
	}
	finish, start, end := slots, slots+1, slots+2
	f.nodes = f.nodes[:0]
	f.add(finish)
	f.save(w.to, slots)
	if slots > widest {
		for i := w.from; i < w.to; i++ {
			f.save(i, slots)
		}
		return
	}
	for i := w.to - 1; i >= w.from; i-- {
		op := m.order[i]
		n := &m.nodes[op]
		u := end
		for _, l := range m.successors(op) {
			if int(m.place[l.op]) < w.to {
				u = int(slot[op])
			}
		}
		if u == end {
			f.add(u)
		}
		if n.isLast {
			f.bound(u, finish, 0)
			f.bound(finish, u, n.wait)
		}
		for _, l := range m.successors(op) {
			if int(m.place[l.op]) >= w.to {
				d := s.late[l.op] - s.time(l.op) - m.total
				f.bound(u, finish, d)
				if l.flow > 0 {
					f.bound(finish, u, -d)
				}
			}
		}
		f.add(start)
		least, most := n.least, n.most
		if !w.isFree(op) {
			least = s.time(op)
			most = least
		}
		f.bound(start, u, -least)
		f.bound(u, start, most)
		f.remove(u)
		for _, closed := range closing[op] {
			f.add(int(slot[closed]))
		}
		for _, l := range m.predecessors(op) {
			f.bound(int(slot[l.op]), start, 0)
			f.bound(start, int(slot[l.op]), l.wait)
		}
		f.remove(start)
		f.save(i, slots)
	}
}

func (f *face) add(u int) {
	for _, i := range f.nodes {
		f.matrix[i*f.size+u], f.matrix[u*f.size+i] = far, far
	}
	f.matrix[u*f.size+u] = 0
	f.nodes = append(f.nodes, u)
}

func (f *face) remove(u int) {
	i := slices.Index(f.nodes, u)
	f.nodes[i] = f.nodes[len(f.nodes)-1]
	f.nodes = f.nodes[:len(f.nodes)-1]
}

// bound adds x_u − x_v ≤ d to the closed matrix.
func (f *face) bound(u, v int, d int64) {
	if d >= f.matrix[u*f.size+v] {
		return
	}
	to := f.matrix[v*f.size : (v+1)*f.size]
	for _, i := range f.nodes {
		row := f.matrix[i*f.size : (i+1)*f.size]
		if row[u] == far {
			continue
		}
		via := row[u] + d
		for _, j := range f.nodes {
			if to[j] != far {
				row[j] = min(row[j], via+to[j])
			}
		}
	}
}

func (f *face) save(position, slots int) {
	live := f.live[position][:0]
	for _, u := range f.nodes {
		if u < slots {
			live = append(live, int32(u))
		}
	}
	n := len(live) + 1
	d := slices.Grow(f.distance[position][:0], n*n)[:n*n]
	for i := range n {
		u := slots
		if i < len(live) {
			u = int(live[i])
		}
		for j, v := range live {
			d[i*n+j] = float64(f.matrix[u*f.size+int(v)])
		}
		d[i*n+n-1] = float64(f.matrix[u*f.size+slots])
	}
	f.live[position], f.distance[position] = live, d
}

// view measures states before one position, in which one slot is new.
type view struct {
	at          int // of the new slot among live, −1 where nothing needs its end
	live        []int32
	distance    []float64
	weights     []float64
	x           []float64
	row, column []float64
}

func (b *beam) view(position, slot int) view {
	live := b.live[position]
	n := len(live) + 1
	v := view{
		at: slices.Index(live, int32(slot)), live: live, distance: b.distance[position],
		weights: b.weights[:n], x: b.x[:n], row: b.row[:n], column: b.column[:n],
	}
	for i, u := range live {
		v.weights[i] = b.weight[u]
	}
	v.weights[n-1] = float64(b.alpha * b.m.price)
	return v
}

// set takes over a state: row holds by how much each event comes too late for
// any other but the new one, column by how much too early.
func (v *view) set(ends []int64, total int64) {
	n := len(v.x)
	for i, u := range v.live {
		v.x[i] = float64(ends[u])
	}
	v.x[n-1] = float64(total)
	clear(v.row)
	clear(v.column)
	for i := range n {
		if i == v.at {
			continue
		}
		late, early, x := v.row[i], v.column[i], v.x[i]
		row := v.distance[i*n : (i+1)*n]
		for j := i + 1; j < n; j++ {
			if j == v.at {
				continue
			}
			d := x - v.x[j]
			over, under := d-row[j], -d-v.distance[j*n+i]
			late, early = max(late, over), max(early, under)
			v.column[j], v.row[j] = max(v.column[j], over), max(v.row[j], under)
		}
		v.row[i], v.column[i] = late, early
	}
}

// penalty returns the price of the way to a relaxed optimum where the new event
// is at end: that of making the late events earlier or of making the early ones
// later, whichever is less.
func (v *view) penalty(end int64) float64 {
	n := len(v.x)
	rows, columns := 0.0, 0.0
	if v.at < 0 {
		for i, w := range v.weights {
			rows += float64(w * v.row[i])
			columns += float64(w * v.column[i])
		}
		return min(rows, columns)
	}
	late, early, x := 0.0, 0.0, float64(end)
	row := v.distance[v.at*n : (v.at+1)*n]
	for i, w := range v.weights {
		if i == v.at {
			continue
		}
		d := x - v.x[i]
		over, under := d-row[i], -d-v.distance[i*n+v.at]
		late, early = max(late, over), max(early, under)
		rows += float64(w * max(v.row[i], under))
		columns += float64(w * max(v.column[i], over))
	}
	rows += float64(v.weights[v.at] * late)
	columns += float64(v.weights[v.at] * early)
	return min(rows, columns)
}
