package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perseus-energy/perseus/internal/wire"
)

const (
	// mostConnections are served at a time.
	mostConnections = 1000
	// helloWait is how long a connection may be silent before its hello; writeWait how long it may leave what it is
	// sent unread.
	helloWait, writeWait = 5 * time.Second, time.Second
	// mostPackets a second of one connection are taken; a process with a thousand ops a second sends two thousand.
	mostPackets = 20000
)

// listener serves training processes on a Unix socket.
type listener struct {
	a    *Agent
	path string
	l    *net.UnixListener
	conn sync.WaitGroup
	room chan struct{}
}

// listen makes the socket. It takes the place of one of the same user that nobody listens on, and of nothing else.
func listen(a *Agent) (*listener, error) {
	path := a.c.Socket
	if err := vacant(path); err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	// It gets its name when its mode and group are right.
	temporary := filepath.Join(filepath.Dir(path), fmt.Sprintf(".perseus-%d.sock", os.Getpid()))
	_ = os.Remove(temporary)
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: temporary, Net: "unixpacket"})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("socket %s: there is no folder %s: make it, or name another place with --socket", path, filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	err = os.Chmod(temporary, 0o660) //nolint:gosec // the group may connect
	if err == nil && a.c.Group > 0 {
		err = os.Chown(temporary, -1, a.c.Group)
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("socket %s: %w", path, err), l.Close(), os.Remove(temporary))
	}
	return &listener{a: a, path: path, l: l, room: make(chan struct{}, mostConnections)}, nil
}

// vacant returns an error where something is at path that is not a dead socket of this user.
func vacant(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return errors.New("is a symbolic link; it is refused, remove it")
	case info.Mode()&fs.ModeSocket == 0:
		return errors.New("is there and is no socket; remove it or name another path")
	case !ok || stat.Uid != uint32(os.Geteuid()):
		return errors.New("is a socket of another user; remove it or name another path")
	}
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	switch {
	case err == nil:
		return errors.Join(errors.New("another agent listens on it"), c.Close())
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("cannot tell whether an agent listens on it: %w", err)
	}
	return nil
}

// run accepts connections until ctx ends, and returns when all have ended.
func (s *listener) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = s.l.Close() })
	defer stop()
	for {
		c, err := s.l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				break
			}
			// Out of file descriptors, or the like: those that end make room.
			s.a.log.Error("a connection could not be accepted", "error", err)
			if sleep(ctx, Monotonic, 100*time.Millisecond) != nil {
				break
			}
			continue
		}
		select {
		case s.room <- struct{}{}:
			s.a.count(func(st *Stats) { st.Connections++ })
			s.conn.Go(func() {
				defer func() { <-s.room }()
				s.serve(ctx, c)
			})
		default:
			s.refuse(c, &wire.Refusal{Text: "too many connections", Code: wire.Unavailable})
			_ = c.Close()
		}
	}
	s.conn.Wait()
	// Unless somebody else has taken the name meanwhile.
	if vacant(s.path) == nil {
		_ = os.Remove(s.path)
	}
}

func (s *listener) refuse(c *net.UnixConn, err error) {
	var r *wire.Refusal
	if !errors.As(err, &r) {
		r = &wire.Refusal{Text: err.Error(), Code: wire.Unavailable}
	}
	s.a.count(func(st *Stats) { st.Refused++ })
	_ = write(c, r)
}

func write(c *net.UnixConn, message any) error {
	packet, err := wire.Encode(message)
	if err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Now().Add(writeWait)); err != nil {
		return err
	}
	_, err = c.Write(packet)
	return err
}

