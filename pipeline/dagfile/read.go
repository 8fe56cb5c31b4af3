package dagfile

import (
	"bytes"
	_ "embed" // for the schema
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/internal/excerpt"
	"github.com/perseus-energy/perseus/unit"
)

// Format names the version of the format that Read takes.
const Format = "perseus-dag/1"

// The bounds of a file.
const (
	MaxBytes = 1 << 30
	MaxOps   = 1 << 22
)

//go:embed dag.schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of the format.
func Schema() []byte { return bytes.Clone(schema) }

// Resource is what runs one op at a time, most often a GPU or a group of them.
type Resource struct {
	Name string
	// BlockingPower is what it draws while it waits.
	BlockingPower unit.Power
}

// Op is an op of the file.
type Op struct {
	Name string
	// Resource is an index of File.Resources, or −1 for an op that occupies none.
	Resource int
	// Curve is the name of the curve that the op shares; empty for options of its own.
	Curve string
}

// File is what a file says.
type File struct {
	Resources []Resource
	Ops       []Op
	// Problem has the ops in the same order.
	Problem *dag.Problem
}

// decimal is a JSON number as written.
type decimal string

// UnmarshalJSON keeps the text; number reads it.
func (d *decimal) UnmarshalJSON(b []byte) error {
	*d = decimal(b)
	return nil
}

// The JSON as written. Pointers tell an absent field from a zero.
type (
	fileJSON struct {
		Format    string         `json:"format"`
		Comment   string         `json:"comment"`
		Resources []resourceJSON `json:"resources"`
		Curves    []curveJSON    `json:"curves"`
		Ops       []opJSON       `json:"ops"`
		Edges     [][]string     `json:"edges"`
	}
	resourceJSON struct {
		Name          string   `json:"name"`
		BlockingPower *decimal `json:"blocking_power_w"`
	}
	curveJSON struct {
		Name    string       `json:"name"`
		Options []optionJSON `json:"options"`
	}
	optionJSON struct {
		Clock  *decimal `json:"clock_mhz"`
		Time   *decimal `json:"time_s"`
		Energy *decimal `json:"energy_j"`
	}
	opJSON struct {
		Name     string       `json:"name"`
		Resource *string      `json:"resource"`
		Curve    *string      `json:"curve"`
		Options  []optionJSON `json:"options"`
		Time     *decimal     `json:"time_s"`
		Energy   *decimal     `json:"energy_j"`
	}
)

// Read returns the graph in r. It fails, with name standing for the file, where
// the JSON is broken (line and column are given), a field is unknown or missing, a
// name is double or not defined, a number is out of range, or ops wait for each
// other; the error names the first op or edge concerned. O(n·log n) in the size.
func Read(r io.Reader, name string) (*File, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%s: over %d bytes", name, MaxBytes)
	}
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	var raw fileJSON
	if err := decode(text, &raw); err != nil {
		return nil, fmt.Errorf("%s%w", name, err)
	}
	if err := uniqueKeys(text); err != nil {
		return nil, fmt.Errorf("%s%w", name, err)
	}
	if raw.Format != Format {
		return nil, fmt.Errorf("%s: format %s; this version reads %q", name, quote(raw.Format), Format)
	}
	f, err := raw.file()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// decode reads one JSON value; errors begin with ":line:column: ".
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	offset := d.InputOffset()
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
		err = fmt.Errorf("%s: found a %s, expected a %s", orRoot(kind.Field), kind.Value, expected(kind.Type.Kind().String()))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		offset, err = int64(len(text)), errors.New("the JSON ends too soon")
	case err == nil:
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more after the JSON value")
		}
	}
	if err == nil {
		return nil
	}
	return at(text, offset, err)
}

