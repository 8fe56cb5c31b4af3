package doctor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/internal/gpu/nvml"
)

func TestSysAdmin(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tx\nCapEff:\t000001ffffffffff\n": true, "CapEff:\t0000000000200000\n": true, "CapEff:\t00000000001fffff\n": false,
		"CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n": false, "CapEff:\tx\n": false, "": false,
	} {
		if held, by := sysAdmin(status); held != want || by == "" {
			t.Errorf("%q: %v, %q", status, held, by)
		}
	}
}

func TestWaysOut(t *testing.T) {
	for code, want := range map[nvml.Code]string{
		nvml.VersionMismatch: "reboot", nvml.OperatingSystem: "DeviceAllow", nvml.Unknown: "restart the container", nvml.GPUIsLost: "Xid",
		nvml.NoPermission: "CAP_SYS_ADMIN", nvml.NotSupported: "newer driver", nvml.ResetRequired: "--gpu-reset", nvml.NotReady: "again",
	} {
		if got := wayOut(fmt.Errorf("Clock: %w", &nvml.Error{Call: "c", Code: code})); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", code, got, want)
		}
	}
	for err, want := range map[error]string{
		nvml.ErrNoLibrary: "install the NVIDIA driver", nvml.ErrNotBuilt: "build with NVML", &nvml.Error{Code: nvml.DriverNotLoaded}: "modprobe",
	} {
		if got := wayOutOfOpening(err); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
