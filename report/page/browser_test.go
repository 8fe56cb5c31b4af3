package page

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// accessibility.js returns what is wrong with a page for those who cannot see it,
// or not well: a list of sentences.
//
//go:embed testdata/accessibility.js
var accessibility string

// chromium returns the browser's path. Without one the test is skipped, but not in
// CI.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "no Chromium: apt-get install chromium"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// complaints collects what a browser says against a page.
type complaints struct {
	sync.Mutex
	lines []string
}

func (c *complaints) add(format string, args ...any) {
	c.Lock()
	defer c.Unlock()
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
}

func (c *complaints) take(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		c.add("console: %s %v", e.Type, e.Args)
	case *runtime.EventExceptionThrown:
		c.add("exception: %v", e.ExceptionDetails)
	case *log.EventEntryAdded:
		c.add("log: %s %s", e.Entry.Text, e.Entry.URL)
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, "file:") && !strings.HasPrefix(u, "data:") {
			c.add("the page asks for %s", u)
		}
	}
}

// browse opens a page of its own in a browser, which ends with the test.
func browse(t *testing.T) (context.Context, *complaints) {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WSURLReadTimeout(2*time.Minute), chromedp.WindowSize(1280, 900))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	c := &complaints{}
	if err := chromedp.Listen(ctx, c.take); err != nil { // starts the browser, which a time limit before it would end
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	return ctx, c
}

// open writes the report and opens it.
func open(t *testing.T, ctx context.Context, c *Contents) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WriteHTML(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	u := url.URL{Scheme: "file", Path: path}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	do(t, ctx, chromedp.Navigate(u.String()), chromedp.WaitVisible(chromedp.CSS("#controls")))
}

type step = chromedp.Action[chromedp.Void]

func do(t *testing.T, ctx context.Context, steps ...step) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

