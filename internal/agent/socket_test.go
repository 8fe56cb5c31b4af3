package agent_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/agent"
	"github.com/perseus-energy/perseus/internal/gpu/emulated"
	"github.com/perseus-energy/perseus/internal/wire"
)

// serve runs an agent with a socket in real time.
func serve(t *testing.T, c agent.Config) (a *agent.Agent, socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if c.Socket == "" {
		c.Socket = filepath.Join(dir, "a.sock")
	}
	if a, err = agent.New(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-a.Ready():
	case err := <-done:
		done <- nil
		t.Fatal(err)
	}
	return a, c.Socket
}

func dial(t testing.TB, socket string) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

func send(t testing.TB, c *net.UnixConn, message any) {
	t.Helper()
	packet, ok := message.([]byte)
	if !ok {
		var err error
		if packet, err = wire.Encode(message); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Write(packet); err != nil {
		t.Fatal(err)
	}
}

func reply(t testing.TB, c *net.UnixConn) (any, error) {
	t.Helper()
	buffer := make([]byte, wire.MaxPacket)
	n, err := c.Read(buffer)
	if err != nil {
		return nil, err
	}
	return wire.ParseReply(buffer[:n])
}

func withHello(h wire.Hello) wire.Hello {
	h.Hello = wire.Version
	return h
}

func two(t *testing.T) agent.Open {
	return openOf(board(t, 6, 0, 0, agent.Monotonic.Now), board(t, 7, 0, 0, agent.Monotonic.Now))
}

func TestSocket(t *testing.T) {
	a, socket := serve(t, agent.Config{Open: two(t), Uplink: newServer()})
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("socket %v, %v", info, err)
	}
	c := dial(t, socket)
	send(t, c, withHello(hello(7)))
	m, err := reply(t, c)
	if w, ok := m.(*wire.Welcome); err != nil || !ok || w.Generation != 1 || w.HeartbeatS != 5 || !w.Steering {
		t.Fatalf("got %+v, %v", m, err)
	}
	send(t, c, wire.AppendEvent(wire.AppendEvent(nil, wire.Event{Kind: 'S', Sequence: 1}), wire.Event{Kind: 'T', Sequence: 2}))

	if !eventually(func() bool { return a.Stats().Events == 2 }) {
		t.Errorf("%d events", a.Stats().Events)
	}

	other := dial(t, socket)
	h := withHello(hello(6))
	h.Device = "7"
	send(t, other, h)
	var refusal *wire.Refusal
	if _, err := reply(t, other); !errors.As(err, &refusal) || refusal.Code != wire.Busy {
		t.Errorf("got %v", err)
	}
	drained, err := agent.Ask(t.Context(), socket, wire.Drain{Drain: "emulated:7"})
	if err != nil || fmt.Sprint(drained) != "[emulated:7]" {
		t.Errorf("got %v, %v", drained, err)
	}
	if m, err := reply(t, c); err != nil || !strings.Contains(m.(*wire.Notice).Notice, "drained") {
		t.Errorf("got %+v, %v", m, err)
	}
	if _, err := reply(t, c); err == nil {
		t.Error("the connection of a drained GPU stays")
	}
	if _, err := agent.Ask(t.Context(), socket, wire.Resume{Resume: "5"}); err == nil {
		t.Error("resumed a GPU that is not there")
	}
}

