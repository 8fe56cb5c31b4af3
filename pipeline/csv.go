package pipeline

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// CSVError is a fault of a schedule CSV.
type CSVError struct {
	// Name is that of the input. Line counts from 1 and is the rank plus one; Cell
	// counts from 1 along the line, 0 where the whole line is meant.
	Name       string
	Line, Cell int
	Err        error
}

func (e *CSVError) Error() string {
	if e.Cell == 0 {
		return fmt.Sprintf("%s:%d: %v", e.Name, e.Line, e.Err)
	}
	return fmt.Sprintf("%s:%d: cell %d: %v", e.Name, e.Line, e.Cell, e.Err)
}

func (e *CSVError) Unwrap() error { return e.Err }

// sheet is a schedule CSV as read: each rank's actions, communication included,
// and the cell that each was in.
type sheet struct {
	name  string
	ranks [][]Action
	cells [][]int32
}

// ReadCSV returns the order in a schedule CSV as PyTorch's pipelining dumps and
// loads it: line i is rank i, a cell an action as [ParseAction] reads it, an empty
// cell idle time, which is left out. It takes the compute-only form and the lowered
// one: of that it checks that each SEND has its RECV, each value that crosses ranks
// both, and that they stand where they can run; then it leaves communication and
// REDUCE_GRAD out ([Order.WithFixed] puts the latter back). The order is named
// "custom".
//
// BOM, CRLF, spaces around cells, quotes and trailing empty lines do not matter.
// All errors in the file are a *CSVError, mostly naming the first action
// concerned; name stands for the file in them. At most 6·MaxActions cells are
// read. O(cells).
func ReadCSV(r io.Reader, name string) (*Order, error) {
	s, err := readSheet(r, name)
	if err != nil {
		return nil, err
	}
	o, cells := s.order()
	if err := o.measure(); err != nil {
		var fault *ActionError
		if errors.As(err, &fault) && fault.Position < len(cells[fault.Rank]) {
			return nil, &CSVError{name, fault.Rank + 1, int(cells[fault.Rank][fault.Position]), fault.Err}
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := s.checkCommunication(o); err != nil {
		return nil, err
	}
	return o, nil
}

// readSheet reads the cells.
func readSheet(r io.Reader, name string) (*sheet, error) {
	const (
		maxCell  = 128
		maxCells = 6 * MaxActions
		maxRanks = 1 << 20
	)
	s := &sheet{name: name, ranks: [][]Action{nil}, cells: [][]int32{nil}}
	in := bufio.NewReaderSize(r, 1<<16)
	if mark, _ := in.Peek(3); string(mark) == "\uFEFF" {
		_, _ = in.Discard(3)
	}
	var text []byte
	var total, actions, width int // width: cells of the line before this one
	end := func() error {         // of a cell
		rank := len(s.ranks) - 1
		width++
		total++
		cell := strings.TrimSpace(string(text))
		if len(cell) >= 2 && cell[0] == '"' && cell[len(cell)-1] == '"' {
			cell = strings.TrimSpace(cell[1 : len(cell)-1])
		}
		text = text[:0]
		if cell == "" {
			return nil
		}
		a, err := ParseAction(cell)
		if err != nil {
			return &CSVError{name, rank + 1, width, explain(cell, err, rank == 0 && width == 1)}
		}
		if actions++; actions > MaxActions*6 || total > maxCells {
			return &CSVError{name, rank + 1, width, fmt.Errorf("over %d cells", maxCells)}
		}
		s.ranks[rank] = append(s.ranks[rank], a)
		s.cells[rank] = append(s.cells[rank], int32(width))
		return nil
	}
	for {
		c, err := in.ReadByte()
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		switch {
		case c == ',' || c == '\n':
			if err := end(); err != nil {
				return nil, err
			}
			if c == '\n' {
				s.ranks, s.cells, width = append(s.ranks, nil), append(s.cells, nil), 0
			}
		case len(text) == maxCell:
			return nil, &CSVError{name, len(s.ranks), width + 1, fmt.Errorf("a cell of over %d bytes: cells are separated by commas", maxCell)}
		default:
			text = append(text, c)
		}
		if total > maxCells || len(s.ranks) > maxRanks {
			return nil, &CSVError{name, len(s.ranks), width, fmt.Errorf("over %d cells or %d lines", maxCells, maxRanks)}
		}
	}
	if err := end(); err != nil {
		return nil, err
	}
	for n := len(s.ranks); n > 0 && len(s.ranks[n-1]) == 0; n-- {
		s.ranks, s.cells = s.ranks[:n-1], s.cells[:n-1]
	}
	if len(s.ranks) == 0 {
		return nil, fmt.Errorf("%s: no action in it; a line is a rank, as 0F0,0B0", name)
	}
	for r, actions := range s.ranks {
		if len(actions) == 0 {
			return nil, &CSVError{name, r + 1, 0, fmt.Errorf("rank %d has no action: a line is a rank", r)}
		}
	}
	return s, nil
}

// explain adds to a cell's error what the likely reason is.
func explain(cell string, err error, first bool) error {
	switch {
	case strings.ContainsRune(cell, ';') && !strings.HasPrefix(cell, "("):
		return fmt.Errorf("%w; cells are separated by commas, not semicolons", err)
	case first && (cell[0] < '0' || cell[0] > '9') && cell[0] != '(':
		return fmt.Errorf("%w; there is no header, each line is a rank", err)
	}
	return err
}

// order returns what remains without communication, and the cells of it.
func (s *sheet) order() (*Order, [][]int32) {
	o, cells := &Order{Ranks: make([][]Action, len(s.ranks))}, make([][]int32, len(s.ranks))
	for r, actions := range s.ranks {
		for i, a := range actions {
			if !a.Kind.Communication() && a.Kind != ReduceGrad {
				o.Ranks[r] = append(o.Ranks[r], a)
				cells[r] = append(cells[r], s.cells[r][i])
			}
		}
	}
	return o, cells
}

// WriteCSV writes the order's actions, a line a rank, separated by commas, as
// Action.String writes them; ReadCSV reads it.
func (o *Order) WriteCSV(w io.Writer) error {
	return writeCSV(w, o.Ranks, "\n", "")
}

// WriteTorchCSV writes the order in the form that PyTorch's _load_csv reads: the
// compute-only one, or the lowered one of [Order.Lower]. It fails where PyTorch
// has no such action, and for lowering where a stage is on several ranks.
func (o *Order) WriteTorchCSV(w io.Writer, lowered bool) error {
	ranks := o.Ranks
	if lowered {
		var err error
		if ranks, err = o.Lower(); err != nil {
			return err
		}
	}
	for r, actions := range ranks {
		for i, a := range actions {
			if a.Kind == Recompute || a.Kind == RecomputeBackward || a.Kind == Load || a.Kind == Optimizer || a.Kind == ReduceGrad && !lowered {
				return &ActionError{r, i, fmt.Errorf("%v: PyTorch's schedules have no such action", a)}
			}
		}
	}
	return writeCSV(w, ranks, "\r\n", Overlap.String())
}

func writeCSV(w io.Writer, ranks [][]Action, newline, overlap string) error {
	out := bufio.NewWriter(w)
	var text []byte
	for _, actions := range ranks {
		for i, a := range actions {
			text = text[:0]
			if i > 0 {
				text = append(text, ',')
			}
			text = a.append(text)
			if a.Kind == Overlap {
				text = append(text, overlap...)
			}
			_, _ = out.Write(text) // Flush reports it
		}
		_, _ = out.WriteString(newline)
	}
	return out.Flush()
}
