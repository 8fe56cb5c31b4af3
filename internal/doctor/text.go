package doctor

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes r as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes r for people, a line a finding and one more for its way out.
func (r *Report) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "This node")
	writeFindings(b, r.Findings)
	for i := range r.GPUs {
		g := &r.GPUs[i]
		fmt.Fprintf(b, "\nGPU %d  %s\n", g.Index, g.ID)
		if g.Name != "" {
			fmt.Fprintf(b, "  %s", g.Name)
			if g.PCI != "" {
				fmt.Fprintf(b, " at %s", g.PCI)
			}
			fmt.Fprintln(b)
		}
		writeFindings(b, g.Findings)
	}
	fmt.Fprintln(b)
	switch n := r.Missing(); {
	case n == 1:
		fmt.Fprintln(b, "1 thing that Perseus needs is missing here.")
	case n > 1:
		fmt.Fprintf(b, "%d things that Perseus needs are missing here.\n", n)
	default:
		fmt.Fprintln(b, "Perseus can work here.")
	}
	return b.Flush()
}

func writeFindings(w io.Writer, findings []Finding) {
	for _, f := range findings {
		fmt.Fprintf(w, "  %-7s  %-16s  %s\n", f.Level, f.Check, f.Found)
		if f.WayOut != "" {
			fmt.Fprintf(w, "  %-7s  %-16s  → %s\n", "", "", f.WayOut)
		}
	}
}
