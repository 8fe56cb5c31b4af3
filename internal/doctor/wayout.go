package doctor

import (
	"errors"
	"strings"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/internal/gpu/nvml"
)

const (
	containerGPUs = "NVIDIA_VISIBLE_DEVICES=all with NVIDIA_DRIVER_CAPABILITIES=utility, or the device plugin"
	permission    = "run perseus agent as root with CAP_SYS_ADMIN (systemd: CapabilityBoundingSet=CAP_SYS_ADMIN; Kubernetes: capabilities.add [SYS_ADMIN]); without it the agent only measures"
	trial         = "to try Perseus without a GPU: perseus doctor --emulated 2"
)

// wayOutOfOpening says what to do where the driver cannot be opened.
func wayOutOfOpening(err error) string {
	switch {
	case errors.Is(err, nvml.ErrNotBuilt):
		return "install the build with NVML (docs/adr/007-nvml-without-cgo.md); " + trial
	case errors.Is(err, nvml.ErrNoLibrary):
		return "install the NVIDIA driver, in a container hand it in (" + containerGPUs + "), or name the library with --library; " + trial
	case code(err) == nvml.DriverNotLoaded:
		return "load the driver: modprobe nvidia; dmesg says why if it does not"
	case code(err) == nvml.VersionMismatch:
		return versions
	}
	return wayOut(err)
}

const versions = "the driver was upgraded and the old kernel module still runs: drain the node and reboot, or reload the module"

// wayOut says what to do about a call that failed.
func wayOut(err error) string {
	switch c := code(err); {
	case c == nvml.VersionMismatch:
		return versions
	case c == nvml.OperatingSystem:
		return "the control group of this process bars the device: allow /dev/nvidiactl and /dev/nvidia0, 1, … (systemd: DeviceAllow=; containers: " + containerGPUs + ")"
	case c == nvml.Unknown:
		return "in a container this is often systemd having taken the device away on a daemon-reload: restart the container; else see dmesg for Xid errors"
	case c == nvml.ResetRequired:
		return "drain the GPU and reset it: nvidia-smi --gpu-reset"
	case errors.Is(err, gpu.ErrLost):
		return "see dmesg for Xid errors, then reset the GPU (nvidia-smi --gpu-reset) or reboot the node"
	case errors.Is(err, gpu.ErrNoPermission):
		return permission
	case errors.Is(err, gpu.ErrNotSupported):
		return "a newer driver may have it; this GPU, or a virtual one, may never"
	}
	return "run perseus doctor again; if it stays, see dmesg for Xid errors"
}

// code returns what NVML returned, or Success if err is not from there.
func code(err error) nvml.Code {
	var e *nvml.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return nvml.Success
}

func list(words []string) string { return strings.Join(words, ", ") }
