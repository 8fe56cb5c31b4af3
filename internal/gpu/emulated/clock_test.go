package emulated_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu/emulated"
)

// TestClock shows that a clock keeps its speed, waits for those who hold it, and loses the time that it waited.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := emulated.NewClock(at(0), 20)
		want := func(d time.Duration) {
			t.Helper()
			if got := c.Now(); !got.Equal(at(d)) {
				t.Errorf("it is %v, want %v", got.Sub(at(0)), d)
			}
		}
		time.Sleep(time.Second)
		want(20 * time.Second)
		h := c.NewHold()
		h.Set(at(30 * time.Second))
		fired := make(chan time.Time, 2)
		stop := c.AfterFunc(5*time.Second, func() {
			time.Sleep(time.Second) // all wait for it
			fired <- c.Now()
		})
		never := c.AfterFunc(time.Hour, func() { fired <- time.Time{} })
		time.Sleep(time.Second)
		want(25 * time.Second)
		if got := <-fired; !got.Equal(at(25 * time.Second)) {
			t.Error(got)
		}
		if stop() || !never() || never() {
			t.Error("stopped what was over, or did not stop what was not")
		}
		time.Sleep(time.Second)
		want(30 * time.Second)
		h.Set(at(31 * time.Second))
		time.Sleep(time.Second)
		want(31 * time.Second)
		h.Set(time.Time{})
		time.Sleep(time.Second)
		want(51 * time.Second)
		h.Set(at(0)) // gone: it holds where it is
		time.Sleep(time.Second)
		want(51 * time.Second)
		h.Release()

		if !c.Until(context.Background(), at(71*time.Second), nil) {
			t.Error("woken by nobody")
		}
		want(71 * time.Second)
		woken := make(chan struct{}, 1)
		woken <- struct{}{}
		if c.Until(context.Background(), at(time.Hour), woken) {
			t.Error("not woken")
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if c.Until(ctx, at(time.Hour), nil) {
			t.Error("ctx has ended")
		}
	})
}

// TestTimer has the clock wait for those who come late to their timers, but not for ever.
func TestTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := emulated.NewClock(at(0), 10)
		tick, stop := c.NewTimer(time.Second)
		time.Sleep(500 * time.Millisecond)
		if got := <-tick; !got.Equal(at(time.Second)) {
			t.Error(got)
		}
		time.Sleep(500 * time.Millisecond) // acting on it takes a while, but no time
		if got := c.Now(); !got.Equal(at(time.Second)) || stop() {
			t.Error(got)
		}
		_, forgotten := c.NewTimer(time.Second)
		time.Sleep(time.Minute)
		if got := c.Now(); got.Before(at(5*time.Minute)) || forgotten() {
			t.Error(got)
		}
		never, stop := c.NewTimer(time.Second)
		if !stop() || stop() {
			t.Error("not stopped, or twice")
		}
		select {
		case got := <-never:
			t.Error(got)
		case <-time.After(time.Minute):
		}
	})
}

// TestNaps has short waits pass without timers.
func TestNaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := emulated.NewClock(at(0), 10)
		naps := 0
		c.Naps(func(d time.Duration) { naps++; time.Sleep(d / 2) })
		fired := make(chan time.Time, 1)
		c.AfterFunc(100*ms, func() { fired <- c.Now() })
		never := c.AfterFunc(100*ms, func() { fired <- time.Time{} })
		if !never() {
			t.Error("not stopped")
		}
		if got := <-fired; !got.Equal(at(100*ms)) || naps < 2 {
			t.Error(got, naps)
		}
		naps = 0
		if !c.Until(context.Background(), at(200*ms), nil) || c.Now().Before(at(200*ms)) || naps < 2 {
			t.Error(c.Now(), naps)
		}
	})
}
