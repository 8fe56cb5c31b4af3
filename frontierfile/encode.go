package frontierfile

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/perseus-energy/perseus/unit"
)

// Builder makes a File from points that come slowest first, as the solver walks.
// It holds one point's choice and flow, and the encoded differences.
type Builder struct {
	choice  []int32
	flow    []unit.Power
	encoded []encoded // slowest first
	changes changes
}

// Add adds the next faster point's choice and flow, which it copies. All points
// must have the same number of ops and arcs. O(ops + arcs).
func (b *Builder) Add(choice []int32, flow []unit.Power) {
	if b.choice == nil {
		b.choice, b.flow = slices.Clone(choice), slices.Clone(flow)
		return
	}
	b.encoded = append(b.encoded, encodeStep(&b.changes, choice, b.choice, flow, b.flow))
	copy(b.choice, choice)
	copy(b.flow, flow)
}

// Points returns how many points were added.
func (b *Builder) Points() int {
	if b.choice == nil {
		return 0
	}
	return len(b.encoded) + 1
}

// File returns the file of the points added, with the given header and the
// points' costs, fastest first; there must be as many as were added. h and
// points are kept. The builder must not be used afterwards.
func (b *Builder) File(h Header, points []Point) *File {
	if len(points) != b.Points() {
		panic("frontierfile: as many costs as points are needed")
	}
	f := &File{Header: h, Points: points}
	if len(points) == 0 {
		return f
	}
	// The fastest point came last: it is the difference to nothing.
	none := make([]int32, len(b.choice))
	still := make([]unit.Power, len(b.flow))
	b.encoded = append(b.encoded, encodeStep(&b.changes, none, b.choice, still, b.flow))
	slices.Reverse(b.encoded)
	f.encoded = b.encoded
	return f
}

// encodeStep encodes the step from one point (the faster) to the next.
func encodeStep(c *changes, choice, nextChoice []int32, flow, nextFlow []unit.Power) encoded {
	c.reset()
	for i, v := range choice {
		if d := nextChoice[i] - v; d != 0 {
			c.add(int64(d), int32(i))
		}
	}
	c.encode()
	knobs := len(c.text)
	c.list = c.list[:0]
	for i, v := range flow {
		if d := nextFlow[i] - v; d != 0 {
			c.add(int64(d), int32(i))
		}
	}
	c.encode()
	text := slices.Clone(c.text)
	return encoded{knobs: text[:knobs:knobs], flow: text[knobs:]}
}

// changes collects the changes of one step and groups them by their size.
type changes struct {
	list   []change
	sorted []change
	kinds  []kind
	text   []byte
}

type change struct {
	by    int64
	index int32
}

type kind struct {
	by    int64
	count int
}

func (c *changes) reset() { c.list, c.text = c.list[:0], c.text[:0] }

func (c *changes) add(by int64, index int32) { c.list = append(c.list, change{by, index}) }

// manyKinds is where sorting by comparison is quicker than looking up the kind
// of each change in a list.
const manyKinds = 48

// group sorts list by size of change, then index, into sorted. Indexes in list
// rise, and there are few sizes: a flow changes by one amount along a path.
func (c *changes) group() {
	c.kinds = c.kinds[:0]
	last := 0
	for _, x := range c.list {
		if len(c.kinds) == 0 || c.kinds[last].by != x.by {
			last = slices.IndexFunc(c.kinds, func(k kind) bool { return k.by == x.by })
			if last < 0 {
				last = len(c.kinds)
				c.kinds = append(c.kinds, kind{by: x.by})
			}
			if len(c.kinds) > manyKinds {
				c.sorted = append(c.sorted[:0], c.list...)
				slices.SortFunc(c.sorted, func(a, b change) int {
					return cmp.Or(cmp.Compare(a.by, b.by), cmp.Compare(a.index, b.index))
				})
				return
			}
		}
		c.kinds[last].count++
	}
	slices.SortFunc(c.kinds, func(a, b kind) int { return cmp.Compare(a.by, b.by) })
	at := 0
	for i := range c.kinds {
		c.kinds[i].count, at = at, at+c.kinds[i].count
	}
	c.sorted = slices.Grow(c.sorted[:0], len(c.list))[:len(c.list)]
	last = 0
	for _, x := range c.list {
		if c.kinds[last].by != x.by {
			last = slices.IndexFunc(c.kinds, func(k kind) bool { return k.by == x.by })
		}
		c.sorted[c.kinds[last].count] = x
		c.kinds[last].count++
	}
}

// encode appends the groups of list to text, as in [[-1,0,3,1],[2,5]]: the size
// of the change, the first index, and from each index the distance to the next.
func (c *changes) encode() {
	c.group()
	c.text = append(c.text, '[')
	for i, x := range c.sorted {
		switch {
		case i > 0 && c.sorted[i-1].by == x.by:
			c.text = append(c.text, ',')
			c.text = strconv.AppendInt(c.text, int64(x.index-c.sorted[i-1].index), 10)
			continue
		case i > 0:
			c.text = append(c.text, ']', ',')
		}
		c.text = append(c.text, '[')
		c.text = strconv.AppendInt(c.text, x.by, 10)
		c.text = append(c.text, ',')
		c.text = strconv.AppendInt(c.text, int64(x.index), 10)
	}
	if len(c.sorted) > 0 {
		c.text = append(c.text, ']')
	}
	c.text = append(c.text, ']')
}
