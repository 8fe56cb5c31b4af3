package agent

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/perseus-energy/perseus/internal/wire"
)

// Drain ends the lease of a GPU, by id or index, or of all for "all", refuses new ones, and returns the ids of all that
// are drained when they are as before. Once all GPUs are drained, the agent closes them: resets, MIG and driver upgrades
// need that. It returns early with the error of ctx.
func (a *Agent) Drain(ctx context.Context, name string) ([]string, error) {
	some, err := a.named(name)
	if err != nil {
		return nil, err
	}
	for _, d := range some {
		d.drain(true)
	}
	for _, d := range some {
		select {
		case <-d.free():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	drained := a.drained()
	if len(drained) == len(a.drivers) {
		if err := a.handles.close(); err != nil {
			return nil, fmt.Errorf("let go of the GPUs: %w", err)
		}
	}
	return drained, nil
}

// Resume takes a Drain back and returns the ids of those that still are drained.
func (a *Agent) Resume(_ context.Context, name string) ([]string, error) {
	some, err := a.named(name)
	if err != nil {
		return nil, err
	}
	for _, d := range some {
		d.drain(false)
	}
	return a.drained(), nil
}

func (a *Agent) named(name string) ([]*driver, error) {
	if name == "all" {
		return a.drivers, nil
	}
	if d := a.driver(name); d != nil {
		return []*driver{d}, nil
	}
	return nil, &wire.Refusal{Text: fmt.Sprintf("%q: this node has no such GPU (%s)", name, a.names()), Code: wire.Invalid}
}

func (a *Agent) drained() []string {
	ids := []string{}
	for _, d := range a.drivers {
		d.mu.Lock()
		if d.drained {
			ids = append(ids, d.id)
		}
		d.mu.Unlock()
	}
	return ids
}

func (d *driver) drain(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.drained
	d.drained = on
	if on && d.lease != nil {
		d.lease.endLocked("the GPU is being drained")
	}
	if was && !on {
		// The handle may have been closed meanwhile, and the GPU reset.
		d.lost, d.retries, d.retryAt = true, 0, 0
	}
	d.stir()
}

// drain carries a client's request out: root's and the agent's own user's for any GPU, others' unless another user has
// it.
func (s *listener) drain(ctx context.Context, c *net.UnixConn, who peer, name string, on bool) {
	do := s.a.Resume
	if on {
		do = s.a.Drain
	}
	some, err := s.a.named(name)
	for _, d := range some {
		d.mu.Lock()
		if l := d.lease; l != nil && l.uid != who.uid && who.uid != 0 && who.uid != uint32(os.Geteuid()) {
			err = &wire.Refusal{Text: fmt.Sprintf("GPU %s is leased to another user", d.id), Code: wire.Denied}
		}
		d.mu.Unlock()
	}
	var drained []string
	if err == nil {
		drained, err = do(ctx, name)
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	_ = write(c, wire.Drained{Drained: drained})
}