// TestHostile: what one client sends hurts no other.
func TestHostile(t *testing.T) {
	a, socket := serve(t, agent.Config{Open: two(t)})
	good := dial(t, socket)
	send(t, good, withHello(hello(7)))
	if _, err := reply(t, good); err != nil {
		t.Fatal(err)
	}
	greeting, err := wire.Encode(withHello(hello(6)))
	if err != nil {
		t.Fatal(err)
	}
	for name, packets := range map[string][][]byte{
		"no JSON":           {[]byte("{")},
		"events first":      {wire.AppendEvent(nil, wire.Event{Kind: 'S', Sequence: 1})},
		"large":             {append(append([]byte{}, greeting...), make([]byte, 60000)...)},
		"too large":         {make([]byte, wire.MaxPacket+1)},
		"too large later":   {greeting, make([]byte, 2*wire.MaxPacket)},
		"odd size":          {greeting, make([]byte, 25)},
		"unknown kind":      {greeting, binary.LittleEndian.AppendUint64(make([]byte, 16), 1)},
		"a second hello":    {greeting, greeting},
		"drain from within": {greeting, []byte(`{"drain":"all"}`)},
	} {
		c := dial(t, socket)
		for _, p := range packets {
			send(t, c, p)
		}
		for {
			if _, err := reply(t, c); err != nil {
				var refusal *wire.Refusal
				if !errors.As(err, &refusal) || refusal.Code != wire.Invalid {
					t.Errorf("%s: got %v", name, err)
				}
				break
			}
		}
		if _, err := reply(t, c); err == nil {
			t.Errorf("%s: the connection stays", name)
		}
	}
	send(t, good, wire.AppendEvent(nil, wire.Event{Kind: 'H', Sequence: 1}))
	send(t, good, wire.Bye{Bye: 1})
	for {
		if _, err := reply(t, good); err != nil {
			break
		}
	}
	if s := a.Stats(); s.Events != 1 || s.Leases != 0 || s.Dropped != 5 {
		t.Errorf("%+v", s)
	}
}

// TestManyConnections: a thousand connections that say nothing leave the agent as it is; one more is refused.
func TestManyConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 2,000 file descriptors")
	}
	a, socket := serve(t, agent.Config{Open: two(t)})
	var all []*net.UnixConn
	var wait sync.WaitGroup
	for range 1000 {
		all = append(all, dial(t, socket))
	}
	var refusal *wire.Refusal
	if _, err := reply(t, dial(t, socket)); !errors.As(err, &refusal) || refusal.Code != wire.Unavailable {
		t.Errorf("connection 1,001: got %v", err)
	}
	for i, c := range all {
		h := withHello(hello(7))
		h.Rank, h.Spec.WorldSize, h.Spec.DP = i, 8000, 1000
		wait.Go(func() {
			send(t, c, h)
			_, _ = reply(t, c)
		})
	}
	wait.Wait()
	if s := a.Stats(); s.Leases != 1 || s.Refused != 1000 {
		t.Errorf("%+v", s)
	}
}

func TestPath(t *testing.T) {
	dir := t.TempDir()
	run := func(socket string) error {
		a, err := agent.New(agent.Config{Open: two(t), Socket: socket})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		select {
		case <-a.Ready():
			cancel()
			return <-done
		case err := <-done:
			return err
		}
	}
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		if err := run(path); err == nil {
			t.Errorf("%s was taken", path)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	dead := filepath.Join(dir, "dead")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: dead, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	if err := run(dead); err == nil {
		t.Error("the socket of one who listens was taken")
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := run(dead); err != nil {
		t.Errorf("a dead socket: %v", err)
	}
	if _, err := os.Lstat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
}

// The test binary plays other processes, by this variable: an agent or a client.
const roleVariable = "PERSEUS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "agent":
		playAgent()
	case "client":
		playClient()
	default:
		os.Exit(m.Run())
	}
}

func role(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), roleVariable+"="+name)
	c.Stderr = os.Stderr
	return c
}

// playClient says hello and prints the answer.
func playClient() {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: os.Args[1], Net: "unixpacket"})
	if err != nil {
		fmt.Println(err)
		return
	}
	h := withHello(hello(7))
	h.Job, h.Device, h.Rank = os.Args[2], os.Args[3], 6
	packet, _ := wire.Encode(h)
	buffer := make([]byte, 4096)
	_, err = c.Write(packet)
	n, err2 := c.Read(buffer)
	fmt.Println(string(buffer[:n]), err, err2)
}