func get[T any](t *testing.T, ctx context.Context, action chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// ask returns the value of an expression on the page.
func ask[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	return get(t, ctx, chromedp.Evaluate[T](expression))
}

// media sets how the page is shown: "screen" or "print", "light" or "dark".
func media(kind, scheme string) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: kind, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// screenshot keeps a picture of the page where PERSEUS_SCREENSHOTS names a folder,
// for people to look at.
func screenshot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	picture := get(t, ctx, chromedp.FullScreenshot(100))
	if len(picture) < 10_000 {
		t.Errorf("%s: a screenshot of %d bytes", name, len(picture))
	}
	if folder := os.Getenv("PERSEUS_SCREENSHOTS"); folder != "" {
		if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBrowser looks at the report in a real browser: in light, in dark and on
// paper; nothing is asked of a network, nothing is complained of, all text can be
// read, and the timeline can be used by keyboard.
func TestBrowser(t *testing.T) {
	ctx, said := browse(t)
	f, p := small(t, 4, 0, 0)
	open(t, ctx, contents(t, f, p))

	t.Run("focus order", func(t *testing.T) { focusOrder(t, ctx) }) // first: it begins where a page begins
	for _, scheme := range []string{"light", "dark"} {
		do(t, ctx, media("screen", scheme))
		for _, problem := range ask[[]string](t, ctx, accessibility) {
			t.Errorf("%s: %s", scheme, problem)
		}
		screenshot(t, ctx, scheme)
	}
	do(t, ctx, media("screen", "light"))

	t.Run("keyboard", func(t *testing.T) { keyboard(t, ctx) })
	t.Run("mouse", func(t *testing.T) { mouse(t, ctx) })
	t.Run("print", func(t *testing.T) { onPaper(t, ctx) })
	t.Run("phone", func(t *testing.T) {
		do(t, ctx, media("screen", "light"), chromedp.EmulateViewport(375, 800))
		if wide := ask[int](t, ctx, `document.documentElement.scrollWidth`); wide > 375 {
			t.Errorf("the page is %d pixels wide on a screen of 375", wide)
		}
		screenshot(t, ctx, "phone")
	})
	said.Lock()
	defer said.Unlock()
	for _, line := range said.lines {
		t.Error(line)
	}
}

const (
	visible   = `document.querySelector("#after svg.pane").getAttribute("viewBox")`
	announced = `document.getElementById("said").textContent`
	settled   = `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`
)

func settle(t *testing.T, ctx context.Context) {
	t.Helper()
	get(t, ctx, chromedp.Evaluate[bool](settled, chromedp.EvalAwaitPromise))
}

func keyboard(t *testing.T, ctx context.Context) {
	whole := ask[string](t, ctx, visible)
	labels := ask[int](t, ctx, `document.querySelectorAll("#after .labels text").length`)
	do(t, ctx, chromedp.Focus(chromedp.CSS("#after")))
	for _, step := range []struct {
		key, want string
	}{
		{"+", "25000 0 50000 40"},
		{"+", "37500 0 25000 40"},
		{kb.ArrowRight, "43750 0 25000 40"},
		{kb.ArrowLeft, "37500 0 25000 40"},
		{"-", "25000 0 50000 40"},
		{kb.ArrowLeft, "12500 0 50000 40"},
		{kb.ArrowLeft, "0 0 50000 40"},
		{kb.ArrowLeft, "0 0 50000 40"},
	} {
		do(t, ctx, chromedp.KeyEvent(step.key))
		settle(t, ctx)
		if got := ask[string](t, ctx, visible); got != step.want {
			t.Fatalf("after %q the timeline shows %s, want %s", step.key, got, step.want)
		}
	}
	if got := ask[string](t, ctx, announced); !strings.HasPrefix(got, "Showing 0.0000 to ") {
		t.Errorf("announced: %q", got)
	}
	screenshot(t, ctx, "zoomed")
	do(t, ctx, chromedp.KeyEvent(kb.Home))
	settle(t, ctx)
	if got := ask[string](t, ctx, visible); got != whole {
		t.Errorf("after Home the timeline shows %s, want %s", got, whole)
	}
	if got := ask[int](t, ctx, `document.querySelectorAll("#after .labels text").length`); got != labels {
		t.Errorf("%d labels after Home, %d before", got, labels)
	}
	do(t, ctx, chromedp.KeyEvent("."))
	if got := ask[string](t, ctx, announced); !strings.HasPrefix(got, "After: rank 0, forward of microbatch 0 on stage 0, ") {
		t.Errorf("announced: %q", got)
	}
	do(t, ctx, chromedp.KeyEvent("."), chromedp.KeyEvent(kb.ArrowDown))
	if got := ask[string](t, ctx, announced); !strings.HasPrefix(got, "After: rank 1, ") || !strings.Contains(got, " W for each GPU") {
		t.Errorf("announced: %q", got)
	}
}

// focusOrder steps through the page with the Tab key.
func focusOrder(t *testing.T, ctx context.Context) {
	want := []string{
		"Skip to the report", "Frontier", "Timeline", "Clocks", "Cost", "Stragglers", "Profile",
		"Picture of the frontier", "Table of landmarks", "Zoom in", "Zoom out", "Earlier", "Later", "Whole iteration",
		"Before: ", "After: ", "Table of the ranks", "Table of energy", "Table of clocks", "Table of costs", "Table of stragglers", "Table of measured",
	}
	for _, w := range want {
		do(t, ctx, chromedp.KeyEvent(kb.Tab))
		got := ask[string](t, ctx, `document.activeElement.getAttribute("aria-label") || document.activeElement.textContent`)
		if !strings.HasPrefix(got, w) {
			t.Fatalf("Tab leads to %q, want %q", got, w)
		}
		if ask[string](t, ctx, `getComputedStyle(document.activeElement).outlineStyle`) == "none" {
			t.Errorf("the focus on %q cannot be seen", got)
		}
	}
}

func mouse(t *testing.T, ctx context.Context) {
	do(t, ctx, chromedp.Click(chromedp.CSS(`[data-do="in"]`)))
	settle(t, ctx)
	if got := ask[string](t, ctx, visible); got != "25000 0 50000 40" {
		t.Errorf("after a click on Zoom in the timeline shows %s", got)
	}
	// Dragging moves both timelines with the pointer.
	do(t, ctx, chromedp.ScrollIntoView(chromedp.CSS("#after")))
	box := ask[[]float64](t, ctx, `(() => { const b = document.querySelector("#after svg.picture").getBoundingClientRect(); return [b.left, b.top, b.width]; })()`)
	x, y := box[0]+box[2]/2, box[1]+20
	do(t, ctx, chromedp.DragAndDropXY(x, y, x-box[2]/10, y))
	settle(t, ctx)
	moved := ask[string](t, ctx, visible)
	from, _, _ := strings.Cut(moved, " ")
	if v, err := strconv.ParseFloat(from, 64); err != nil || v < 29_000 || v > 32_000 {
		t.Errorf("after dragging a tenth of the picture to the left the timeline shows %s, want about 30400", moved)
	}
	if before := ask[string](t, ctx, strings.ReplaceAll(visible, "#after", "#before")); before != moved {
		t.Errorf("the other timeline shows %s, not %s", before, moved)
	}
	do(t, ctx, chromedp.Click(chromedp.CSS(`[data-do="all"]`)))
	settle(t, ctx)
	do(t, ctx, chromedp.MouseEvent(chromedp.MouseMoved, box[0]+box[2]*0.07+2, y))
	if got := ask[string](t, ctx, announced); !strings.HasPrefix(got, "After: rank 0, forward of microbatch 0") {
		t.Errorf("under the pointer: %q", got)
	}
}

func onPaper(t *testing.T, ctx context.Context) {
	do(t, ctx, media("print", "dark"))
	if got := ask[string](t, ctx, `getComputedStyle(document.getElementById("controls")).display`); got != "none" {
		t.Errorf("controls are printed: display %s", got)
	}
	if got := ask[string](t, ctx, `getComputedStyle(document.querySelector(".lead")).color`); got != "rgb(22, 32, 43)" {
		t.Errorf("text is printed in %s on a dark screen", got)
	}
	screenshot(t, ctx, "print")
	pdf := get(t, ctx, chromedp.PrintToPDF())
	if len(pdf) < 10_000 || !strings.HasPrefix(string(pdf), "%PDF-") {
		t.Errorf("a PDF of %d bytes", len(pdf))
	}
	if folder := os.Getenv("PERSEUS_SCREENSHOTS"); folder != "" {
		if err := os.WriteFile(filepath.Join(folder, "print.pdf"), pdf, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