// at returns the error with the line and the column, in bytes, of an offset.
func at(text []byte, offset int64, err error) error {
	before := text[:min(max(offset, 0), int64(len(text)))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := max(1, len(before)-bytes.LastIndexByte(before, '\n')-1)
	return fmt.Errorf(":%d:%d: %s", line, column, strings.TrimPrefix(err.Error(), "json: "))
}

// uniqueKeys returns an error for the first key that an object has twice; text
// is valid JSON.
func uniqueKeys(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	type level struct {
		keys map[string]bool // nil in a list
		key  bool            // a key comes next
	}
	stack := []level{{}}
	for {
		token, err := d.Token()
		if err != nil {
			return nil // the end
		}
		top := &stack[len(stack)-1]
		switch token {
		case json.Delim('{'):
			top.key = true
			stack = append(stack, level{map[string]bool{}, true})
			continue
		case json.Delim('['):
			top.key = true
			stack = append(stack, level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
			continue
		}
		if top.keys == nil {
			continue
		}
		if top.key {
			key, _ := token.(string)
			if top.keys[key] {
				return at(text, d.InputOffset(), fmt.Errorf("the field %s is there twice", quote(key)))
			}
			top.keys[key] = true
		}
		top.key = !top.key
	}
}

func orRoot(field string) string {
	if field == "" {
		return "the file"
	}
	return field
}

// expected names a Go kind in JSON's words.
func expected(kind string) string {
	switch kind {
	case "struct":
		return "{…}"
	case "slice":
		return "list […]"
	}
	return kind
}

// names maps the names of one sort of thing to their numbers.
type names struct {
	sort   string
	number map[string]int32
}

func (n *names) add(name string, at int) error {
	if name == "" {
		return fmt.Errorf("%s %d has no name", n.sort, at+1)
	}
	if old, ok := n.number[name]; ok {
		return fmt.Errorf("%s %d: the name %s is that of %s %d", n.sort, at+1, quote(name), n.sort, old+1)
	}
	n.number[name] = int32(at)
	return nil
}

func (n *names) find(name string) (int32, error) {
	at, ok := n.number[name]
	if !ok {
		return 0, fmt.Errorf("there is no %s %s", n.sort, quote(name))
	}
	return at, nil
}

// file turns the JSON into a problem.
func (raw *fileJSON) file() (*File, error) {
	if len(raw.Ops) == 0 || len(raw.Ops) > MaxOps {
		return nil, fmt.Errorf("%d ops; there must be from 1 to %d", len(raw.Ops), MaxOps)
	}
	f := &File{}
	resources := names{"resource", map[string]int32{}}
	var blocking unit.Power
	for i, r := range raw.Resources {
		if err := resources.add(r.Name, i); err != nil {
			return nil, err
		}
		p, err := number(r.BlockingPower, "blocking_power_w", 6, unit.Nearest)
		if err != nil {
			return nil, fmt.Errorf("resource %s: %w", quote(r.Name), err)
		}
		if p < 0 || unit.Power(p) > unit.MaxPower {
			return nil, fmt.Errorf("resource %s: blocking_power_w is outside 0 … %v", quote(r.Name), unit.MaxPower)
		}
		f.Resources = append(f.Resources, Resource{r.Name, unit.Power(p)})
		if blocking += unit.Power(p); blocking > unit.MaxPower {
			return nil, fmt.Errorf("resource %s: the blocking powers add up to more than %v", quote(r.Name), unit.MaxPower)
		}
	}
	ops := names{"op", make(map[string]int32, len(raw.Ops))}
	last := make([]int32, len(raw.Resources)) // each resource's last op so far
	for i := range last {
		last[i] = -1
	}
	var arcs []dag.Arc
	for i := range raw.Ops {
		o := &raw.Ops[i]
		if err := ops.add(o.Name, i); err != nil {
			return nil, err
		}
		op := Op{Name: o.Name, Resource: -1}
		if o.Curve != nil {
			op.Curve = *o.Curve
		}
		if o.Resource != nil {
			at, err := resources.find(*o.Resource)
			if err != nil {
				return nil, fmt.Errorf("op %s: %w", quote(o.Name), err)
			}
			op.Resource = int(at)
			if last[at] >= 0 {
				arcs = append(arcs, dag.Arc{From: last[at], To: int32(i)})
			}
			last[at] = int32(i)
		}
		f.Ops = append(f.Ops, op)
	}
	for i, e := range raw.Edges {
		arc, err := edge(e, &ops)
		if err != nil {
			return nil, fmt.Errorf("edge %d: %w", i+1, err)
		}
		arcs = append(arcs, arc)
	}
	graph, err := dag.NewGraph(len(f.Ops), arcs)
	if err != nil {
		return nil, f.explain(err)
	}
	curves, curveOf, err := raw.curves(f)
	if err != nil {
		return nil, err
	}
	if f.Problem, err = dag.NewProblem(graph, curves, curveOf, blocking); err != nil {
		return nil, err
	}
	return f, nil
}

func edge(e []string, ops *names) (dag.Arc, error) {
	if len(e) != 2 {
		return dag.Arc{}, fmt.Errorf("%d names; an edge is [from, to]", len(e))
	}
	from, err := ops.find(e[0])
	if err != nil {
		return dag.Arc{}, err
	}
	to, err := ops.find(e[1])
	if err != nil {
		return dag.Arc{}, err
	}
	if from == to {
		return dag.Arc{}, fmt.Errorf("op %s waits for itself", quote(e[0]))
	}
	return dag.Arc{From: from, To: to}, nil
}

// explain names the ops of a cycle, from the first one in the file.
func (f *File) explain(err error) error {
	var cycle *dag.CycleError
	if !errors.As(err, &cycle) {
		return err
	}
	n, first := len(cycle.Ops), 0
	for i, op := range cycle.Ops {
		if op < cycle.Ops[first] {
			first = i
		}
	}
	const shown = 6
	var chain strings.Builder
	for i := range min(n, shown) {
		fmt.Fprintf(&chain, "%s waits for ", quote(f.Ops[cycle.Ops[(first-i+n)%n]].Name))
	}
	if n > shown {
		fmt.Fprintf(&chain, "… (%d ops in all) waits for ", n)
	}
	return fmt.Errorf("ops wait for each other: %s%s (the ops of a resource run in the order of the file)",
		&chain, quote(f.Ops[cycle.Ops[first]].Name))
}

// quote quotes a name, cut to a length that a line can hold.
func quote(s string) string { return excerpt.Quoted(s, 60) }
