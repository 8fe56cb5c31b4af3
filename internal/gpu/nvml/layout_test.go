//go:build linux && (amd64 || arm64) && !nonvml

package nvml

import (
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/perseus-energy/perseus/internal/gpu/nvml/nvmltest"
)

// TestLayout compares the sizes of structs with those that the C compiler gives, and with those of nvml.h 13.
func TestLayout(t *testing.T) {
	lib, err := load(nvmltest.New(t, 1, nvmltest.Current).Library)
	if err != nil {
		t.Fatal(err)
	}
	defer lib.unload()
	sizes, err := purego.Dlsym(lib.handle, "standin_sizes")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ size, want uintptr }{
		{unsafe.Sizeof(pciInfo{}), 68},
		{unsafe.Sizeof(fieldValue{}), 40},
		{unsafe.Sizeof(temperatureInfo{}), 12},
		{unsafe.Sizeof(profileMasks{}), 100},
	} {
		if inC, _, _ := purego.SyscallN(sizes, uintptr(i)); c.size != inC || c.size != c.want {
			t.Errorf("struct %d: %d bytes, in C %d, in nvml.h %d", i, c.size, inC, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	listed := []int{3201, 2619, 810}
	for mhz, want := range map[int]int{3199: 3201, 3201: 3201, 9999: 3201, 2700: 2619, 2910: 3201, 1: 810} {
		if got := nearest(listed, mhz); got != want {
			t.Errorf("%d: %d, want %d", mhz, got, want)
		}
	}
}
