package demo

import (
	"fmt"
	"io"
)

// Lines returns a view for what is no terminal: each line as it comes, and no status.
func Lines(w io.Writer) View { return lines{w} }

type lines struct{ w io.Writer }

func (l lines) Line(text string) { _, _ = fmt.Fprintln(l.w, text) }
func (lines) Status(string)      {}

// Terminal returns a view for a terminal of that many columns, with the status in its last line.
func Terminal(w io.Writer, width int) View { return &terminal{w: w, width: width} }

type terminal struct {
	w      io.Writer
	width  int
	status string
}

const clearLine = "\r\x1b[K"

func (t *terminal) Line(text string) {
	_, _ = fmt.Fprintf(t.w, "%s%s\n%s", t.clear(), text, t.status)
}

func (t *terminal) Status(text string) {
	clear := t.clear()
	if r := []rune(text); len(r) >= t.width {
		text = string(r[:max(0, t.width-1)])
	}
	t.status = text
	_, _ = fmt.Fprint(t.w, clear+text)
}

func (t *terminal) clear() string {
	if t.status == "" {
		return ""
	}
	return clearLine
}

// WriteText writes the result for people.
func (r *Result) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "\n%-28s %12s %12s %10s\n", "an iteration of all GPUs", "time", "energy", "saved")
	row := func(what string, t, e float64, saved string) {
		if err == nil {
			_, err = fmt.Fprintf(w, "%-28s %10.3f s %10.0f J %10s\n", what, t, e, saved)
		}
	}
	row("at maximum clock", r.MaxTimeS, r.MaxEnergyJ, "")
	row("by the energy schedule", r.TimeS, r.EnergyJ, fmt.Sprintf("%.2f %%", r.Saving))
	row("waiting for a hot GPU", r.SlowTimeS, r.SlowEnergyJ, fmt.Sprintf("%.2f %%", r.Straggler))
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	for _, c := range r.Checks {
		mark := "ok    "
		if !c.OK {
			mark = "FAILED"
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "%s  %s\n", mark, c.Text)
		}
	}
	return err
}
