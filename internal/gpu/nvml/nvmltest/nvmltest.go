// Package nvmltest is a stand-in for NVIDIA's management library and driver, for tests: a shared library in C, built with
// the compiler at hand, with the functions that package nvml calls, on GPUs whose state lies in a file. As with the real
// driver, a process that is killed leaves its locks behind.
package nvmltest

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

//go:embed testdata/nvml.c
var source []byte

// Edition says what functions the library has.
type Edition string

// The editions.
const (
	Current Edition = ""
	Older   Edition = "-DOLD" // from before the names of today and the power profiles
	Newer   Edition = "-DNEW" // without what is deprecated today
)

// Fault is a call that can be told to fail. The general ones are those of the first GPU.
type Fault int

// The calls, named as in the library.
const (
	Init Fault = iota
	SystemGetDriverVersion
	DeviceGetCount
	DeviceGetHandleByIndex
	DeviceGetUUID
	DeviceGetName
	DeviceGetPciInfo
	DeviceGetSupportedMemoryClocks
	DeviceGetSupportedGraphicsClocks
	DeviceSetGpuLockedClocks
	DeviceResetGpuLockedClocks
	DeviceGetClockInfo
	DeviceGetPowerManagementLimit
	DeviceGetPowerManagementDefaultLimit
	DeviceGetPowerManagementLimitConstraints
	DeviceGetEnforcedPowerLimit
	DeviceSetPowerManagementLimit
	DeviceGetTotalEnergyConsumption
	DeviceGetPowerUsage
	DeviceGetFieldValues
	DeviceGetTemperature
	DeviceGetCurrentClocksEventReasons
	DeviceGetMigMode
	DeviceGetPersistenceMode
	DeviceWorkloadPowerProfileGetCurrentProfiles
	faults // how many
)

// The sizes of the arrays in the file, as in nvml.c.
const (
	maxGPUs   = 16
	maxMemory = 8
)

// GPU is one in the file. Clocks are in MHz, powers in mW, times in ns.
type GPU struct {
	UUID, Name [96]byte
	PCI        [32]byte
	// MemoryMHz holds the first Memories clocks, from the highest down; Memory is the one in use.
	MemoryMHz                        [maxMemory]int64
	Memories, Memory                 int64
	Low, High, Step, HighAtLower     int64 // the grid of graphics clocks; its top at lower memory clocks
	IdleClock                        int64 // of the unlocked GPU; 0: High
	LockMin, LockMax                 int64 // 0: unlocked
	ClockBefore, Changed, Latency    int64
	Limit, LimitDefault              int64
	LimitMin, LimitMax, LimitOutside int64 // LimitOutside is set out of band; 0: none
	EnergyMillijoules, Since         int64
	CounterStep, Power               int64
	Reasons, Capped, Temperature     int64
	MIG                              int64 // −1: cannot be partitioned
	Persistence                      int64
	AskedProfiles, EnforcedProfiles  int64 // masks; −1: none
	Lost, Generation                 int64 // handles of an older generation are lost
	Changes                          int64 // calls that changed something
	Fail                             [faults]int64
}

// State is the file.
type State struct {
	Size, ReadOnly, Count int64
	// Clients have the library open; those that were killed stay counted.
	Clients int64
	Driver  [80]byte
	GPUs    [maxGPUs]GPU
}

// Driver is a library of its own with its GPUs.
type Driver struct {
	// Library is the path for nvml.Config.
	Library string
	file    *os.File
}

// New returns a driver with so many idle, unlocked GPUs in a temporary directory. It skips the test where there is no C
// compiler, or fails it if CI=true.
func New(t testing.TB, gpus int, e Edition) *Driver {
	t.Helper()
	built, err := builds[e]()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("the stand-in for libnvidia-ml.so.1 cannot be built (an error under CI=true): %v", err)
	}
	d := &Driver{Library: filepath.Join(t.TempDir(), "libnvidia-ml.so.1")}
	if err := os.WriteFile(d.Library, built, 0o700); err != nil {
		t.Fatal(err)
	}
	if d.file, err = os.OpenFile(d.Library+".state", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.file.Close() })
	s := State{Size: int64(binary.Size(State{})), Count: int64(gpus)}
	copy(s.Driver[:], "599.10.01")
	for i := range gpus {
		s.GPUs[i] = fresh(i)
	}
	if err := d.write(&s); err != nil {
		t.Fatal(err)
	}
	return d
}

// fresh returns a GPU much like an A100.
func fresh(i int) GPU {
	g := GPU{
		MemoryMHz: [maxMemory]int64{1593, 810}, Memories: 2, Memory: 1590, // a few MHz off, as real ones
		Low: 210, High: 1410, Step: 15, HighAtLower: 420, IdleClock: 0,
		Limit: 400e3, LimitDefault: 400e3, LimitMin: 100e3, LimitMax: 400e3,
		EnergyMillijoules: 123_456_789, CounterStep: int64(20 * time.Millisecond), Power: 80e3,
		Temperature: 35, AskedProfiles: -1, EnforcedProfiles: -1,
	}
	copy(g.UUID[:], fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", i))
	copy(g.Name[:], "Stand-in A100")
	copy(g.PCI[:], fmt.Sprintf("00000000:%02X:00.0", i+1))
	return g
}

// Change applies f to the state between two calls of the library, of any process.
func (d *Driver) Change(t testing.TB, f func(*State)) {
	t.Helper()
	if err := d.locked(func(s *State) error { f(s); return d.write(s) }); err != nil {
		t.Fatal(err)
	}
}

// GPU returns what the GPU of that index is now.
func (d *Driver) GPU(t testing.TB, index int) GPU {
	t.Helper()
	var g GPU
	if err := d.locked(func(s *State) error { g = s.GPUs[index]; return nil }); err != nil {
		t.Fatal(err)
	}
	return g
}

func (d *Driver) locked(f func(*State) error) error {
	if err := flock(d.file, syscall.LOCK_EX); err != nil {
		return err
	}
	defer flock(d.file, syscall.LOCK_UN)
	var s State
	b := make([]byte, binary.Size(s))
	if _, err := d.file.ReadAt(b, 0); err != nil {
		return err
	}
	if _, err := binary.Decode(b, binary.NativeEndian, &s); err != nil {
		return err
	}
	return f(&s)
}

// flock waits for the lock, through signals.
func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

func (d *Driver) write(s *State) error {
	b, err := binary.Append(nil, binary.NativeEndian, s)
	if err != nil {
		return err
	}
	_, err = d.file.WriteAt(b, 0)
	return err
}

// builds runs the compiler at most once an edition, whichever test asks first.
var builds = map[Edition]func() ([]byte, error){
	Current: sync.OnceValues(func() ([]byte, error) { return build(Current) }),
	Older:   sync.OnceValues(func() ([]byte, error) { return build(Older) }),
	Newer:   sync.OnceValues(func() ([]byte, error) { return build(Newer) }),
}

func build(e Edition) ([]byte, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("it is for Linux, this is %s", runtime.GOOS)
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	dir, err := os.MkdirTemp("", "nvmltest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "nvml.c"), filepath.Join(dir, "nvml.so")
	if err := os.WriteFile(in, source, 0o600); err != nil {
		return nil, err
	}
	args := []string{"-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o", out, in}
	if e != Current {
		args = append(args, string(e))
	}
	if message, err := exec.Command(cc, append(args, "-ldl", "-pthread")...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cc, err, message)
	}
	return os.ReadFile(out)
}