// serve talks to one process until it, or ctx, ends.
func (s *listener) serve(ctx context.Context, c *net.UnixConn) {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	buffer := make([]byte, 512)
	if err := c.SetReadDeadline(time.Now().Add(helloWait)); err != nil || ctx.Err() != nil {
		return
	}
	packet, err := receive(c, &buffer)
	var refusal *wire.Refusal
	if errors.As(err, &refusal) {
		s.refuse(c, refusal)
	}
	if err != nil {
		return
	}
	// Only now, as what is left unread when a connection is closed takes the answer with it.
	who, err := peerOf(c)
	if err == nil && !who.member(s.a.c.Group) {
		err = &wire.Refusal{Text: fmt.Sprintf("user %d is neither root nor in the agent's group", who.uid), Code: wire.Denied}
	}
	var message any
	if err == nil {
		message, err = wire.ParseControl(packet)
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil || ctx.Err() != nil {
		return
	}
	switch m := message.(type) {
	case *wire.Hello:
		s.session(ctx, c, who, m, &buffer)
	case *wire.Drain:
		s.drain(ctx, c, who, m.Drain, true)
	case *wire.Resume:
		s.drain(ctx, c, who, m.Resume, false)
	}
}

// receive returns the next packet, in the buffer, which grows with what arrives: a thousand connections that send little
// cost little. A packet that is too large is a *wire.Refusal, the end of the connection net.ErrClosed.
func receive(c *net.UnixConn, buffer *[]byte) (packet []byte, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var n int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		n, _, failed = unix.Recvfrom(int(fd), (*buffer)[:1], unix.MSG_PEEK|unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		if failed != nil {
			return !errors.Is(failed, unix.EAGAIN)
		}
		if n > len(*buffer) && n <= wire.MaxPacket {
			*buffer = make([]byte, n)
		}
		n, _, failed = unix.Recvfrom(int(fd), *buffer, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		return true
	})
	switch {
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, errors.Join(net.ErrClosed, failed)
	case n > wire.MaxPacket:
		return nil, &wire.Refusal{Text: fmt.Sprintf("packet of %d bytes: at most %d", n, wire.MaxPacket), Code: wire.Invalid}
	case n == 0:
		return nil, net.ErrClosed
	}
	return (*buffer)[:n], nil
}

// session leases a GPU to the process and takes its events.
func (s *listener) session(ctx context.Context, c *net.UnixConn, who peer, h *wire.Hello, buffer *[]byte) {
	name := h.Session
	if name == "" {
		name = who.session()
	}
	l, err := s.a.lease(*h, who.uid, name)
	if err != nil {
		s.refuse(c, err)
		return
	}
	// The process may end while the server is waited for; its lease ends with the first read.
	defer l.Close()
	if l.registered(ctx) != nil {
		return
	}
	steering, note := l.Steering()
	w := wire.Welcome{
		Welcome: wire.Version, Generation: l.Generation(), HeartbeatS: max(1, int(s.a.c.Heartbeat/time.Second)), Steering: steering, Note: note,
	}
	if write(c, w) != nil {
		return
	}
	var notices sync.WaitGroup
	notices.Go(func() { l.forward(c) })
	defer notices.Wait()
	defer l.end("")
	var events []wire.Event
	begun, packets := time.Now(), 0
	for {
		packet, err := receive(c, buffer)
		if err == nil && wire.IsControl(packet) {
			message, wrong := wire.ParseControl(packet)
			if _, bye := message.(*wire.Bye); bye && wrong == nil {
				return
			}
			err = &wire.Refusal{Text: "after the hello only events and bye are expected", Code: wire.Invalid}
		}
		if err == nil {
			events, err = wire.AppendEvents(events[:0], packet, len(h.Instructions))
		}
		if packets++; packets > mostPackets {
			if time.Since(begun) < time.Second {
				err = &wire.Refusal{Text: fmt.Sprintf("more than %d packets a second", mostPackets), Code: wire.Invalid}
			}
			begun, packets = time.Now(), 0
		}
		switch {
		case err == nil:
			l.Send(events...)
		case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed):
			return
		default:
			s.a.count(func(st *Stats) { st.Dropped++ })
			s.a.log.Warn("a client is dropped for what it sent", "gpu", l.d.id, "uid", who.uid, "pid", who.pid, "error", err)
			s.refuse(c, &wire.Refusal{Text: err.Error(), Code: wire.Invalid})
			return
		}
	}
}

// forward sends notices to the process until the lease ends, which also ends the reading.
func (s *Session) forward(c *net.UnixConn) {
	for {
		select {
		case text := <-s.notices:
			if write(c, wire.Notice{Notice: text}) != nil {
				_ = c.SetReadDeadline(time.Unix(1, 0)) // it does not read: it is let go of
				return
			}
		case <-s.ended:
			for len(s.notices) > 0 {
				if write(c, wire.Notice{Notice: <-s.notices}) != nil {
					break
				}
			}
			_ = c.SetReadDeadline(time.Unix(1, 0))
			return
		}
	}
}