// TestUsers: who is neither root nor in the group is kept out, by the file's mode and by the agent; and one user's job is
// no other's.
func TestUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	const group = 54321
	_, socket := serve(t, agent.Config{Open: two(t), Group: group})
	if err := os.Chmod(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(filepath.Dir(socket), "client")
	text, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	as := func(uid uint32, groups []uint32, args ...string) string {
		c := role(t, "client", append([]string{socket}, args...)...)
		c.Path = program
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: groups}}
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	mine := dial(t, socket)
	send(t, mine, withHello(hello(7)))
	if _, err := reply(t, mine); err != nil {
		t.Fatal(err)
	}
	if got := as(4000, nil, "theirs", "6"); !strings.Contains(got, "permission denied") {
		t.Errorf("a stranger: %s", got)
	}
	if err := os.Chmod(socket, 0o666); err != nil { // somebody meant well
		t.Fatal(err)
	}
	if got := as(4000, nil, "theirs", "6"); !strings.Contains(got, `"denied"`) {
		t.Errorf("a stranger at an open socket: %s", got)
	}
	if got := as(4000, []uint32{group}, "job", "6"); !strings.Contains(got, `"denied"`) {
		t.Errorf("a member with another's job: %s", got)
	}
	if got := as(4000, []uint32{group}, "job2", "7"); !strings.Contains(got, `"busy"`) {
		t.Errorf("a member with another's GPU: %s", got)
	}
	if got := as(4000, []uint32{group}, "theirs", "6"); !strings.Contains(got, `"welcome"`) {
		t.Errorf("a member: %s", got)
	}
}

// filed is a board whose settings outlive the process, as those of a driver do.
func filed(t testing.TB, file string) *emulated.Board {
	c := config(7, 2*ms, 20*ms, agent.Monotonic.Now)
	c.File = file
	b, err := emulated.New(c)
	if err != nil {
		if t == nil {
			panic(err)
		}
		t.Fatal(err)
	}
	return b
}

// playAgent runs an agent that steers a filed board in its folder until it is killed.
func playAgent() {
	dir := os.Args[1]
	up := newServer()
	_, plan := alternating(4, 4*ms, 1200, 990, 1110, 900)
	up.publish(0, 5, plan)
	a, err := agent.New(agent.Config{
		Open: openOf(filed(nil, filepath.Join(dir, "gpu"))), Uplink: up, StateDir: filepath.Join(dir, "state"),
		Socket: filepath.Join(dir, "a.sock"), Switching: "fine",
	})
	if err != nil {
		panic(err)
	}
	go func() { <-a.Ready(); fmt.Println("ready") }()
	if err := a.Run(context.Background()); err != nil {
		panic(err)
	}
}

// TestProcessKilled kills a real agent with -9 while it steers; the next one restores the GPU and goes on.
func TestProcessKilled(t *testing.T) {
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	changed := 0
	for i := range 11 {
		c := role(t, "agent", dir)
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		ready := make([]byte, 6)
		if _, err := out.Read(ready); err != nil {
			t.Fatal(err)
		}
		// What the killed one left is restored before, or soon after, it is ready.
		if !eventually(func() bool {
			left, _ := filepath.Glob(filepath.Join(dir, "state", "*.json"))
			return len(left) == 0 && filed(t, filepath.Join(dir, "gpu")).Settings().Clocks == whole
		}) {
			t.Errorf("start %d: %+v", i, filed(t, filepath.Join(dir, "gpu")).Settings())
		}
		client := dial(t, filepath.Join(dir, "a.sock"))
		send(t, client, withHello(hello(7)))
		if _, err := reply(t, client); err != nil {
			t.Fatal(err)
		}
		stop := time.Now().Add(time.Duration(5+17*i) * ms)
		sequence := uint64(0)
		event := func(k wire.Kind, instruction uint8, microbatch uint32) {
			sequence++
			_, _ = client.Write(wire.AppendEvent(nil, wire.Event{
				Kind: k, Instruction: instruction, Microbatch: microbatch, Sequence: sequence, TimeNs: uint64(agent.Monotonic.Now().UnixNano()),
			}))
		}
		for time.Now().Before(stop) {
			event('S', 0, 0)
			for op := range 8 {
				event('B', uint8(op%2), uint32(op/2))
				time.Sleep(4 * ms) // an op
				event('E', uint8(op%2), uint32(op/2))
			}
			event('T', 0, 0)
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		if filed(t, filepath.Join(dir, "gpu")).Settings().Clocks != whole {
			changed++
			left, _ := filepath.Glob(filepath.Join(dir, "state", "*.json"))
			if len(left) != 1 {
				t.Errorf("the clock is changed and there is no record")
			}
		}
	}
	if changed < 5 {
		t.Errorf("only %d of the kills left a clock behind", changed)
	}
}

func eventually(f func() bool) bool {
	for limit := time.Now().Add(20 * time.Second); time.Now().Before(limit); time.Sleep(ms) {
		if f() {
			return true
		}
	}
	return false
}
