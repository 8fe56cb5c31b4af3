// Package progress draws a bar on a terminal while long work is done: not before
// it has taken a second, and gone when it is over.
//
// It knows nothing of the work but a share of it, and is for the commands.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Bar is a progress bar. A nil *Bar does nothing.
type Bar struct {
	w     io.Writer
	width int
	now   func() time.Time
	begun time.Time

	mu   sync.Mutex
	last time.Time
	text string
	over bool
}

// patience is how long work may take without a bar, interval the time between
// two drawings.
const (
	patience = time.Second
	interval = 100 * time.Millisecond
)

// New returns a bar that draws on w, a terminal of the given width in
// characters. now is the clock.
func New(w io.Writer, width int, now func() time.Time) *Bar {
	return &Bar{w: w, width: width, now: now, begun: now()}
}

// Set says which share of the work is done, and in a few words what was reached.
// It may be called often, and by several goroutines.
func (b *Bar) Set(share float64, text string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.now()
	if b.over || t.Sub(b.begun) < patience || t.Sub(b.last) < interval {
		return
	}
	b.last = t
	share = min(max(share, 0), 1)
	const room = 16 // brackets, percentage
	cells := min(b.width-room-len(text), 40)
	line := fmt.Sprintf("%3.0f %% %s", 100*share, text)
	if cells > 4 {
		full := int(share * float64(cells))
		line = fmt.Sprintf("[%s%s] %s", strings.Repeat("=", full), strings.Repeat(" ", cells-full), line)
	}
	b.draw(line)
}

// Done removes the bar. Later calls of Set do nothing.
func (b *Bar) Done() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.text != "" {
		b.draw("")
	}
}

// draw replaces the line drawn last; a terminal's faults are not the work's.
func (b *Bar) draw(line string) {
	_, _ = fmt.Fprintf(b.w, "\r%s%s", line, strings.Repeat(" ", max(0, len(b.text)-len(line))))
	if line == "" {
		_, _ = fmt.Fprint(b.w, "\r")
	}
	b.text = line
}
